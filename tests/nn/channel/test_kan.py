"""Kolmogorov-Arnold layers against B-splines built elsewhere."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.interpolate import BSpline

from wonderland.core import WonderlandError
from wonderland.nn.channel.kan import KAN, splines


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_splines_are_scipys(degree):
    u = np.linspace(-1.3, degree + 2.4, 83)
    expected = np.nan_to_num(BSpline.basis_element(np.arange(degree + 2.0), extrapolate=False)(u))
    assert np.allclose(splines(torch.from_numpy(u), degree).numpy(), expected, atol=1e-14)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_splines_sum_to_one_on_the_grid(degree):
    u = torch.linspace(0, 1, 11, dtype=torch.float64).unsqueeze(-1) + torch.arange(degree + 1)
    assert torch.allclose(splines(u, degree).sum(-1), torch.ones(11, dtype=torch.float64))


@pytest.mark.parametrize(("grid", "degree"), [(5, 3), (4, 2), (1, 1)])
def test_a_layer_is_its_equation(grid, degree):
    layer = KAN(3, grid=grid, degree=degree, span=1.5).double()
    curves = layer.layers[0]
    step = 3 / grid
    knots = -1.5 + step * np.arange(-degree, grid + degree + 1)
    x = torch.randn(1, 7, 3, dtype=torch.float64)
    expected = torch.zeros(7, 3, dtype=torch.float64)
    for i in range(3):
        for j in range(3):
            column = x[0, :, j]
            expected[:, i] += curves.base[i, j].detach() * F.silu(column)
            for k in range(grid + degree):
                basis = BSpline.basis_element(knots[k : k + degree + 2], extrapolate=False)(column.numpy())
                expected[:, i] += curves.coefficients[i, j, k].item() * torch.from_numpy(np.nan_to_num(basis))
    assert torch.allclose(layer(x)[0], expected, atol=1e-12)


def test_the_number_of_coefficients():
    layer = KAN(3, hidden=4, grid=5, degree=3)
    assert [tuple(one.coefficients.shape) for one in layer.layers] == [(4, 3, 8), (3, 4, 8)]


def test_a_grid_can_be_learned():
    """One layer fits a curve that no linear layer can."""
    x = torch.linspace(-2, 2, 64).view(1, -1, 1)
    y = torch.sin(3 * x)
    layer = KAN(1, grid=12)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(layer(x), y)
        loss.backward()
        return loss

    optimizer.step(closure)
    assert F.mse_loss(layer(x), y) < 1e-3


def test_built_without_memory_it_works_once_weights_are_there():
    theirs, x = KAN(4, hidden=3), torch.randn(1, 5, 4)
    with torch.device("meta"):
        mixer = KAN(4, hidden=3)
    mixer.to_empty(device="cpu").load_state_dict(theirs.state_dict())
    assert torch.equal(mixer(x), theirs(x))


def test_what_cannot_be_built_is_told():
    with pytest.raises(WonderlandError) as error:
        KAN(3, degree=6)
    assert str(error.value) == (
        "KAN cannot be built with grid=5, degree=6, span=2.0: grid is at least 1, degree is 1 to 5, span is positive."
    )
