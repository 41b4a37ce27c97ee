"""Checkpointing: the same gradients in less memory, and the peak that was predicted."""

import re

import pytest
import torch
from torch import nn

from wonderland import autodiff
from wonderland.autodiff import memory
from wonderland.core import WonderlandError


class Peak(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the bytes of storages that are alive, by asking each whether somebody still holds it."""

    def __init__(self, given):
        super().__init__()
        self.known = {tensor.untyped_storage()._cdata for tensor in given}
        self.held, self.most = {}, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.known:
                    self.held[storage._cdata] = (storage._weak_ref(), storage.nbytes())
        live = 0
        for key, (weak, size) in list(self.held.items()):
            if torch.UntypedStorage._expired(weak):
                del self.held[key]
            else:
                live += size
        self.most = max(self.most, live)
        return out


def setting(depth=8, width=32, rows=64):
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.Tanh())]
    net, x = nn.Sequential(*layers).double(), torch.randn(rows, width, dtype=torch.float64)
    return net, (lambda own, x: autodiff.call(net, own, x).square().mean()), autodiff.parameters(net), x


def test_gradients_are_those_without_it_and_the_peak_is_as_predicted():
    _, loss, own, x = setting()
    plain = autodiff.trace(autodiff.value_and_grad(loss), own, x)
    expected = autodiff.value_and_grad(loss)(own, x)
    for share in (1.0, 0.9, 0.8, 0.72):
        made = autodiff.checkpoint(loss, int(plain.peak * share))
        plan = made.plan(own, x)
        assert plan.predicted <= plan.budget
        assert plan.without == plain.peak
        assert (plan.extra > 0) == (share < 1)
        torch.testing.assert_close(made(own, x), expected, rtol=0, atol=0)
        watch = Peak([*own.values(), x])
        with watch:
            result = made(own, x)
        del result
        assert abs(watch.most - plan.predicted) <= 0.1 * plan.predicted


def test_more_is_computed_again_the_smaller_the_budget():
    _, loss, own, x = setting()
    without = autodiff.checkpoint(loss, "1GB").plan(own, x).without
    extra = [autodiff.checkpoint(loss, int(without * share)).plan(own, x).extra for share in (1.0, 0.9, 0.8, 0.72)]
    assert extra == sorted(extra)
    assert 0 == extra[0] < extra[-1]


def test_a_plan_says_what_it_will_do():
    _, loss, own, x = setting()
    text = str(autodiff.checkpoint(loss, "1MB").plan(own, x))
    assert re.fullmatch(
        r"Predicted peak [\d.]+ kB of the budget of 1\.0 MB \([\d.]+ kB without checkpointing\); 0\.0 % more work: "
        r"0 values of the forward pass are computed again, \d+ are kept\.",
        text,
    )


def test_a_budget_that_cannot_be_kept_is_told():
    _, loss, own, x = setting()
    with pytest.raises(WonderlandError, match=r"No plan found keeps 1\.0 kB: the smallest peak is [\d.]+ kB, and "):
        autodiff.checkpoint(loss, "1kB")(own, x)
    message = "'much' is no amount of memory: write bytes, or words such as '200MB' or '1.5GiB'."
    with pytest.raises(WonderlandError, match=re.escape(message)):
        autodiff.checkpoint(loss, "much")


def test_random_numbers_are_not_drawn_again():
    torch.manual_seed(0)
    x = torch.ones(1000, dtype=torch.float64)

    def loss(x):
        for _ in range(6):
            x = nn.functional.dropout(x, 0.1).tanh()
        return x.sum()

    without = autodiff.checkpoint(loss, "1GB").plan(x).without
    made = autodiff.checkpoint(loss, int(0.9 * without))
    assert made.plan(x).forgotten
    torch.manual_seed(1)
    value, slope = made(x)
    torch.manual_seed(1)
    expected = autodiff.checkpoint(loss, "1GB")(x)
    torch.testing.assert_close((value, slope), expected)


def test_functions_that_decide_by_numbers_are_run_to_be_planned():
    def loss(x):
        return x.exp().sum() if x[0] > 0 else x.sum()

    _, slope = autodiff.checkpoint(loss, "1MB")(torch.zeros(2))
    assert slope.tolist() == [1, 1]


def test_a_timeline_counts_what_is_alive():
    made = autodiff.trace(lambda x: (x.exp() + 1).view(2, 2).sin().sum(), torch.zeros(4))
    live = [moment.live for moment in made.timeline()]
    assert live == [16, 32, 16, 32, 20]
    assert memory.words(1500) == "1.5 kB"
