"""The kernels of recurrences against the loop that reads like the equations."""

import pytest
import torch

from wonderland import nn
from wonderland.core import WonderlandError
from wonderland.ops import native
from wonderland.ops.cells import CELLS
from wonderland.ops.recurrence import _threads, recurrence, reference

SHAPES = [(3, 5, 4, 6), (1, 7, 3, 37), (5, 9, 2, 16), (7, 2, 5, 33)]

needs_kernels = pytest.mark.skipif(not native.available(), reason="no compiler")


def drawn(cell, b, t, d, e, dtype=torch.float64):
    """Inputs of one recurrence, all asking for gradients."""
    kind = CELLS[cell]

    def leaf(*sizes):
        return (torch.randn(*sizes, dtype=dtype) * sizes[-1] ** -0.5).requires_grad_()

    g = kind.gates * e
    first = [leaf(b, t, d), leaf(g, d), leaf(g, e), leaf(g), tuple(leaf(b, e) for _ in range(kind.states))]
    return first, leaf(e) if cell == "gru_after" else None


def outcome(function, cell, first, extra, **more):
    """Outputs, last states and every gradient of a random sum of them."""
    y, last = function(cell, *first, extra=extra, **more)
    generator = torch.Generator().manual_seed(1)
    outs = [y, *last]
    total = sum((out * torch.randn(out.shape, generator=generator, dtype=out.dtype)).sum() for out in outs)
    leaves = [*first[:4], *first[4], *([] if extra is None else [extra])]
    return outs + list(torch.autograd.grad(total, leaves))


@needs_kernels
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ragged", [False, True])
def test_kernel_equals_reference_in_values_and_gradients(cell, shape, ragged):
    b, t, _, _ = shape
    more = {"leak": 0.3} if cell.startswith("rnn") else {}
    if ragged:
        more["lengths"] = torch.randint(0, t + 1, (b,))
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
        given = drawn(cell, *shape, dtype=dtype)
        for found, expected in zip(
            outcome(recurrence, cell, *given, **more), outcome(reference, cell, *given, **more), strict=True
        ):
            torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@needs_kernels
@pytest.mark.parametrize("cell", ["rnn_tanh", "lstm", "gru_after", "gru_before", "ligru_tanh"])
@pytest.mark.parametrize("b", [1, 5])
def test_threads_share_rows_or_units_without_changing_the_answer(cell, b):
    given = drawn(cell, b, 6, 3, 300)
    alone = outcome(recurrence, cell, *given)
    try:
        torch.set_num_threads(2)
        assert _threads(b, 6, 300, CELLS[cell].gates) == (2, int(b == 1))
        shared = outcome(recurrence, cell, *given)
    finally:
        torch.set_num_threads(1)
    for one, other in zip(alone, shared, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@needs_kernels
@pytest.mark.parametrize("cell", ["lstm", "gru_after", "gru_before", "rnn_relu", "ligru_identity"])
def test_second_derivatives_are_those_of_the_reference(cell):
    first, extra = drawn(cell, 2, 4, 3, 5)
    found = []
    for function in (recurrence, reference):
        y, _ = function(cell, *first, extra=extra)
        (slope,) = torch.autograd.grad(y.square().sum(), first[0], create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), first[2])[0])
    torch.testing.assert_close(*found)


@needs_kernels
@pytest.mark.parametrize("cell", ["lstm", "gru_after", "gru_before", "rnn_tanh", "ligru_tanh"])
def test_gradients_without_a_loss_on_all_outputs_or_weights_that_learn(cell):
    first, extra = drawn(cell, 2, 5, 3, 4)
    frozen = [value.detach() for value in first[1:4]]
    first = [first[0], *frozen, tuple(value.detach() for value in first[4])]
    extra = None if extra is None else extra.detach()
    found = []
    for function in (recurrence, reference):
        _, last = function(cell, *first, extra=extra)
        found.append(torch.autograd.grad(last[-1].sum(), first[0])[0])
    torch.testing.assert_close(*found)


@needs_kernels
@pytest.mark.parametrize("cell", ["lstm", "gru_after", "gru_before", "rnn_tanh", "ligru_tanh"])
def test_tensors_that_do_not_lie_in_order_give_the_same(cell):
    (x, wi, ws, bias, state), extra = drawn(cell, 3, 5, 4, 6)
    lying = (
        x.transpose(0, 2).contiguous().transpose(0, 2),
        wi.t().contiguous().t(),
        ws.t().contiguous().t(),
        bias.unsqueeze(1).repeat(1, 2)[:, 0],
        tuple(one.t().contiguous().t() for one in state),
    )
    spread = None if extra is None else extra.unsqueeze(1).repeat(1, 2)[:, 0]
    lengths = torch.tensor([5, 0, 1, 0, 3, 0])
    leaves = [x, wi, ws, bias, *state]
    found = []
    for given, more, counts in ((lying, spread, lengths[::2]), ((x, wi, ws, bias, state), extra, lengths[::2].clone())):
        y, last = recurrence(cell, *given, extra=more, lengths=counts)
        total = y.square().sum() + last[0].square().sum()
        found.append([y, *last, *torch.autograd.grad(total, leaves)])
    torch.testing.assert_close(*found)


@needs_kernels
def test_half_precision_contexts_do_not_reach_the_kernel():
    first, extra = drawn("lstm", 2, 5, 3, 4, dtype=torch.float32)
    plain, _ = recurrence("lstm", *first, extra=extra)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside, _ = recurrence("lstm", *first, extra=extra)
    assert torch.equal(plain, inside)


@needs_kernels
def test_a_row_does_not_see_nan_in_its_mates():
    first, extra = drawn("gru_after", 4, 5, 3, 9)
    clean, _ = recurrence("gru_after", *first, extra=extra)
    dirty = first[0].detach().clone()
    dirty[2] = torch.nan
    found, _ = recurrence("gru_after", dirty, *first[1:], extra=extra)
    assert torch.equal(found[[0, 1, 3]], clean[[0, 1, 3]])
    assert found[2].isnan().all()


@needs_kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tanh_of_the_kernel_is_accurate_from_tiny_to_huge_arguments(dtype):
    size = torch.logspace(-12, 2, 400, dtype=dtype)
    x = torch.cat([-size, size]).view(-1, 1, 1).expand(-1, 2, 1).contiguous()
    zero, one = torch.zeros(1, 1, dtype=dtype), torch.ones(1, 1, dtype=dtype)
    found, _ = recurrence("rnn_tanh", x, one, zero, None, (torch.zeros(len(x), 1, dtype=dtype),))
    torch.testing.assert_close(found, torch.tanh(x), rtol=8 * torch.finfo(dtype).eps, atol=0)


def test_an_unknown_recurrence_is_refused_with_the_nearest_name():
    first, _ = drawn("lstm", 1, 2, 2, 2)
    with pytest.raises(WonderlandError) as error:
        recurrence("lstn", *first)
    assert str(error.value) == "There is no recurrence called 'lstn'. Did you mean 'lstm'?"


@pytest.mark.parametrize("cell", [nn.GRU, nn.LSTM, nn.RNN, nn.LiGRU])
def test_the_way_back_under_autocast(cell):
    x = torch.randn(3, 9, 4)
    module = cell(4)
    expected = torch.autograd.grad(module(x).sum(), list(module.parameters()))
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.autograd.grad(module(x).float().sum(), list(module.parameters()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
