"""Fourier mixing, each row with the transform of its own length."""

import pytest
import torch

from wonderland.nn.mixers.fourier import Fourier, ragged_fft


def test_it_is_the_real_part_of_the_transform():
    x = torch.randn(2, 7, 4, dtype=torch.float64)
    assert torch.allclose(Fourier(4)(x), torch.fft.fft(torch.fft.fft(x, dim=2), dim=1).real)


def test_a_masked_row_gets_the_transform_of_its_length():
    x = torch.randn(3, 9, 4)
    mask = torch.arange(9) < torch.tensor([[9], [5], [1]])
    x[~mask] = torch.nan
    y = Fourier(4)(x, mask)
    for row, n in enumerate((9, 5, 1)):
        assert torch.allclose(y[row, :n], Fourier(4)(x[row : row + 1, :n])[0], atol=1e-5)
    assert (y[~mask] == 0).all()


@pytest.mark.parametrize("t", [1, 2, 3, 64, 1000])
def test_ragged_transforms_are_exact_at_any_length(t):
    x = torch.randn(1, t, 2, dtype=torch.complex128)
    assert torch.allclose(ragged_fft(x, torch.tensor([t])), torch.fft.fft(x, dim=1), atol=1e-10)


def test_gradients_under_a_mask():
    x = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    assert torch.autograd.gradcheck(lambda x: Fourier(3)(x, mask), x)


def test_half_precision_is_transformed_in_single():
    x = torch.randn(2, 5, 4).bfloat16()
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    for given in (None, mask):
        found = Fourier(4)(x, given)
        assert found.dtype == torch.bfloat16
        assert torch.equal(found, Fourier(4)(x.float(), given).bfloat16())
