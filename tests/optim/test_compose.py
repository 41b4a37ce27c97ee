"""Clipping, decay, schedules and lookahead on our optimizers and torch's, alone, combined, and resumed."""

import copy

import pytest
import torch
from torch import nn

from wonderland import optim
from wonderland.core import WonderlandError, flatten, save_tensors, unflatten
from wonderland.optim.compose import clip_norm


def setup(kind, **options):
    torch.manual_seed(0)
    params = [nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.randn(3))]
    return params, kind(params, **options)


def train(params, optimizer, steps, start=0):
    for step in range(start, start + steps):
        generator = torch.Generator().manual_seed(step)
        for p in params:
            p.grad = p.detach() + torch.randn(p.shape, generator=generator)
        optimizer.step()


def everything(optimizer):
    return optim.lookahead(
        optim.scheduled(optim.decayed(optim.clipped(optimizer, norm=1.0), 0.1), optim.cosine, steps=40), every=3
    )


EVERY = [
    optim.SGD, optim.Momentum, optim.HeavyBall, optim.Nesterov, optim.AdaGrad, optim.RMSProp, optim.Adadelta, optim.Adam,
    optim.AdamW, optim.Yogi, optim.Lion, optim.Muon, optim.ScheduleFree, torch.optim.AdamW,
]  # fmt: skip


@pytest.mark.parametrize("kind", EVERY)
def test_all_together_go_on_the_same_after_saving(kind):
    """Clipping, decay, a schedule, lookahead, groups and two averages around every rule, bit for bit."""

    def build(rows):
        matrices = rows[:1] if kind is optim.Muon else rows
        optimizer = everything(
            kind([{"params": matrices[:1]}, *({"params": [p], "lr": 0.02} for p in matrices[1:])], lr=0.05)
        )
        model = nn.ParameterList(rows)
        return optimizer, model, optim.EMA(model, decay=0.9), optim.SWA(model, start=3, every=2)

    def go(rows, parts, steps, start):
        optimizer, model, *averages = parts
        for step in range(start, start + steps):
            train(rows, optimizer, 1, step)
            for average in averages:
                average.update(model)

    torch.manual_seed(0)
    params = [nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.randn(3))]
    first = build(params)
    go(params, first, 10, 0)
    saved = [flatten(copy.deepcopy(part.state_dict())) for part in (first[0], *first[2:])]
    halves = [nn.Parameter(p.detach().clone()) for p in params]
    go(params, first, 10, 10)
    again = build(halves)
    for part, (tensors, skeleton) in zip((again[0], *again[2:]), saved, strict=True):
        part.load_state_dict(unflatten(tensors, skeleton))
    go(halves, again, 10, 10)
    assert all(torch.equal(a, b) for a, b in zip(params, halves, strict=True))
    for mine, theirs in zip(first[2:], again[2:], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(mine.module.parameters(), theirs.module.parameters(), strict=True))


def test_a_schedule_that_remembers_is_saved_with_the_optimizer(tmp_path):
    def build():
        params, optimizer = setup(optim.SGD, lr=0.1)
        schedule = optim.Plateau(alpha=0.5, patience=0)
        return params, optim.scheduled(optimizer, schedule, steps=40), schedule

    params, optimizer, schedule = build()
    tensors, skeleton = flatten(
        optimizer.state_dict()
    )  # before the first report there is no best, and no infinity to write
    save_tensors(tmp_path / "optimizer.safetensors", tensors, {"state": skeleton})
    build()[1].load_state_dict(unflatten(tensors, skeleton))
    for loss in (1.0, 2.0, 3.0):
        schedule.report(loss)
    train(params, optimizer, 3)
    halves, again, other = build()
    for a, b in zip(halves, params, strict=True):
        a.data.copy_(b)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert other.factor == schedule.factor == 0.25
    train(params, optimizer, 3, 3)
    train(halves, again, 3, 3)
    assert all(torch.equal(a, b) for a, b in zip(params, halves, strict=True))
    with pytest.raises(WonderlandError, match="saved state has no 'scheduled'"):
        again.load_state_dict(setup(optim.SGD)[1].state_dict())


def test_decay_around_adam_is_adamw():
    mine, first = setup(optim.Adam, lr=0.05)
    other, second = setup(optim.AdamW, lr=0.05, weight_decay=0.1)
    train(mine, optim.decayed(first, 0.1), 20)
    train(other, second, 20)
    torch.testing.assert_close(mine, other)


def test_a_schedule_is_that_of_torch():
    mine, first = setup(optim.SGD, lr=0.1)
    other, second = setup(torch.optim.SGD, lr=0.1)
    train(mine, optim.scheduled(first, optim.cosine, steps=20), 20)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(second, 20)
    for step in range(20):
        train(other, second, 1, step)
        theirs.step()
    torch.testing.assert_close(mine, other)


def test_clipping_by_value():
    (p, _), optimizer = setup(optim.SGD, lr=1.0)
    optim.clipped(optimizer, value=0.5)
    before = p.detach().clone()
    p.grad = torch.full_like(p, 3.0)
    optimizer.step()
    torch.testing.assert_close(p.detach(), before - 0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("norm", [0.5, 1e6])
def test_clipping_to_a_norm_is_that_of_torch(dtype, norm):
    sizes = [(3,), (2, 2049), (70, 70), (), (4, 6)]
    mine = [torch.nn.Parameter(torch.zeros(size, dtype=dtype)) for size in sizes]
    other = [torch.nn.Parameter(torch.zeros(size, dtype=dtype)) for size in sizes]
    for a, b in zip(mine[:-1], other[:-1], strict=True):
        a.grad = torch.randn_like(a)
        b.grad = a.grad.clone()
    clip_norm(mine, norm)
    torch.nn.utils.clip_grad_norm_(other, norm)
    assert mine[-1].grad is None
    torch.testing.assert_close([p.grad for p in mine[:-1]], [p.grad for p in other[:-1]])


def test_clipping_reads_gradients_of_any_layout_and_spreads_what_is_no_number():
    p = torch.nn.Parameter(torch.zeros(2, 3))
    p.grad = torch.ones(3, 2).t()
    clip_norm([p], 1.0)
    torch.testing.assert_close(p.grad, torch.full((2, 3), 6**-0.5), rtol=1e-5, atol=1e-6)
    p.grad = torch.tensor([[1.0, 2.0, float("nan")], [0.0, 0.0, 0.0]])
    clip_norm([p], 1.0)
    assert p.grad.isnan().all()


def test_lookahead_is_the_two_sequences_of_the_paper():
    params, optimizer = setup(optim.SGD, lr=0.1)
    slow = params[0].detach().clone()
    fast = slow.clone()
    optim.lookahead(optimizer, every=4, pull=0.3)
    for step in range(1, 13):
        params[0].grad = params[0].detach().clone()
        optimizer.step()
        fast = 0.9 * fast
        if step % 4 == 0:
            slow = slow + 0.3 * (fast - slow)
            fast = slow
        torch.testing.assert_close(params[0].detach(), fast)


def test_averages_are_saved_and_go_on():
    for make in (lambda m: optim.EMA(m, decay=0.9), lambda m: optim.SWA(m, start=2, every=2)):
        model = nn.Linear(2, 2)
        first = make(model)
        for step in range(10):
            nn.init.constant_(model.weight, float(step))
            first.update(model)
            second = make(model)
            second.load_state_dict(copy.deepcopy(first.state_dict()))
            first = second
        if isinstance(first, optim.SWA):
            assert first.module.weight[0, 0].item() == pytest.approx((2 + 4 + 6 + 8) / 4)
        else:
            assert 5 < first.module.weight[0, 0].item() < 9


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda o: optim.clipped(o), "clipped: give either norm or value"),
        (lambda o: optim.clipped(o, norm=-1.0), "clipped: norm must be"),
        (lambda o: optim.clipped(o, value=-1.0), "clipped: value must be"),
        (lambda o: optim.decayed(o, -0.1), "decayed: weight_decay must be"),
        (lambda o: optim.scheduled(o, optim.cosine, steps=0), "scheduled: steps must be"),
        (
            lambda o: optim.scheduled(o, 0.5, steps=3),
            r"scheduled: schedule must be a function of \(step, steps\), not 0.5",
        ),
        (lambda o: optim.clipped(3, norm=1.0), "clipped takes an optimizer first, not a int"),
        (lambda o: optim.lookahead(nn.Linear(1, 1)), "lookahead takes an optimizer first, not a Linear"),
        (lambda o: optim.EMA(3), "EMA takes a model, not a int"),
        (lambda o: optim.EMA(nn.Linear(1, 1)).update(nn.Linear(2, 2)), "EMA: model has other parameters than the one"),
        (
            lambda o: optim.SWA(nn.Linear(1, 1)).update(nn.Sequential(nn.Linear(1, 1))[:0]),
            "SWA: model has other parameters",
        ),
        (lambda o: optim.groups(nn.ReLU()), "groups got a ReLU, which has no trainable parameters"),
        (lambda o: optim.groups([nn.Parameter(torch.zeros(1))]), "groups takes a model, not a list"),
        (lambda o: optim.groups(nn.Linear(1, 1), weight_decay=-1.0), "groups: weight_decay must be"),
        (lambda o: optim.lookahead(o, every=0), "lookahead: every must be"),
        (lambda o: optim.lookahead(o, pull=1.5), "lookahead: pull must be"),
        (lambda o: optim.EMA(nn.Linear(1, 1), decay=1.5), "EMA: decay must be"),
        (lambda o: optim.SWA(nn.Linear(1, 1), every=0), "SWA: every must be"),
        (
            lambda o: optim.lookahead(o).load_state_dict(setup(optim.SGD)[1].state_dict()),
            "saved state has no 'lookahead'",
        ),
    ],
)
def test_wrong_options_are_named(call, sentence):
    with pytest.raises(WonderlandError, match=sentence):
        call(setup(optim.SGD)[1])


def test_decay_that_changes_the_sign_of_weights_is_refused():
    (p, _), optimizer = setup(optim.SGD, lr=1.0)
    optim.decayed(optimizer, 5.0)
    p.grad = torch.zeros_like(p)
    with pytest.raises(
        WonderlandError, match=r"^decayed: weight_decay 5 times the learning rate 1 is above 1, so weights would change"
    ):
        optimizer.step()
