"""A linear layer from few features equals torch's, whichever way its slopes are computed."""

import pytest
import torch
import torch.nn.functional as F

from tests.ops.compare import PRECISION, agree
from wonderland.ops.narrow_linear import FEW, MANY, narrow_linear, reference


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("shape", [(MANY, 1), (3, 129, 8), (2, 2, 99, FEW), (MANY - 1, 8), (300, FEW + 1), (0, 4)])
def test_both_forms_agree(shape, biased, dtype):
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    weight = torch.randn(11, shape[-1], dtype=dtype, requires_grad=True)
    bias = torch.randn(11, dtype=dtype, requires_grad=True) if biased else None
    given = [x, weight] if bias is None else [x, weight, bias]
    agree([lambda form=form: (form(x, weight, bias),) for form in (reference, narrow_linear)], given, PRECISION[dtype])


def test_a_part_of_wider_rows_and_inputs_without_slopes():
    wide, weight = torch.randn(300, 20), torch.randn(5, 8, requires_grad=True)
    slopes = [
        torch.autograd.grad(form(wide[:, :8], weight).square().sum(), weight)[0] for form in (F.linear, narrow_linear)
    ]
    torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-3)


def test_its_node_stands_only_where_it_is_worth_it_and_nobody_looks_inside():
    weight = torch.randn(5, 8, requires_grad=True)
    assert "Narrow" in type(narrow_linear(torch.randn(MANY, 8), weight).grad_fn).__name__
    assert "Narrow" not in type(narrow_linear(torch.randn(MANY - 1, 8), weight).grad_fn).__name__
    x = torch.randn(MANY, 8)
    slope = torch.func.grad(lambda w: narrow_linear(x, w).square().sum())(weight)
    torch.testing.assert_close(slope, torch.autograd.grad(F.linear(x, weight).square().sum(), weight)[0])


def test_it_can_be_differentiated_twice():
    x, weight = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((MANY, 2), (3, 2)))

    def curvature(form):
        first = torch.autograd.grad(form(x, weight).pow(3).sum(), (x, weight), create_graph=True)
        return torch.autograd.grad(sum(slope.square().sum() for slope in first), (x, weight))

    for found, expected in zip(curvature(narrow_linear), curvature(reference), strict=True):
        torch.testing.assert_close(found, expected)
