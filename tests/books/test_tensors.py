"""Tensors and linear algebra as the books use them: torch does it, and here is what they say about it."""

import math

import numpy as np
import pytest
import torch
from torch import tensor

from wonderland import autodiff
from wonderland.tasks import losses


def test_creation():
    assert torch.arange(3).tolist() == [0, 1, 2]
    assert torch.zeros(2, 1).tolist() == [[0], [0]]
    assert torch.ones(2).sum() == 2
    assert tensor([[1, 2], [3, 4]]).shape == (2, 2)
    many = torch.randn(100_000, generator=torch.Generator().manual_seed(0))
    assert abs(many.mean()) < 0.02
    assert abs(many.std() - 1) < 0.02


def test_reshape_infers_an_axis_and_keeps_the_elements():
    x = torch.arange(12)
    assert x.reshape(3, -1).shape == x.reshape(-1, 4).shape == (3, 4)
    assert x.numel() == x.reshape(3, 4).numel()
    assert torch.equal(x.reshape(3, 4).reshape(-1), x)
    with pytest.raises(RuntimeError, match="invalid for input of size 12"):
        x.reshape(5, -1)


def test_slices_are_views_that_can_be_written():
    x = torch.arange(12).reshape(3, 4)
    assert x[-1].tolist() == [8, 9, 10, 11]
    assert x[1:3].shape == (2, 4)
    x[0:2, :] = 12
    assert x[:2].eq(12).all()
    cube = torch.zeros(5, 6, 7)
    assert cube[1].shape == (6, 7)  # Alice 2.1: X_i
    assert cube[1, :, 2:5].shape == (6, 3)  # X_{i,:,j:k}: the upper end is left out


def test_elementwise_arithmetic_and_comparison():
    a, b = tensor([1.0, 2, 4, 8]), tensor([2.0, 2, 2, 2])
    assert (a + b).tolist() == [3, 4, 6, 10]
    assert (a**b).tolist() == [1, 4, 16, 64]
    assert torch.equal(torch.pow(a, b), a**b)
    assert (a == b).tolist() == torch.eq(a, b).tolist() == [False, True, False, False]
    torch.testing.assert_close(torch.exp(a).log(), a)


def test_concatenation_along_either_axis():
    a, b = torch.zeros(3, 4), torch.ones(3, 4)
    assert torch.cat((a, b), 0).shape == (6, 4)
    assert torch.cat((a, b), 1).shape == (3, 8)


def test_sums_keep_their_axis_when_asked():
    a = torch.arange(6.0).reshape(2, 3)
    assert a.sum() == 15
    assert a.mean(0).tolist() == [1.5, 2.5, 3.5]
    assert a.sum(1, keepdim=True).shape == (2, 1)
    torch.testing.assert_close((a / a.sum(1, keepdim=True)).sum(1), torch.ones(2))
    assert a.cumsum(0)[-1].tolist() == a.sum(0).tolist()
    assert (a @ torch.ones(3)).tolist() == a.sum(1).tolist()  # Alice: a sum is a product with ones


def test_broadcasting_repeats_axes_of_size_one():
    assert (torch.arange(3).reshape(3, 1) + torch.arange(2).reshape(1, 2)).shape == (3, 2)
    column, row = torch.broadcast_tensors(torch.arange(3).reshape(3, 1), torch.arange(2).reshape(1, 2))
    assert column.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert row.tolist() == [[0, 1]] * 3
    assert (torch.zeros(4, 1) + torch.zeros(4)).shape == (4, 4)  # Alice, box C.2.1: usually a mistake
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.zeros(3) + torch.zeros(2)


def test_writing_in_place_keeps_the_memory():
    x = torch.zeros(3)
    home = x.data_ptr()
    x[:] = x + 1
    x += 1
    torch.add(x, 1, out=x)
    x.add_(1)
    assert x.data_ptr() == home
    assert x.tolist() == [4, 4, 4]


def test_numpy_and_torch_share_memory_and_one_number_leaves_by_item():
    x = torch.zeros(2)
    y = x.numpy()
    x += 1
    assert isinstance(y, np.ndarray)
    assert y.tolist() == [1, 1]
    assert torch.from_numpy(y).tolist() == [1, 1]
    assert tensor([3.5]).item() == 3.5


def test_transposes_and_symmetry():
    a = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(a.T.T, a)
    batch = torch.randn(5, 2, 3)
    assert torch.equal(batch.mT, torch.transpose(batch, 1, 2))
    assert torch.equal(batch.mT[4], batch[4].T)
    assert torch.equal((a @ a.T).T, a @ a.T)  # the Gram matrix is symmetric
    b = torch.randn(3, 3)
    assert torch.equal(b + b.T, (b + b.T).T)


def test_products_of_vectors_matrices_and_batches():
    assert (tensor([0.1, 0.0, -0.3]) @ tensor([-4.0, 0.05, 0.1])).item() == pytest.approx(-0.43)
    a, b = torch.randn(4, 5, 2), torch.randn(4, 2, 3)
    assert torch.bmm(a, b).shape == (4, 5, 3)
    torch.testing.assert_close(torch.bmm(a, b)[2], a[2] @ b[2])
    torch.testing.assert_close((a[0] @ b[0])[1, 2], a[0][1] @ b[0][:, 2])
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counted:
        _ = torch.randn(7, 11) @ torch.randn(11, 13)
    assert counted.get_total_flops() == 2 * 7 * 11 * 13  # O(abc)
    product = autodiff.trace(torch.matmul, torch.randn(7, 11), torch.randn(11, 13))
    assert product.flops == 2 * 7 * 11 * 13


def test_the_elementwise_product_masks():
    x, keep = torch.randn(3, 4), torch.rand(3, 4) < 0.5
    assert torch.equal(torch.mul(x, keep), x * keep)
    assert torch.equal(x * keep, torch.where(keep, x, torch.zeros(())))


def test_the_exponential_of_a_matrix_is_not_that_of_its_entries():
    zero = torch.zeros(3, 3)
    assert torch.equal(torch.linalg.matrix_exp(zero), torch.eye(3))
    assert torch.equal(torch.exp(zero), torch.ones(3, 3))
    x = torch.randn(5, 5, dtype=torch.float64)
    series, term = torch.eye(5, dtype=torch.float64), torch.eye(5, dtype=torch.float64)
    for k in range(1, 60):
        term = term @ x / k
        series = series + term
    torch.testing.assert_close(torch.linalg.matrix_exp(x), series)


def test_norms():
    u = tensor([3.0, -4.0])
    assert torch.linalg.vector_norm(u) == 5
    assert torch.linalg.vector_norm(u, 1) == 7
    assert torch.linalg.vector_norm(u, math.inf) == 4
    assert torch.linalg.norm(torch.ones(4, 9)) == 6
    a, b = torch.randn(2, 6)
    assert torch.linalg.vector_norm(a + b) <= torch.linalg.vector_norm(a) + torch.linalg.vector_norm(b) + 1e-6
    torch.testing.assert_close((a - b).square().sum(), a @ a + b @ b - 2 * a @ b)


def test_angles():
    assert torch.cosine_similarity(tensor([1.0, 0]), tensor([0.0, 2]), 0) == 0
    torch.testing.assert_close(
        torch.cosine_similarity(tensor([1.0, 0]), tensor([1.0, 1]), 0).acos(), tensor(math.pi / 4)
    )
    units = torch.nn.functional.normalize(torch.randn(500, 3), dim=1)
    best = (units @ units[0]).argmax()  # the unit vector most like x is x
    assert best == 0


def test_a_hyperplane_cuts_space_in_two():
    w, b = tensor([2.0, 1.0]), -1.0
    assert tensor([1.0, 0.0]) @ w + b > 0
    assert tensor([0.0, 0.0]) @ w + b < 0
    away = tensor([1.0, -2.0])  # at a right angle to w: no step along it leaves its side
    assert away @ w == 0


def test_rank_counts_independent_columns():
    a = tensor([[1.0, 2.0], [2.0, 4.0]])
    assert torch.linalg.matrix_rank(a) == 1
    assert torch.linalg.matrix_rank(torch.randn(4, 3, dtype=torch.float64)) == 3
    # D: "the number of non-zero eigenvalues" is wrong where there are too few eigenvectors.
    shift = tensor([[0.0, 1.0], [0.0, 0.0]])
    assert torch.linalg.matrix_rank(shift) == 1
    assert torch.linalg.eigvals(shift).abs().max() == 0


def test_solving_is_better_than_inverting():
    n = 12
    i = torch.arange(n, dtype=torch.float64)
    hilbert = 1 / (i[:, None] + i[None, :] + 1)
    right = hilbert.sum(1)
    left = lambda x: (hilbert @ x - right).norm()  # noqa: E731
    assert left(torch.linalg.solve(hilbert, right)) < 1e-3 * left(torch.linalg.inv(hilbert) @ right)


def test_determinants_are_volumes():
    assert torch.linalg.det(tensor([[2.0, 0.0], [0.0, 3.0]])).item() == pytest.approx(6)
    a, b = torch.randn(2, 4, 4, dtype=torch.float64)
    torch.testing.assert_close(torch.linalg.det(a @ b), torch.linalg.det(a) * torch.linalg.det(b))
    sign, log = torch.linalg.slogdet(1e-200 * torch.eye(3, dtype=torch.float64))  # det itself underflows
    assert (sign, round(log.item(), 6)) == (1, round(3 * math.log(1e-200), 6))


def test_einsum():
    a, b = torch.randn(4, 5, 2), torch.randn(4, 2, 3)
    torch.testing.assert_close(torch.einsum("ijz,izk->ijk", a, b), torch.bmm(a, b))
    torch.testing.assert_close(torch.einsum("ijk,ijk->", a, a), a.flatten() @ a.flatten())
    c = torch.randn(4, 6, 2)
    torch.testing.assert_close(torch.einsum("ijz,ikz->ijk", a, c), a @ c.transpose(1, 2))
    square = torch.randn(3, 3)
    torch.testing.assert_close(torch.einsum("ii", square), square.trace())


def test_eigenvalues_give_powers():
    a = tensor([[2.0, 1.0], [2.0, 3.0]], dtype=torch.float64)
    values, vectors = torch.linalg.eig(a)
    assert sorted(values.real.tolist()) == pytest.approx([1, 4])
    power = (vectors @ torch.diag(values**5) @ torch.linalg.inv(vectors)).real
    torch.testing.assert_close(power, torch.linalg.matrix_power(a, 5))
    symmetric = a + a.T
    values, vectors = torch.linalg.eigh(symmetric)
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(vectors @ torch.diag(values) @ vectors.T, symmetric)


def test_log_sum_exp_does_not_overflow():
    x = tensor([1000.0, 0.0])
    assert torch.exp(x).sum().log().isinf()
    assert torch.logsumexp(x, 0) == 1000
    y = torch.randn(5, dtype=torch.float64, requires_grad=True)
    for shift in (-3.0, 7.0):  # any number may be taken out, not only one of at least 0
        torch.testing.assert_close(torch.logsumexp(y - shift, 0) + shift, torch.logsumexp(y, 0))
    (slope,) = torch.autograd.grad(torch.logsumexp(y, 0), y)
    torch.testing.assert_close(slope, y.softmax(0))  # Alice 4.3.2 prints it the other way round


def test_cross_entropy_of_large_logits_is_finite():
    """D2L 4.5: log-sum-exp less the logit of the true class, without the overflow of exp."""
    logits = tensor([[1000.0, 0.0, -1000.0], [0.5, 2.0, -1.0]], dtype=torch.float64, requires_grad=True)
    loss = losses.cross_entropy(logits, tensor([1, 0]), reduction="none")
    expected = torch.logsumexp(logits, 1) - logits[[0, 1], [1, 0]]
    torch.testing.assert_close(loss, expected)
    assert loss[0] == 1000
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    torch.testing.assert_close(gradient, logits.softmax(1) - tensor([[0.0, 1, 0], [1, 0, 0]]))


def test_sequences_of_several_lengths_become_one_table():
    rows = [tensor([1, 2, 3]), tensor([4])]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    assert padded.tolist() == [[1, 2, 3], [4, 0, 0]]


def test_one_hot_vectors_are_equally_far_apart():
    rows = torch.nn.functional.one_hot(torch.arange(3)).double()
    distances = torch.cdist(rows, rows)
    torch.testing.assert_close(distances, math.sqrt(2) * (1 - torch.eye(3, dtype=torch.float64)))
