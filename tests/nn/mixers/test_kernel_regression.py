"""Kernel regression: the estimator of Nadaraya and Watson with its kernels."""

import math

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.kernel_regression import KERNELS, KernelRegression

WEIGHTS = {
    "gaussian": lambda u: (-u.square() / 2).exp(),
    "boxcar": lambda u: (u <= 1).double(),
    "constant": torch.ones_like,
    "triangular": lambda u: (1 - u).clamp_min(0),
    "epanechnikov": lambda u: (1 - u.square()).clamp_min(0),
}


@pytest.mark.parametrize("kernel", WEIGHTS)
@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
def test_it_is_the_weighted_mean(kernel, width):
    queries, keys, values = (torch.randn(n, d, dtype=torch.float64) for n, d in ((9, 2), (30, 2), (30, 3)))
    model = KernelRegression(kernel=kernel, width=width).double()
    weights = WEIGHTS[kernel]((queries[:, None] - keys).norm(dim=-1) / width)
    total = weights.sum(1, keepdim=True)
    expected = weights @ values / total.where(total > 0, torch.ones_like(total))
    assert torch.allclose(model(queries, keys, values), expected, atol=1e-6)
    assert set(WEIGHTS) == set(KERNELS)


def test_a_query_out_of_reach_gets_zero_with_compact_kernels_and_the_nearest_with_the_gaussian():
    keys, values, far = torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0], [4.0]]), torch.tensor([[1e4]])
    for kernel in ("boxcar", "triangular", "epanechnikov"):
        model = KernelRegression(kernel=kernel)
        assert model(far, keys, values).item() == 0
        assert model.weights(far, keys).sum() == 0
    assert KernelRegression()(far, keys, values).item() == 4


@pytest.mark.parametrize("kernel", ["gaussian", "triangular", "epanechnikov"])
def test_gradients_are_finite_where_a_query_is_a_key(kernel):
    keys = torch.tensor([[0.0], [0.5], [3.0]], requires_grad=True)
    model = KernelRegression(kernel=kernel, trainable=True)
    model(keys, keys, torch.tensor([[1.0], [2.0], [5.0]])).sum().backward()
    assert keys.grad.isfinite().all()
    assert model.log_width.grad.isfinite()


def test_a_trained_width_follows_the_data():
    keys = torch.linspace(0, 6, 60).unsqueeze(1)
    values = 2 * keys.sin() + keys
    model = KernelRegression(width=2.0, trainable=True)
    apart = ~torch.eye(60, dtype=torch.bool)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(60):
        loss = (model(keys, keys, values, apart) - values).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert model.width < 0.3
    assert losses[-1] < losses[0] / 50


def test_hidden_keys_do_not_count():
    keys, values = torch.randn(5, 2), torch.randn(5, 1)
    mask = torch.tensor([[True, True, False, False, False]])
    model = KernelRegression()
    assert torch.allclose(model(keys[:1], keys, values, mask), model(keys[:1], keys[:2], values[:2]))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: KernelRegression(kernel="cosine"),
            "KernelRegression has no kernel 'cosine': "
            "take one of gaussian, boxcar, constant, triangular, epanechnikov.",
        ),
        (lambda: KernelRegression(width=0), "KernelRegression cannot be built with width=0: it is above 0."),
        (lambda: KernelRegression(width=math.nan), "KernelRegression needs width to be a finite number, not nan."),
    ],
)
def test_errors_say_what_to_do(build, sentence):
    with pytest.raises(WonderlandError) as error:
        build()
    assert str(error.value) == sentence
