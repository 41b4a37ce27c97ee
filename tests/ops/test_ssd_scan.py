"""The scan with one decay for each head: chunks and equation agree, whatever the length, the state and the groups."""

import pytest
import torch

from tests.ops.compare import PRECISION, agree
from wonderland.core import WonderlandError
from wonderland.ops.selective_scan import selective_scan
from wonderland.ops.ssd_scan import reference, ssd_scan


def inputs(t, h, p, g, n, dtype, *, ragged):
    def new(*shape):
        return torch.randn(shape, dtype=dtype, requires_grad=True)

    x, b, c = new(3, t, h, p), new(3, t, g, n), new(3, t, g, n)
    delta = torch.rand(3, t, h, dtype=dtype).requires_grad_()
    a = (-2 * torch.rand(h, dtype=dtype) - 0.01).requires_grad_()
    options = {"skip": new(h), "state": new(3, h, p, n)}
    leaves = [x, delta, a, b, c, *options.values()]
    options["lengths"] = torch.tensor([t, t // 2, 0]) if ragged else None
    return (x, delta, a, b, c), options, leaves


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("t", "h", "p", "g", "n"), [(1, 2, 3, 1, 2), (7, 4, 2, 2, 3), (37, 3, 1, 3, 4)])
def test_chunks_and_equation_agree(t, h, p, g, n, dtype):
    arrays, options, leaves = inputs(t, h, p, g, n, dtype, ragged=True)
    forms = [reference, ssd_scan, lambda *a, **o: ssd_scan(*a, **o, chunk=5)]
    agree([lambda form=form: form(*arrays, **options) for form in forms], leaves, 10 * PRECISION[dtype])


def test_with_heads_of_width_1_it_is_the_selective_scan():
    """A head of width 1 is a channel whose states share one decay."""
    (x, delta, a, b, c), options, _ = inputs(9, 4, 1, 1, 3, torch.float64, ragged=False)
    raw = torch.log(torch.expm1(delta))
    expected, last = selective_scan(
        x[..., 0], raw, a[:, None].expand(4, 3), b[:, :, 0], c[:, :, 0], skip=options["skip"],
        state=options["state"][:, :, 0].mT,
    )  # fmt: skip
    y, state = ssd_scan(x, delta, a, b, c, **options)
    torch.testing.assert_close(y[..., 0], expected)
    torch.testing.assert_close(state[:, :, 0].mT, last)


def test_large_steps_forget_without_overflow():
    (x, delta, a, b, c), _, _ = inputs(20, 2, 2, 1, 2, torch.float32, ragged=False)
    y, state = ssd_scan(x, delta * 1e4, a, b, c)
    assert torch.isfinite(y).all()
    assert torch.isfinite(state).all()


def test_heads_that_do_not_divide_are_refused():
    (x, delta, a, b, c), _, _ = inputs(3, 4, 2, 3, 2, torch.float32, ragged=False)
    with pytest.raises(WonderlandError) as error:
        ssd_scan(x, delta, a, b, c)
    assert str(error.value) == "ssd_scan takes heads in groups that share B and C: 4 heads cannot share 3 of them."
