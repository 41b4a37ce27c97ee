"""Penalties have the gradients of their equations, and add nothing at strength 0."""

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.tasks.noise import gradient_noise, label_noise
from wonderland.tasks.penalties import group_sparsity, l1, l2, product_l1

W = torch.tensor([0.5, -2.0, 0.0, 3.0], dtype=torch.float64)


def test_gradients_are_those_of_the_equations():
    w = W.clone().requires_grad_()
    assert torch.equal(torch.autograd.grad(l2(w, 0.1), w)[0], 0.2 * W)
    assert torch.equal(torch.autograd.grad(l1(w, 0.1), w)[0], 0.1 * W.sign())


def test_product_l1_is_minimal_for_equal_factors():
    a, b = W.abs().sqrt(), W.sign() * W.abs().sqrt()
    torch.testing.assert_close(product_l1(a, b, 2), l1(W, 2))
    stretch = torch.rand(4, dtype=torch.float64) + 0.5
    assert product_l1(a * stretch, b / stretch, 2) > l1(W, 2)


def test_groups_are_rows_or_columns():
    w = torch.randn(3, 4, dtype=torch.float64)
    torch.testing.assert_close(group_sparsity(w, 1), 2 * w.norm(dim=1).sum())
    torch.testing.assert_close(group_sparsity(w, 1, axis=1), 3**0.5 * w.norm(dim=0).sum())
    still = torch.zeros(2, 2, requires_grad=True)
    group_sparsity(still, 1).backward()
    assert bool(still.grad.isfinite().all())


def test_a_model_gives_its_decayed_weights_and_zero_strength_adds_nothing():
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    torch.testing.assert_close(l2(model, 1), model[0].weight.square().sum())
    assert not l2(model, 0).requires_grad
    assert l2(model, 0) == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: l2(W, -1), "l2 takes a strength of at least 0, not -1."),
        (lambda: l1(W, float("nan")), "l1 takes a strength of at least 0, not nan."),
        (
            lambda: group_sparsity([], 1),
            "group_sparsity takes a float tensor, several of them, or a model with such weights.",
        ),
        (
            lambda: product_l1(W, W[:2], 1),
            "product_l1 got an a of shape (4,) and a b of shape (2,): give both the same shape.",
        ),
        (
            lambda: label_noise(torch.tensor([3]), classes=3, rate=0.1),
            "label_noise got the label 3, and the classes are 0 to 2.",
        ),
        (
            lambda: label_noise(torch.tensor([0]), classes=3, rate=-0.1),
            "label_noise takes a rate from 0 to 1, not -0.1.",
        ),
        (lambda: gradient_noise([], step=0, scale=-1), "gradient_noise takes a scale of at least 0, not -1."),
    ],
)
def test_error_messages(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence


def test_label_noise_has_its_rate_and_is_uniform():
    shares = label_noise(torch.full((60_000,), 2), classes=4, rate=0.3).bincount(minlength=4) / 60_000
    torch.testing.assert_close(shares, torch.tensor([0.1, 0.1, 0.7, 0.1]), atol=0.01, rtol=0)


def test_gradient_noise_has_its_deviation():
    w = torch.zeros(50_000, requires_grad=True)
    w.sum().backward()
    deviation = gradient_noise([w], step=9, scale=1.0)
    assert abs(deviation - 10**-0.275) < 1e-12
    assert abs(float(w.grad.std()) / deviation - 1) < 0.02
    assert abs(float(w.grad.mean()) - 1) < 0.02
