"""Linear models of sparse rows agree with the dense solvers and with closed forms."""

import numpy as np
import torch

from wonderland.solvers import softmax_regression
from wonderland.solvers.sparse_linear import SparseMatrix, lbfgs, sparse_logistic, sparse_ridge, sparse_softmax


def sparse(dense):
    rows, columns = dense.nonzero(as_tuple=True)
    starts = torch.cat([torch.zeros(1, dtype=torch.long), torch.bincount(rows, minlength=len(dense)).cumsum(0)])
    return SparseMatrix(starts, columns, dense[rows, columns], dense.shape[1])


def example(rows=60, width=7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    return x * (torch.rand(rows, width, generator=generator) < 0.4), generator


def test_products_from_both_sides():
    x, generator = example()
    w = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    y = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(sparse(x).times(w), x @ w)
    torch.testing.assert_close(sparse(x).transposed_times(y), x.T @ y)
    empty = sparse(torch.zeros(2, 3, dtype=torch.float64))
    assert empty.times(torch.ones(3, 1, dtype=torch.float64)).tolist() == [[0.0], [0.0]]


def test_softmax_is_that_of_the_dense_solver():
    x, generator = example()
    y = torch.randint(3, (60,), generator=generator)
    dense = softmax_regression(x, y, classes=3, ridge=0.5)
    found = sparse_softmax(sparse(x), y, 3, ridge=0.5, tolerance=1e-8, steps=500)
    expected = x @ dense.weights.T + dense.bias
    given = x @ found[:-1] + found[-1]
    torch.testing.assert_close(given.softmax(1), expected.softmax(1), atol=1e-5, rtol=0)


def test_two_labels_are_two_logistic_regressions():
    x, generator = example()
    y = (torch.rand(60, 2, generator=generator) < 0.5).long()
    together = sparse_logistic(sparse(x), y, ridge=1.0, tolerance=1e-8, steps=500)
    for k in range(2):
        # With two classes, softmax regression is logistic regression with half the ridge.
        alone = softmax_regression(x, y[:, k], classes=2, ridge=2.0)
        expected = (x @ alone.weights.T + alone.bias).softmax(1)[:, 1]
        torch.testing.assert_close((x @ together[:-1, k] + together[-1, k]).sigmoid(), expected, atol=1e-5, rtol=0)


def test_ridge_solves_the_normal_equations():
    x, generator = example()
    y = torch.randn(60, 1, generator=generator, dtype=torch.float64)
    found = sparse_ridge(sparse(x), y, ridge=0.7, tolerance=1e-10, steps=500)
    design = torch.cat([x, torch.ones(60, 1, dtype=torch.float64)], 1)
    penalty = torch.diag(torch.tensor([0.7] * 7 + [0.0], dtype=torch.float64))
    torch.testing.assert_close(found, torch.linalg.solve(design.T @ design + penalty, design.T @ y), atol=1e-6, rtol=0)


def test_lbfgs_crosses_a_curved_valley():
    def rosenbrock(theta):
        x = theta.detach().requires_grad_()
        value = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        (gradient,) = torch.autograd.grad(value, x)
        return float(value.detach()), gradient

    found, steps = lbfgs(rosenbrock, torch.tensor([-1.2, 1.0], dtype=torch.float64), steps=200, tolerance=1e-9)
    np.testing.assert_allclose(found, [1, 1], atol=1e-6)
    assert steps < 100
