"""Root mean square normalisation: the kernel equals the equation and torch's own."""

import pytest
import torch
import torch.nn.functional as F

from tests.ops.compare import PRECISION, agree
from wonderland.ops.rms_norm import reference, rms_norm


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 7, 19), (4, 33, 64)])
def test_both_forms_agree(shape, dtype):
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    gain = torch.randn(shape[-1], dtype=dtype, requires_grad=True)
    forms = [lambda form=form: (form(x, gain, 1e-5),) for form in (reference, rms_norm)]
    agree(forms, [x, gain], PRECISION[dtype])


def test_it_is_that_of_torch():
    x, gain = torch.randn(2, 3, 8), torch.randn(8)
    assert torch.allclose(rms_norm(x, gain, 1e-6), F.rms_norm(x, (8,), gain, 1e-6), atol=1e-6)


def test_rows_that_do_not_lie_together_are_read_rightly():
    x = torch.randn(8, 5, 3).transpose(0, 2)
    assert torch.allclose(rms_norm(x, torch.ones(8), 1e-6), reference(x, torch.ones(8), 1e-6), atol=1e-6)
