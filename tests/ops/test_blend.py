"""Token shift: the kernel equals the equation, with and without a token before the first."""

import pytest
import torch

from tests.ops.compare import PRECISION, agree
from wonderland.ops.blend import STRETCH, blend, reference


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("three", "before"), [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize(("b", "t", "d"), [(1, 1, 1), (2, 7, 5), (3, STRETCH + 9, 19), (1, 2 * STRETCH, 16)])
def test_the_kernel_is_the_equation(b, t, d, three, before, dtype):
    x = torch.randn(b, t, d, dtype=dtype, requires_grad=True)
    last = torch.randn(b, 1, d, dtype=dtype, requires_grad=True) if before else None
    shares = [torch.rand(d, dtype=dtype, requires_grad=True) for _ in range(3 if three else 2)]
    leaves = [x, *([last] if before else []), *shares]
    agree([lambda: reference(x, last, *shares), lambda: blend(x, last, *shares)], leaves, PRECISION[dtype])


def test_second_derivatives_and_outputs_that_nobody_uses():
    x = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    last, shares = torch.randn(2, 1, 3, dtype=torch.float64, requires_grad=True), torch.rand(3, 3, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(lambda *given: blend(*given, *shares), (x, last))
    first = blend(x, last, *shares)[0]
    expected = torch.autograd.grad(reference(x, last, *shares)[0].sin().sum(), (x, last))
    found = torch.autograd.grad(first.sin().sum(), (x, last))
    assert all(torch.allclose(one, two) for one, two in zip(found, expected, strict=True))


def test_parts_of_wider_tensors():
    wide = torch.randn(2, 6, 10)
    x, shares = wide[..., 3:7], torch.rand(2, 4)
    pairs = zip(blend(x, None, *shares), reference(x, None, *shares), strict=True)
    assert all(torch.allclose(one, two) for one, two in pairs)
