"""Masked softmax: weights over what counts, 0 elsewhere, and never NaN."""

import math

import pytest
import torch

from wonderland.ops.softmax import masked_softmax, prefix_mask, reference


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_the_fast_form_is_the_equation_in_values_and_gradients(dim):
    scores = torch.randn(5, 7, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(5, 7, 3) < 0.5
    fast, slow = masked_softmax(scores, mask, dim), reference(scores, mask, dim)
    assert torch.allclose(fast, slow, atol=1e-14)
    weight = torch.randn_like(fast)
    grads = [torch.autograd.grad((y * weight).sum(), scores)[0] for y in (fast, slow)]
    assert torch.allclose(*grads, atol=1e-14)


def test_without_a_mask_it_is_softmax():
    scores = torch.randn(3, 4)
    assert torch.equal(masked_softmax(scores, torch.ones(3, 4, dtype=torch.bool)), scores.softmax(-1))


def test_a_row_with_nothing_to_see_is_zero_with_zero_gradient():
    scores = torch.randn(2, 3, requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[True, True, False], [False] * 3]))
    (weights * torch.randn(2, 3)).sum().backward()
    assert weights[1].eq(0).all()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad[1].eq(0).all()


def test_hidden_scores_are_never_read():
    scores = torch.tensor([[0.0, 0.0, math.nan, math.inf]], requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[True, True, False, False]]))
    weights[0, 0].backward()
    assert weights.tolist() == [[0.5, 0.5, 0.0, 0.0]]
    assert scores.grad is not None
    assert scores.grad[0].tolist() == [0.25, -0.25, 0.0, 0.0]


def test_a_mask_broadcasts():
    mask = torch.tensor([True, False, True])
    assert torch.equal(masked_softmax(torch.zeros(2, 3), mask), torch.tensor([[0.5, 0.0, 0.5]] * 2))


def test_hiding_scores_with_a_large_negative_number_is_the_same():
    scores, mask = torch.randn(4, 6), prefix_mask(torch.tensor([1, 2, 3, 6]), 6)
    assert torch.allclose(masked_softmax(scores, mask), scores.masked_fill(~mask, -1e6).softmax(-1))
