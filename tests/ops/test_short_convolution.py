"""Short convolutions: the kernel equals the equation, and a tail continues a sequence."""

import pytest
import torch
import torch.nn.functional as F

from tests.ops.compare import PRECISION, agree
from wonderland.ops.short_convolution import reference, short_convolution


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("silu", [False, True])
@pytest.mark.parametrize(("t", "d", "w"), [(1, 3, 4), (2, 19, 4), (70, 5, 3), (33, 8, 1)])
def test_both_forms_agree(t, d, w, silu, dtype):
    def new(*shape):
        return torch.randn(shape, dtype=dtype, requires_grad=True)

    # Rows that do not follow each other closely: half of a wider projection.
    wide, weight, bias, tail = new(3, t, 2 * d), new(d, w), new(d), new(3, w - 1, d)
    leaves = [wide, weight, bias, *([tail] if w > 1 else [])]
    forms = [
        lambda form=form: (form(wide[..., :d], weight, bias, tail=tail, silu=silu),)
        for form in (reference, short_convolution)
    ]
    agree(forms, leaves, PRECISION[dtype])


def test_it_is_a_grouped_convolution():
    x, weight = torch.randn(2, 9, 5), torch.randn(5, 4)
    expected = F.conv1d(F.pad(x.mT, (3, 0)), weight.unsqueeze(1), groups=5).mT
    assert torch.allclose(short_convolution(x, weight), expected, atol=1e-6)
