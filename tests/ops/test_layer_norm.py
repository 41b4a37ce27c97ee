"""Layer normalisation: the kernel equals the equation and torch's own."""

import pytest
import torch
import torch.nn.functional as F

from tests.ops.compare import PRECISION, agree
from wonderland.ops.layer_norm import layer_norm, reference


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", [(2,), (3, 5), (2, 7, 19), (4, 33, 64)])
def test_all_forms_agree(shape, dtype, bias):
    x = (3 + torch.randn(shape, dtype=dtype)).requires_grad_()
    gain, shift = (torch.randn(shape[-1], dtype=dtype, requires_grad=True) for _ in range(2))
    shift = shift if bias else None

    def torchs(x, gain, shift, eps):
        return F.layer_norm(x, shape[-1:], gain, shift, eps)

    forms = [lambda form=form: (form(x, gain, shift, 1e-3),) for form in (reference, torchs, layer_norm)]
    agree(forms, [x, gain] + ([shift] if bias else []), PRECISION[dtype])


def test_rows_that_do_not_lie_together_are_read_rightly():
    x = torch.randn(8, 5, 3).transpose(0, 2).requires_grad_()
    assert torch.allclose(layer_norm(x, torch.ones(8), None, 1e-6), reference(x, torch.ones(8), None, 1e-6), atol=1e-6)


def test_second_derivatives_go_through_the_equation():
    inputs = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((2, 5), (5,), (5,))]
    assert torch.autograd.gradgradcheck(lambda *given: layer_norm(*given, 1e-3), inputs)
