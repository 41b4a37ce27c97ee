"""Linear scans: kernel, chunks and equation agree for real and complex elements; the scan by halving counts as the book does."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import PRECISION, agree, close
from wonderland.ops.scan import associative_scan, chunked, compose, linear_scan, reference

FORMS = (reference, linear_scan, chunked)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128, torch.complex64])
@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize(
    ("t", "d", "state", "ragged"), [(1, 3, True, False), (7, 300, True, True), (70, 5, False, False)]
)
def test_all_forms_agree(t, d, state, ragged, varying, dtype):
    x = torch.randn(3, t, d, dtype=dtype, requires_grad=True)
    a = (0.5 * torch.randn((3, t, d) if varying else (d,), dtype=dtype)).requires_grad_()
    first = torch.randn(3, d, dtype=dtype, requires_grad=True) if state else None
    lengths = torch.tensor([t, t // 2, 0]) if ragged else None
    leaves = [y for y in (a, x, first) if y is not None]
    forms = [lambda form=form: (form(a, x, first, lengths=lengths),) for form in FORMS]
    agree(forms, leaves, 10 * PRECISION[dtype])


def test_beyond_its_length_a_row_keeps_its_state():
    h = linear_scan(torch.tensor([0.5]), torch.ones(1, 4, 1), lengths=torch.tensor([2]))
    assert h.flatten().tolist() == [1.0, 1.5, 1.5, 1.5]


@pytest.mark.parametrize(("n", "operations"), [(1, 0), (2, 1), (6, 7), (8, 11), (16, 26), (100, 190)])
def test_the_scan_by_halving_uses_as_many_operations_as_the_book_counts(n, operations):
    assert associative_scan(lambda a, b: a + b, list(range(n)))[1] == operations


@given(st.lists(st.text(max_size=2), min_size=0, max_size=40), st.booleans())
@settings(deadline=None)
def test_the_scan_by_halving_keeps_the_order_of_operands(pieces, reverse):
    found, _ = associative_scan(lambda a, b: a + b, pieces, reverse=reverse)
    if reverse:
        assert found == ["".join(pieces[i:]) for i in range(len(pieces))]
    else:
        assert found == ["".join(pieces[: i + 1]) for i in range(len(pieces))]


@pytest.mark.parametrize("operation", [torch.add, torch.mul, torch.maximum, torch.matmul])
def test_prefixes_under_an_operation_are_those_of_a_loop(operation):
    elements = list(torch.randn(11, 3, 3, dtype=torch.float64))
    found, _ = associative_scan(operation, elements)
    expected = elements[0]
    for i, prefix in enumerate(found):
        expected = expected if i == 0 else operation(expected, elements[i])
        assert torch.allclose(prefix, expected)


@pytest.mark.parametrize("dense", [False, True])
def test_states_are_prefixes_of_affine_steps(dense):
    t, e = 9, 3
    a = torch.randn(t, e, e, dtype=torch.float64) if dense else torch.randn(t, e, dtype=torch.float64)
    x = torch.randn(t, e, dtype=torch.float64)
    found, _ = associative_scan(compose, list(zip(a, x, strict=True)))
    s = torch.zeros(e, dtype=torch.float64)
    for i, (_, state) in enumerate(found):
        s = (a[i] @ s if dense else a[i] * s) + x[i]
        assert torch.allclose(state, s)


@given(st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_composing_affine_steps_is_associative(seed):
    torch.manual_seed(seed)
    one, two, three = ((torch.randn(2, 2, dtype=torch.float64), torch.randn(2, dtype=torch.float64)) for _ in range(3))
    left, right = compose(compose(one, two), three), compose(one, compose(two, three))
    close(left[0], right[0], 1e-12)
    close(left[1], right[1], 1e-12)


def test_gradients_flow_through_the_scan_by_halving():
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    found, _ = associative_scan(torch.mul, list(x))
    (grad,) = torch.autograd.grad(torch.stack(found).sum(), x)
    (expected,) = torch.autograd.grad(x.cumprod(0).sum(), x)
    assert torch.allclose(grad, expected)


@pytest.mark.parametrize("t", [7, 33, 70])
def test_growth_beyond_all_numbers_leaves_zeros_alone(t):
    """Thirty-two steps of a thousandfold growth are infinite, and times nothing still nothing."""
    a, x = torch.full((2, t, 3), 1000.0, requires_grad=True), torch.zeros(2, t, 3, requires_grad=True)
    h = chunked(a, x)
    h[:, :5].sum().backward()
    assert h.eq(0).all()
    assert torch.equal(a.grad, torch.zeros_like(a))
    expected = torch.autograd.grad(reference(a, x)[:, :5].sum(), x)[0]
    assert torch.allclose(x.grad, expected)


@pytest.mark.slow
def test_growth_beyond_all_numbers_leaves_zeros_alone_where_nobody_can_look():
    a, x = torch.full((1, 40, 1), 1000.0), torch.zeros(1, 40, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's compiler makes a function of autograd's, and warns of it
        assert torch.compile(chunked, backend="aot_eager")(a, x).eq(0).all()
    assert chunked(a.to("meta"), x.to("meta")).shape == x.shape
