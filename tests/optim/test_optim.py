from itertools import pairwise

import pytest
import torch
from torch import nn

from wonderland.optim import AdamW, constant, follow, groups, warmup_cosine


def test_warm_up_then_half_a_cosine():
    values = [warmup_cosine(step, 100, warmup=0.1) for step in range(101)]
    assert values[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert max(values) == 1
    assert values[-1] == pytest.approx(0, abs=1e-12)
    assert all(a >= b for a, b in pairwise(values[10:]))
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 90)
    for step in range(10, 100):
        assert values[step] == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-9)
        optimizer.step()
        theirs.step()
    assert warmup_cosine(10**6, 100, floor=0.1) == pytest.approx(0.1)
    assert constant(3, 10) == 1


def test_groups_cover_every_parameter_once():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 2), nn.Embedding(3, 2))
    found = [parameter for group in groups(model, weight_decay=0.1) for parameter in group["params"]]
    assert {id(p) for p in found} == {id(p) for p in model.parameters()}
    assert len(found) == len(list(model.parameters()))
    decayed = groups(model, weight_decay=0.1)[0]
    assert decayed["weight_decay"] == 0.1
    assert len(decayed["params"]) == 2


def test_the_average_is_that_of_torch_after_the_first_steps():
    model, mine = nn.Linear(2, 2), nn.Linear(2, 2)
    mine.load_state_dict(model.state_dict())
    expected = model.weight.detach().clone()
    for step in range(300):
        with torch.no_grad():
            model.weight.normal_()
        follow(mine, model, 0.5, step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.weight.detach()
    torch.testing.assert_close(mine.weight, expected)


def test_buffers_are_copied():
    model, mine = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    model(torch.randn(8, 2))
    follow(mine, model, 0.9, 0)
    assert torch.equal(mine.running_mean, model.running_mean)


def test_groups_leave_decay_to_the_optimizer_unless_told():
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    first = AdamW(groups(model), weight_decay=0.3)
    assert [group["weight_decay"] for group in first.param_groups] == [0.3, 0.0]
    second = AdamW(groups(model, weight_decay=0.1))
    assert [group["weight_decay"] for group in second.param_groups] == [0.1, 0.0]
