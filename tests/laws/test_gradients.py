"""Gradients detects a backward pass that is not the derivative."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from wonderland.laws import Example, gradients

X = Example.floats(2, 3, 4)


class Square(torch.autograd.Function):
    """x squared, with a backward that is wrong in one column."""

    @staticmethod
    def forward(ctx, x, wrong):
        ctx.save_for_backward(x)
        ctx.wrong = wrong
        return x * x

    @staticmethod
    def backward(ctx, slope):
        (x,) = ctx.saved_tensors
        found = 2 * x * slope
        if ctx.wrong is not None:
            found[..., ctx.wrong] = found[..., ctx.wrong] * 1.01
        return found, None


class Squares(nn.Module):
    def __init__(self, wrong=None):
        super().__init__()
        self.wrong = wrong
        self.weight = nn.Parameter(torch.zeros(4, 4))

    def forward(self, x):
        return Square.apply(x, self.wrong) @ self.weight


@pytest.mark.parametrize("full", [None, True, False])
def test_a_right_backward_holds(full):
    verdict = gradients(Squares(), X, full=full)
    assert verdict.outcome == "holds"
    assert verdict.error < 1e-8


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 3), st.booleans())
def test_a_wrong_column_is_named(wrong, full):
    verdict = gradients(Squares(wrong), X, full=full)
    assert not verdict
    assert verdict.witness.startswith("by input[")
    assert f", {wrong}], backward says" in verdict.witness


def test_a_detached_parameter_is_found_unless_it_is_exempt():
    class Detached(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x * self.gate.detach()

    block = nn.Sequential(Detached())
    verdict = gradients(block, X)
    assert not verdict
    assert verdict.witness.startswith("by 0.gate[0], backward says 0 and differences say")
    block[0].exempt = ("gate",)
    assert gradients(block, X).outcome == "holds"


def test_a_kink_is_left_for_another_point():
    class Kinks(nn.Module):
        def forward(self, x):
            return x.abs() + torch.relu(x - 0.3) + x.amax(1, keepdim=True)

    for seed in range(5):
        assert gradients(Kinks(), Example.floats(2, 3, 4, seed=seed)).outcome == "holds"


def test_a_straight_through_step_is_broken_unless_it_is_exempt():
    class Round(nn.Module):
        def forward(self, x):
            return x + (x.round() - x).detach()

    block = Round()
    assert not gradients(block, X)
    block.exempt = ("input",)
    assert gradients(block, X).witness == "it has neither inputs nor parameters to differentiate by"


def test_complex_parameters_are_tried_along_both_parts():
    class Turn(nn.Module):
        def __init__(self, detached):
            super().__init__()
            self.detached = detached
            self.turn = nn.Parameter(torch.randn(4, dtype=torch.complex64))

        def forward(self, x):
            turn = torch.complex(self.turn.real, self.turn.imag.detach()) if self.detached else self.turn
            return (x * turn * turn).real

    assert gradients(Turn(False), X).outcome == "holds"
    assert not gradients(Turn(True), X)


def test_modules_that_compute_in_float32_are_not_judged():
    class Coarse(nn.Module):
        def forward(self, x):
            return x.float().square().to(x)

    verdict = gradients(Coarse(), X)
    assert verdict.witness == "it computes in float32 whatever it is given, which is too coarse for differences"


def test_long_examples_are_tried_along_random_directions():
    assert gradients(Squares(), Example.floats(2, 20, 4)).witness == "along random directions"
    assert not gradients(Squares(2), Example.floats(2, 20, 4))


def test_the_module_is_left_as_it_was():
    block = Squares()
    gradients(block, X)
    assert bool((block.weight == 0).all())
    assert block.weight.grad is None
    assert block.weight.dtype == torch.float32


class Bent(torch.autograd.Function):
    """A rectifier whose slope is a hundredth too steep."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.relu()

    @staticmethod
    def backward(ctx, slope):
        (x,) = ctx.saved_tensors
        return 1.01 * slope * (x > 0)


class Rectifier(nn.Module):
    def __init__(self, bent):
        super().__init__()
        self.inward, self.outward, self.bent = nn.Linear(32, 2048), nn.Linear(2048, 32), bent

    def forward(self, x):
        h = self.inward(x)
        return self.outward(Bent.apply(h) if self.bent else h.relu())


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_kinks_nearby_accuse_nobody_and_hide_nobody(seed):
    torch.manual_seed(seed)
    example = Example.floats(2, 17, 32, seed=seed)
    assert gradients(Rectifier(False), example).outcome == "holds"
    verdict = gradients(Rectifier(True), example)
    assert verdict.outcome == "broken"
    assert "input" in verdict.witness or "inward" in verdict.witness


def test_kinks_wherever_one_looks_are_told_and_no_fault():
    class Corner(nn.Module):
        """A rectifier whose kink lies just where it is asked."""

        point = 0.0

        def forward(self, x):
            if torch.is_grad_enabled():
                self.point = x.detach().clone()
            return (x - self.point).relu()

    verdict = gradients(Corner(), Example.floats(2, 3, 4))
    assert verdict.outcome == "not applicable"
    assert "there is a kink at each of 5 random points: by input, 0 from one side" in verdict.witness
