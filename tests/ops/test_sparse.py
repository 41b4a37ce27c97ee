"""Sparse products and softmaxes against dense matrices: values, gradients and gradients of gradients, with and without kernels."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.core.pattern import Pattern, SparseRows
from wonderland.ops import native, row_softmax, segment, sparse_product


def pattern_of(rows=7, columns=9, entries=20, seed=0):
    draw = torch.Generator().manual_seed(seed)
    row = torch.randint(0, rows - 1, (entries,), generator=draw)  # the last row is empty, places repeat
    return Pattern.of(row, torch.randint(0, columns, (entries,), generator=draw), rows, columns)[0]


@pytest.fixture(params=["kernel", "plain"])
def way(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(native, "usable", lambda *_: False)


@pytest.mark.parametrize("heads", [(), (3,)])
@pytest.mark.parametrize("width", [1, 7, 8, 16, 32, 64, 70])
def test_products(way, heads, width):
    torch.manual_seed(0)
    pattern = pattern_of()
    x = torch.randn(9, *heads, width, dtype=torch.float64, requires_grad=True)
    value = torch.randn(20, *heads, dtype=torch.float64, requires_grad=True)
    y, z = sparse_product.sparse_product(pattern, value, x), sparse_product.reference(pattern, value, x)
    torch.testing.assert_close(y, z)
    weight = torch.randn_like(y)
    for a, b in zip(
        torch.autograd.grad(y, (x, value), weight), torch.autograd.grad(z, (x, value), weight), strict=True
    ):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(
        sparse_product.sparse_product(pattern, None, x), sparse_product.reference(pattern, None, x)
    )


def test_gradients_of_gradients(way):
    pattern = pattern_of()
    x = torch.randn(9, 2, 2, dtype=torch.float64, requires_grad=True)
    value = torch.randn(20, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda v, x: sparse_product.sparse_product(pattern, v, x), (value, x))
    assert torch.autograd.gradgradcheck(lambda v: row_softmax.row_softmax(pattern, v), (value,))
    ends = x[:, 0].detach().requires_grad_(), torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda a, b: row_softmax.additive_attention(pattern, a, b), ends)


def test_softmaxes(way):
    torch.manual_seed(0)
    pattern = pattern_of()
    score = (torch.randn(20, 3, dtype=torch.float64) * 500).requires_grad_()
    share = row_softmax.row_softmax(pattern, score)
    torch.testing.assert_close(share, segment.segment_softmax(score, pattern.row, 7))
    a, b = (
        torch.randn(9, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(7, 3, dtype=torch.float64, requires_grad=True),
    )
    torch.testing.assert_close(row_softmax.additive_attention(pattern, a, b), row_softmax.reference(pattern, a, b))
    assert torch.autograd.gradcheck(lambda a, b: row_softmax.additive_attention(pattern, a, b), (a, b))
    assert torch.autograd.gradcheck(
        lambda s: row_softmax.row_softmax(pattern, s), ((score / 500).detach().requires_grad_(),)
    )


def test_products_do_not_depend_on_threads():
    pattern, x, value = pattern_of(500, 400, 5000), torch.randn(400, 64), torch.randn(5000)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(sparse_product.sparse_product(pattern, value, x))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)


def test_no_array_of_entries_times_width_is_made():
    pattern, x = pattern_of(50, 50, 100_000), torch.randn(50, 256, requires_grad=True)
    with torch.profiler.profile(profile_memory=True) as profile:
        sparse_product.sparse_product(pattern, torch.ones(100_000), x).sum().backward()
    largest = max(event.cpu_memory_usage for event in profile.key_averages())
    assert largest < 100_000 * 256 * 4 / 5


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "softmax"])
def test_segments(name):
    torch.manual_seed(0)
    op, ids = getattr(segment, f"segment_{name}"), torch.randint(0, 5, (20,))
    values = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    y = op(values, ids, 7)
    for i in range(5):
        rows = values[ids == i]
        if name == "softmax":
            torch.testing.assert_close(y[ids == i], rows.softmax(0))
        else:
            expected = getattr(rows, {"max": "amax", "min": "amin"}.get(name, name))(0)
            torch.testing.assert_close(y[i], expected)
    if name != "softmax":
        assert (y[5:] == 0).all()
    assert torch.autograd.gradcheck(lambda v: op(v, ids, 7), (values,))


def test_the_reference_of_sums():
    ids, values = torch.randint(0, 5, (20,)), torch.randn(20, 3)
    torch.testing.assert_close(segment.segment_sum(values, ids, 6), segment.reference_sum(values, ids, 6))
    torch.testing.assert_close(segment.segment_sum(values[:, 0], ids, 6), segment.reference_sum(values[:, 0], ids, 6))


def test_sparse_rows():
    dense = torch.randn(5, 4) * (torch.rand(5, 4) < 0.5)
    rows = SparseRows.of(dense)
    assert torch.equal(rows.dense(), dense)
    assert rows.drop(0.5, False) is rows
    kept = rows.drop(0.5, True).dense()
    assert ((kept == 0) | torch.isclose(kept, 2 * dense)).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sparse_product.sparse_product(pattern_of(), None, torch.ones(3, 2)), "A sparse matrix of 9 columns cannot be multiplied by 3 rows."),
        (lambda: sparse_product.sparse_product(pattern_of(), torch.ones(3), torch.ones(9, 2)), "sparse_product takes a value for each of 20 entries, not (3,)."),
        (lambda: segment.segment_sum(torch.ones(3), torch.zeros(2).long(), 2), "segment_sum takes one id for each of the 3 rows, not (2,)."),
        (lambda: SparseRows(pattern_of(), torch.ones(3)), "A sparse matrix with 20 places takes as many values, not 3."),
    ],
)  # fmt: skip
def test_faults_are_named(make, words):
    with pytest.raises(WonderlandError) as error:
        make()
    assert str(error.value) == words
