"""The squared rectifier equals its equation."""

import pytest
import torch

from tests.ops.compare import PRECISION, agree
from wonderland.ops.squared_relu import squared_relu


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 7, 19)])
def test_it_is_the_equation(shape, dtype):
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    agree([lambda: (x.clamp(min=0) ** 2,), lambda: (squared_relu(x),)], [x], PRECISION[dtype])


def test_the_input_stays_as_it_was():
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    y = squared_relu(x)
    y.sum().backward()
    assert x.tolist() == [-1, 0, 2]
    assert y.tolist() == [0, 0, 4]
    assert x.grad is not None
    assert x.grad.tolist() == [0, 0, 4]
