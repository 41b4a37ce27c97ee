"""Every update rule against torch.optim or the published update, in float64, with groups, decay and a schedule in play."""

import copy
from functools import partial

import pytest
import torch
from torch import nn

from wonderland import optim
from wonderland.core import WonderlandError, flatten, unflatten
from wonderland.optim import rules

SHAPES = [(7, 5), (5,), (3, 4), ()]


def parameters(shapes=SHAPES, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in shapes]


def train(optimizer, params, steps, start=0, scheduler=None):
    for step in range(start, start + steps):
        generator = torch.Generator().manual_seed(step)
        for i, p in enumerate(params):
            noise = torch.randn(p.shape, generator=generator, dtype=p.dtype)
            p.grad = None if step % 7 == 3 and i == 1 else (p.detach() + noise)
        optimizer.step()
        if scheduler:
            scheduler.step()


class Published(torch.optim.Optimizer):
    """Yogi and Lion written down from the papers, one tensor at a time."""

    def __init__(self, params, name, **options):
        self.name = name
        super().__init__(params, options)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            (b1, b2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s, g = self.state[p], p.grad.clone()
                if not s:
                    s.update(m=torch.zeros_like(p), v=torch.full_like(p, 1e-6), t=0)
                s["t"] += 1
                if self.name == "Lion":
                    c = s["m"].mul(b1).add(g, alpha=1 - b1)
                    p.mul_(1 - lr * decay).add_(c.sign(), alpha=-lr)
                    s["m"].mul_(b2).add_(g, alpha=1 - b2)
                else:
                    g.add_(p, alpha=decay)
                    s["m"].mul_(b1).add_(g, alpha=1 - b1)
                    s["v"].addcmul_(g * g, (s["v"] - g * g).sign(), value=-(1 - b2))
                    root = (s["v"] / (1 - b2 ** s["t"])).sqrt().add(group["eps"])
                    p.sub_(lr * (s["m"] / (1 - b1 ** s["t"])) / root)


SGD = torch.optim.SGD
PEERS = {
    "SGD": (optim.SGD, SGD, {"lr": 0.1, "weight_decay": 0.01}),
    "SGD with momentum": (optim.SGD, SGD, {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.01}),
    "SGD with Nesterov": (
        optim.SGD,
        SGD,
        {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.01, "nesterov": True},
    ),
    "Momentum": (optim.Momentum, SGD, {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.01}),
    "Nesterov": (
        optim.Nesterov,
        partial(SGD, nesterov=True),
        {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.01},
    ),
    "AdaGrad": (
        optim.AdaGrad,
        torch.optim.Adagrad,
        {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2, "weight_decay": 0.01},
    ),
    "RMSProp": (optim.RMSProp, torch.optim.RMSprop, {"lr": 0.01, "alpha": 0.9, "weight_decay": 0.01}),
    "Adadelta": (optim.Adadelta, torch.optim.Adadelta, {"lr": 0.7, "rho": 0.8, "weight_decay": 0.01}),
    "Adam": (optim.Adam, torch.optim.Adam, {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.01}),
    "AdamW": (optim.AdamW, torch.optim.AdamW, {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1}),
    "Yogi": (
        optim.Yogi,
        partial(Published, name="Yogi"),
        {"lr": 0.01, "betas": (0.9, 0.99), "eps": 1e-3, "weight_decay": 0.01},
    ),
    "Lion": (optim.Lion, partial(Published, name="Lion"), {"lr": 0.01, "betas": (0.9, 0.98), "weight_decay": 0.1}),
    "Muon": (optim.Muon, torch.optim.Muon, {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.1}),
}
ALL = {name: (ours, options) for name, (ours, _, options) in PEERS.items()}
ALL["HeavyBall"] = (optim.HeavyBall, {"lr": 0.05, "momentum": 0.5, "weight_decay": 0.01})
ALL["ScheduleFree"] = (optim.ScheduleFree, {"lr": 0.05, "weight_decay": 0.1, "warmup_steps": 10})


def shapes_for(name):
    return [(7, 5), (4, 6), (5, 5)] if name == "Muon" else SHAPES


def build(kind, options, params):
    """Two groups, the second with another rate and decay."""
    second = {"params": params[2:], "lr": 3 * options["lr"], "weight_decay": 0.0}
    return kind([{"params": params[:2]}, second], **options)


@pytest.fixture(params=["kernel", "rule"])
def form(request, monkeypatch):
    """Both the pass through a kernel and the rule as it is written."""
    if request.param == "rule":
        monkeypatch.setattr("wonderland.ops.native.available", lambda *_: False)
    return request.param


@pytest.mark.parametrize("name", PEERS)
def test_a_hundred_steps_are_those_of_torch_or_the_paper(name, form):
    ours, theirs, options = PEERS[name]
    mine, other = parameters(shapes_for(name)), parameters(shapes_for(name))
    for kind, params in ((ours, mine), (theirs, other)):
        optimizer = build(kind, options, params)
        train(optimizer, params, 100, scheduler=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 120))
    for a, b in zip(mine, other, strict=True):
        assert (a - b).abs().max() < 1e-12


@pytest.mark.parametrize("name", ALL)
def test_the_kernel_is_the_rule(name, monkeypatch):
    kind, options = ALL[name]
    mine, other = parameters(shapes_for(name)), parameters(shapes_for(name))
    train(build(kind, options, mine), mine, 30)
    monkeypatch.setattr("wonderland.ops.native.available", lambda *_: False)
    train(build(kind, options, other), other, 30)
    for a, b in zip(mine, other, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ALL)
def test_saved_in_the_middle_training_goes_on_the_same(name, form):
    kind, options = ALL[name]
    whole = parameters(shapes_for(name), torch.float32)
    optimizer = build(kind, options, whole)
    train(optimizer, whole, 10)
    tensors, skeleton = flatten(copy.deepcopy(optimizer.state_dict()))
    halves = [nn.Parameter(p.detach().clone()) for p in whole]
    train(optimizer, whole, 10, start=10)
    again = build(kind, options, halves)
    again.load_state_dict(unflatten(tensors, skeleton))
    train(again, halves, 10, start=10)
    for a, b in zip(whole, halves, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", [name for name in PEERS if name not in ("Yogi", "Lion")])
def test_a_state_dict_of_torch_is_continued_and_given_back(name):
    ours, theirs, options = PEERS[name]
    mine, other = parameters(shapes_for(name)), parameters(shapes_for(name))
    first, second = build(theirs, options, other), build(ours, options, mine)
    train(first, other, 5)
    for a, b in zip(mine, other, strict=True):
        a.data.copy_(b)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    train(second, mine, 5, start=5)
    back = parameters(shapes_for(name))
    for a, b in zip(back, mine, strict=True):
        a.data.copy_(b)
    third = build(theirs, options, back)
    third.load_state_dict(copy.deepcopy(second.state_dict()))
    train(third, back, 5, start=10)
    train(first, other, 10, start=5)
    for a, b in zip(back, other, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def descend(kind, steps=20, start=(-5.0, -2.0), f=lambda x: 0.1 * x[0] ** 2 + 2 * x[1] ** 2, **options):
    x = nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer = kind([x], **options)
    for _ in range(steps):
        optimizer.zero_grad()
        f(x).sum().backward()
        optimizer.step()
    return x.tolist()


BOOK = {"eps": 0.0, "eps_root": 1e-6}
TRACES = [
    (optim.SGD, {"lr": 0.4}, (-0.943467, -0.000073)),
    (optim.SGD, {"lr": 0.6}, (-0.387814, -1673.365109)),
    (optim.Momentum, {"lr": 0.6, "momentum": 0.5}, (0.007188, 0.002553)),
    (optim.HeavyBall, {"lr": 0.6, "momentum": 0.5}, (0.007188, 0.002553)),
    (optim.Momentum, {"lr": 0.6, "momentum": 0.25}, (-0.126340, -0.186632)),
    (optim.AdaGrad, {"lr": 0.4, **BOOK}, (-2.382563, -0.158591)),
    (optim.AdaGrad, {"lr": 2.0, **BOOK}, (-0.002295, 0.0)),
    (optim.RMSProp, {"lr": 0.4, "alpha": 0.9, **BOOK}, (-0.010599, 0.0)),
]


@pytest.mark.parametrize(("kind", "options", "end"), TRACES)
def test_traces_of_the_book(kind, options, end, form):
    assert [round(value, 6) for value in descend(kind, **options)] == pytest.approx(end, abs=1e-12)


@pytest.mark.parametrize(("lr", "end"), [(0.2, 0.060466), (0.05, 3.486784), (1.1, 61.917364)])
def test_gradient_descent_on_a_parabola(lr, end, form):
    (found,) = descend(optim.SGD, 10, (10.0,), lambda x: x**2, lr=lr)
    assert round(found, 6) == end


def test_momentum_leaves_the_plain_way_behind_on_x_sin_2x():
    wave = lambda x: x * torch.sin(2 * x)  # noqa: E731
    plain = descend(optim.SGD, 10, (1.05,), wave, lr=0.05)[0]
    ball = descend(optim.HeavyBall, 10, (1.05,), wave, lr=0.05, momentum=0.3)[0]
    assert (round(plain, 3), round(ball, 3)) == (1.461, 1.775)


def test_the_two_forms_of_momentum_part_under_a_schedule():
    ends = []
    for kind in (optim.Momentum, optim.HeavyBall):
        params = parameters()
        optimizer = kind(params, lr=0.1, momentum=0.5)
        train(optimizer, params, 20, scheduler=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8))
        ends.append(params[0].detach())
    assert (ends[0] - ends[1]).abs().max() > 1e-3


def test_l2_and_decoupled_decay_differ():
    assert descend(optim.Adam, lr=0.1, weight_decay=0.1) != descend(optim.AdamW, lr=0.1, weight_decay=0.1)
    without = [descend(kind, lr=0.1, weight_decay=0.0) for kind in (optim.Adam, optim.AdamW)]
    assert without[0] == pytest.approx(without[1], abs=1e-14)


def test_schedule_free_is_the_three_sequences_of_the_paper(form):
    beta, b2, lr, eps, decay = 0.9, 0.999, 0.05, 1e-8, 0.1
    (p,) = parameters([(6,)])
    optimizer = optim.ScheduleFree([p], lr=lr, weight_decay=decay, warmup_steps=5)
    x = z = y = p.detach().clone()
    square, total = torch.zeros(6, dtype=torch.float64), 0.0
    for t in range(1, 51):
        g = 2 * y + torch.sin(5 * y)
        p.grad = 2 * p.detach() + torch.sin(5 * p.detach())
        optimizer.step()
        rate = lr * min(1, t / 5)
        total += rate**2
        square = b2 * square + (1 - b2) * g * g
        z = z - rate * (g / ((square / (1 - b2**t)).sqrt() + eps) + decay * y)
        x = x + rate**2 / total * (z - x)
        y = (1 - beta) * z + beta * x
        torch.testing.assert_close(p.detach(), y, rtol=0, atol=1e-12)
    before = p.detach().clone()
    with optimizer.averaged():
        torch.testing.assert_close(p.detach(), x, rtol=0, atol=1e-12)
    assert torch.equal(p.detach(), before)


def test_rules_are_pure():
    for name in ("sgd", "momentum", "heavy_ball", "nesterov", "adagrad", "rmsprop", "adadelta", "adam", "adamw", "yogi",
                 "lion", "muon", "schedule_free"):  # fmt: skip
        rule = getattr(rules, name)
        p, g = torch.randn(3, 2), torch.randn(3, 2)
        state = rule.init(p, rule.options)
        kept = copy.deepcopy((p, g, state))
        rule.update(g, state, p, rule.options)
        for a, b in zip((p, g, *state.values()), (*kept[:2], *kept[2].values()), strict=True):
            assert torch.equal(torch.as_tensor(a), torch.as_tensor(b)), name


def test_newton_reaches_the_bottom_of_a_parabola_at_once():
    h = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    x = torch.tensor([4.0, -7.0], dtype=torch.float64)
    torch.testing.assert_close(x + rules.newton(h @ x, h), torch.zeros(2, dtype=torch.float64))
    assert (h @ x) @ rules.preconditioned(h @ x, torch.tensor([-1.0, 2.0], dtype=torch.float64)) < 0


def test_exact_line_search_makes_gradients_orthogonal():
    h, x = torch.diag(torch.tensor([0.2, 4.0], dtype=torch.float64)), torch.tensor([-5.0, -2.0], dtype=torch.float64)
    g = h @ x
    step, _ = rules.sgd.update(g, {}, x, {"lr": float(g @ g / (g @ h @ g)), "weight_decay": 0.0})
    assert abs(g @ (h @ (x + step))) < 1e-13


def test_layouts_types_and_complex_numbers():
    image = nn.Parameter(torch.randn(4, 3, 5, 5).to(memory_format=torch.channels_last))
    plain = nn.Parameter(image.detach().contiguous())
    gap = nn.Parameter(torch.randn(6, 8)[:, ::2])
    half = nn.Parameter(torch.randn(5, dtype=torch.bfloat16))
    turning = nn.Parameter(torch.randn(5, dtype=torch.complex64))
    real = nn.Parameter(torch.view_as_real(turning.detach()).clone())
    everything = [image, plain, gap, half, turning, real]
    optimizer = optim.AdamW(everything, lr=0.1)
    for _ in range(3):
        for p in everything:
            p.grad = p.detach().contiguous() * 2
        image.grad = image.grad.contiguous()
        before = half.detach().clone(), gap.detach().clone()
        optimizer.step()
        assert not torch.equal(half, before[0])
        assert not torch.equal(gap, before[1])
    torch.testing.assert_close(image, plain)
    torch.testing.assert_close(torch.view_as_real(turning.detach()), real.detach())


def test_threads_do_not_change_bits():
    ends = []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            params = parameters([(300, 301), (7,)], torch.float32)
            train(optim.AdamW(params, lr=0.1), params, 3)
            ends.append(params[0].detach())
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(ends[0], ends[1])
    assert torch.equal(ends[0], ends[2])


def test_copies_and_moved_memory_are_noticed():
    params = parameters()
    optimizer = optim.AdamW(params, lr=0.1)
    train(optimizer, params, 3)
    twin, copies = copy.deepcopy((optimizer, params))
    for p in params:
        p.data = p.data.clone()
    train(optimizer, params, 3, start=3)
    train(twin, copies, 3, start=3)
    for a, b in zip(params, copies, strict=True):
        assert torch.equal(a, b)
    optimizer.state.clear()
    fresh = [nn.Parameter(p.detach().clone()) for p in params]
    train(optimizer, params, 2)
    train(optim.AdamW(fresh, lr=0.1), fresh, 2)
    assert torch.equal(params[0], fresh[0])


def test_closures_and_empty_gradients():
    (x,) = parameters([(3,)])
    optimizer = optim.SGD([x], lr=0.1)
    optimizer.step()

    def closure():
        optimizer.zero_grad()
        loss = (x**2).sum()
        loss.backward()
        return loss

    first = optimizer.step(closure)
    assert closure() < first


WRONG = [
    (optim.SGD, {"lr": -0.1}, "SGD: lr must be"),
    (optim.SGD, {"lr": float("nan")}, "SGD: lr must be"),
    (optim.SGD, {"lr": "fast"}, "SGD: lr must be"),
    (optim.SGD, {"momentum": 1.5}, "SGD: momentum must be"),
    (optim.Momentum, {"momentum": 1.0}, r"Momentum: momentum .* at least 0 and below 1, not 1.0: old gradients"),
    (optim.Nesterov, {"momentum": -0.1}, "Nesterov: momentum must be"),
    (optim.HeavyBall, {"weight_decay": -1}, "HeavyBall: weight_decay must be"),
    (optim.AdaGrad, {"lr_decay": -1.0}, "AdaGrad: lr_decay must be"),
    (optim.AdaGrad, {"initial_accumulator_value": -1.0}, "AdaGrad: initial_accumulator_value must be"),
    (optim.RMSProp, {"alpha": 1.5}, "RMSProp: alpha must be"),
    (optim.RMSProp, {"eps_root": -1.0}, "RMSProp: eps_root must be"),
    (optim.Adadelta, {"rho": -0.5}, "Adadelta: rho must be"),
    (optim.Adam, {"betas": (0.9, 1.0)}, r"Adam: betas\[1\] must be"),
    (optim.Adam, {"betas": 0.9}, "Adam: betas must be two numbers"),
    (optim.AdamW, {"eps": -1e-8}, "AdamW: eps must be"),
    (optim.AdamW, {"weight_decay": float("inf")}, "AdamW: weight_decay must be"),
    (optim.Yogi, {"betas": (-0.1, 0.9)}, r"Yogi: betas\[0\] must be"),
    (optim.Lion, {"weight_decay": -0.1}, "Lion: weight_decay must be"),
    (optim.Muon, {"ns_steps": 0}, "Muon: ns_steps must be a whole number of at least 1"),
    (optim.Muon, {"precision": "float23"}, "Muon: precision must be one of .* Did you mean 'float32'"),
    (optim.ScheduleFree, {"warmup_steps": -1}, "ScheduleFree: warmup_steps must be"),
    (optim.ScheduleFree, {"betas": (0.0, 0.9)}, r"ScheduleFree: betas\[0\] must be above 0"),
]


@pytest.mark.parametrize(("kind", "options", "sentence"), WRONG)
def test_wrong_options_are_named(kind, options, sentence):
    with pytest.raises(WonderlandError, match=sentence):
        kind(parameters([(2, 2)]), **options)
    with pytest.raises(WonderlandError, match=sentence):
        kind([{"params": parameters([(2, 2)]), **options}])


def test_other_wrong_use_gets_a_sentence():
    (x,) = parameters([(2,)])
    with pytest.raises(
        WonderlandError, match=r"^SGD: nesterov must come with a momentum above 0, such as momentum=0\.9\.$"
    ):
        optim.SGD([x], nesterov=True)
    with pytest.raises(
        WonderlandError, match=r"^SGD: a group has momentum and the optimizer has none: give momentum to SGD"
    ):
        optim.SGD([{"params": [x], "momentum": 0.5}])
    with pytest.raises(WonderlandError, match="params is empty"):
        optim.AdamW([])
    with pytest.raises(WonderlandError, match="not one tensor"):
        optim.AdamW(x)
    for params, sentence in (
        (nn.Linear(1, 1), r"AdamW: params must be tensors, not a model: write model.parameters\(\)\.$"),
        (None, r"AdamW: params must be tensors or groups of them, not None\.$"),
        ("weights", r"AdamW: params must be tensors or groups of them, not 'weights'\.$"),
        ([x, 3], r"AdamW: params\[1\] must be a tensor, not 3\.$"),
        ([torch.arange(3)], r"AdamW: params\[0\] holds torch.int64, which has no gradient\.$"),
        ([x * 2], r"AdamW: params\[0\] was computed from other tensors: give these, or detach it first\.$"),
        ([{"lr": 0.1}], r"AdamW: a group must be a dict with params in it, not {'lr': 0.1}\.$"),
        ([{"params": []}], r"AdamW: params is empty: give model.parameters\(\), and only once\.$"),
    ):
        with pytest.raises(WonderlandError, match=sentence):
            optim.AdamW(params)
    with pytest.raises(
        WonderlandError, match=r"AdamW: a saved state must be a dict with 'state' and 'param_groups'\.$"
    ):
        optim.AdamW([x]).load_state_dict({})
    with pytest.raises(
        WonderlandError, match=r"has groups of \[2\] tensors, and this optimizer of \[1\]: build it for"
    ):
        optim.AdamW([x]).load_state_dict(optim.AdamW(parameters([(2,), (2,)])).state_dict())
    with pytest.raises(WonderlandError, match="no option 'learning_rate'"):
        optim.Optimizer([x], rules.sgd, learning_rate=1.0)
    with pytest.raises(WonderlandError, match="for real matrices"):
        optim.Muon([x])
    momentum = optim.Momentum([x])
    x.grad = torch.ones_like(x)
    momentum.step()
    with pytest.raises(WonderlandError, match="has no exp_avg, exp_avg_sq: it was saved by another rule"):
        optim.AdamW([x]).load_state_dict(momentum.state_dict())
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(WonderlandError, match="sparse gradient"):
        optim.AdamW(table.parameters()).step()
