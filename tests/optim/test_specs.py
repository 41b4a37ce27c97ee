"""Optimizers and schedules as parts: described by a spec, written as a call, built where the parameters are known."""

import inspect

import pytest
import torch
from torch import nn

from wonderland import optim
from wonderland.core import Part, Spec, WonderlandError, parse_spec, parts, write_spec

OPTIMIZERS = sorted(
    name
    for name, value in vars(optim).items()
    if inspect.isclass(value) and issubclass(value, torch.optim.Optimizer) and value is not optim.Optimizer
)
SCHEDULES = sorted(
    name for name in parts() if name.startswith("optim.") and name.split(".")[1] not in OPTIMIZERS
)  # fmt: skip


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8, bias=False), nn.Linear(8, 3, bias=False))


def trained(optimizer_of, steps=3):
    net = model()
    optimizer = optimizer_of(net)
    torch.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(5, 4)).square().mean().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in net.parameters()]


def test_every_optimizer_is_a_part():
    assert len(OPTIMIZERS) >= 14
    assert {f"optim.{name}" for name in OPTIMIZERS} <= set(parts())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_from_its_spec_steps_as_the_one_built_by_hand(name):
    kind = getattr(optim, name)
    spec = kind.spec(lr=0.01, weight_decay=0.1)
    assert parse_spec(f"{name}(lr=0.01, weight_decay=0.1)", folders=("optim",)) == spec
    ours = trained(lambda net: Spec.from_json(spec.to_json()).build(params=net.parameters()))
    theirs = trained(lambda net: kind(net.parameters(), lr=0.01, weight_decay=0.1))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_betas_survive_json_and_are_read_from_text():
    spec = parse_spec("Lion(lr=1e-4, betas=(0.8, 0.9))")
    built = Spec.from_json(spec.to_json()).build(params=model().parameters())
    assert tuple(built.param_groups[0]["betas"]) == (0.8, 0.9)


def test_decay_groups_go_into_an_optimizer_from_a_spec():
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8))
    for name in ("AdamW", "FusedAdamW", "Lion"):
        built = Spec(f"optim.{name}", {"weight_decay": 0.3}).build(params=optim.groups(net))
        assert [group["weight_decay"] for group in built.param_groups] == [0.3, 0.0]


def test_fused_adamw_is_that_of_torch():
    by_spec = trained(lambda net: optim.FusedAdamW.spec(lr=0.01, weight_decay=0.1).build(params=optim.groups(net)))
    by_torch = trained(lambda net: torch.optim.AdamW(optim.groups(net, weight_decay=0.1), lr=0.01, fused=True))
    assert all(torch.equal(a, b) for a, b in zip(by_spec, by_torch, strict=True))


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("Lion(lr=-1.0)", "Lion: lr must be a finite number of at least 0, not -1.0: a negative rate climbs."),
        ("FusedAdamW(lr=-1.0)", "FusedAdamW: lr must be a finite number of at least 0, not -1.0: a negative rate climbs."),
        ("Lion(params=3)", "optim.Lion is given params where it is built: leave it out of its spec."),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_where_it_is_built(written, sentence):
    with pytest.raises(WonderlandError) as caught:
        parse_spec(written).build(params=model().parameters())
    assert str(caught.value) == sentence


def test_an_unknown_option_of_an_optimizer_gets_the_nearest():
    with pytest.raises(WonderlandError) as caught:
        parse_spec("Lion(beta=3)")
    assert str(caught.value) == "optim.Lion has no argument 'beta'. Did you mean 'betas'?"


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_from_its_spec_is_a_function_of_step_and_steps(name):
    spec = parse_spec(name)
    built = Spec.from_json(spec.to_json()).build()
    part = getattr(optim, name.split(".")[1])
    plain = part() if inspect.isclass(part) else part
    assert [built(step, 10) for step in range(12)] == [plain(step, 10) for step in range(12)]


def test_options_of_a_schedule_are_filled_in():
    built = parse_spec("warmup_cosine(warmup=0.2, floor=0.1)", folders=("optim",)).build()
    assert [built(step, 10) for step in range(12)] == [
        optim.warmup_cosine(step, 10, warmup=0.2, floor=0.1) for step in range(12)
    ]
    assert parse_spec("multi_step(at=[3, 6])").build()(4, 10) == 0.1
    assert parse_spec("Plateau(patience=2)").build()(4, 10) == 1.0
    assert write_spec(Spec("optim.cosine", {"floor": 0.5})) == "cosine(floor=0.5)"
    assert issubclass(optim.Plateau, Part)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("cosine(floor=3)", "cosine: floor must be between 0 and 1, not 3."),
        ("multi_step(at=['a'])", "multi_step: at must be a list of steps such as (100, 200), not ['a']."),
        ("cosine(step=3)", "optim.cosine has no argument 'step'."),
        ("cosine(flor=0.1)", "optim.cosine has no argument 'flor'. Did you mean 'floor'?"),
    ],
)
def test_wrong_options_of_a_schedule_are_refused_before_training(written, sentence):
    with pytest.raises(WonderlandError) as caught:
        parse_spec(written).build()
    assert str(caught.value) == sentence
