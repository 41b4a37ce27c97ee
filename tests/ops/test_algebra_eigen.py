"""Eigenvalues, conditioning: the theorems of the books on random matrices, and what is said of bad ones."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland import WonderlandError
from wonderland.ops.algebra import (
    condition_number,
    dependent_columns,
    gershgorin,
    principal_eigenvalue,
    rescale,
    solve,
    spectral_radius,
)

sizes = st.integers(1, 6)
seeds = st.integers(0, 10**6)


def matrix(seed, n, m=None):
    return torch.randn(n, m or n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(sizes, seeds)
@settings(max_examples=60, deadline=None)
def test_every_eigenvalue_lies_in_a_disc_of_the_rows_and_of_the_columns(n, seed):
    a = matrix(seed, n)
    values = torch.linalg.eigvals(a)
    assert gershgorin(a).contain(values, 1e-9).all()
    assert gershgorin(a.T).contain(values, 1e-9).all()
    assert values.abs().max() <= gershgorin(a).radius + 1e-9


@given(sizes, seeds)
@settings(max_examples=30, deadline=None)
def test_dominant_diagonals_are_invertible(n, seed):
    a = matrix(seed, n)
    a = a + torch.diag(a.diagonal().sign() * a.abs().sum(1))
    assert gershgorin(a).regular
    assert condition_number(a) < 1e6


def test_discs_can_exclude():
    assert not gershgorin([[1.0, 0.0], [0.0, 2.0]]).contain(torch.tensor([1.5])).any()
    assert not gershgorin([[1.0, 2.0], [2.0, 1.0]]).regular


@given(sizes, seeds)
@settings(max_examples=40, deadline=None)
def test_the_principal_eigenvalue_of_a_positive_matrix(n, seed):
    a = matrix(seed, n).abs() + 0.1
    pair = principal_eigenvalue(a)
    values = torch.linalg.eigvals(a)
    assert pair.value == pytest.approx(float(values.abs().max()), rel=1e-8)
    torch.testing.assert_close(a @ pair.vector, pair.value * pair.vector, rtol=0, atol=1e-8)


@given(sizes, seeds)
@settings(max_examples=40, deadline=None)
def test_the_spectral_radius_with_complex_pairs(n, seed):
    a = matrix(seed, n)
    wanted = float(torch.linalg.eigvals(a).abs().max())
    assert spectral_radius(a) == pytest.approx(wanted, rel=1e-7, abs=1e-9)
    assert spectral_radius(rescale(a, 0.5)) == pytest.approx(0.5, rel=1e-7)


def test_a_gaussian_matrix_has_a_radius_of_about_the_root_of_its_size():
    assert spectral_radius(matrix(0, 400)) == pytest.approx(20, rel=0.1)


def test_powers_of_a_rescaled_matrix_neither_explode_nor_vanish():
    a, v = rescale(matrix(1, 20)), torch.ones(20, dtype=torch.float64)
    for _ in range(2000):
        v = a @ v
    assert 1e-3 < v.norm() < 1e3


@given(sizes, seeds)
@settings(max_examples=40, deadline=None)
def test_the_condition_number_bounds_the_growth_of_errors(n, seed):
    a, b, shift = matrix(seed, n), matrix(seed + 1, n, 1)[:, 0], 1e-6 * matrix(seed + 2, n, 1)[:, 0]
    x, moved = torch.linalg.solve(a, b), torch.linalg.solve(a, b + shift)
    assert condition_number(a) >= 1 - 1e-12
    assert condition_number(a) == pytest.approx(condition_number(torch.linalg.inv(a)), rel=1e-6)
    assert (moved - x).norm() / x.norm() <= condition_number(a) * shift.norm() / b.norm() * (1 + 1e-4) + 1e-9


@given(st.integers(2, 5), seeds)
@settings(max_examples=40, deadline=None)
def test_a_combination_of_columns_is_named(n, seed):
    a = matrix(seed, n + 2, n)
    assert dependent_columns(a) == []
    mixed = torch.cat([a, a @ matrix(seed + 1, n, 1)], 1)
    assert dependent_columns(mixed) == [n]


def test_rank_is_not_the_number_of_non_zero_eigenvalues():
    nilpotent = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    assert spectral_radius(nilpotent) == 0.0
    assert dependent_columns(nilpotent) == [0]
    assert torch.linalg.matrix_rank(nilpotent) == 1


def test_solve_solves():
    a, b = matrix(3, 5), matrix(4, 5, 2)
    torch.testing.assert_close(a @ solve(a, b), b)


SENTENCES = [
    (lambda: gershgorin([[1.0, 2.0]]), "`matrix` has shape (1, 2) and has to be square."),
    (lambda: gershgorin([1.0]), "`matrix` has shape (1,) and has to be a matrix."),
    (
        lambda: condition_number([[1.0, float("nan")]]),
        "`matrix` holds nan at index (0, 1): only finite numbers are allowed here.",
    ),
    (lambda: condition_number(torch.zeros(0, 2)), "`matrix` is empty: its shape is (0, 2)."),
    (lambda: condition_number(torch.eye(2) * 1j), "`matrix` holds complex numbers: only real ones are allowed here."),
    (
        lambda: principal_eigenvalue([[1.0, 0.0], [0.0, -1.0]], steps=20),
        "The power iteration did not settle in 20 steps: the largest eigenvalues of `matrix` have nearly the same "
        "size (opposite signs, or a complex pair). Take spectral_radius, or more steps.",
    ),
    (lambda: principal_eigenvalue(torch.eye(2), steps=0), "`steps` has to be a whole number of at least 1, not 0."),
    (
        lambda: principal_eigenvalue(torch.eye(2), tolerance=0.0),
        "`tolerance` has to be a positive number, not 0.0.",
    ),
    (
        lambda: rescale([[0.0, 1.0], [0.0, 0.0]]),
        "`matrix` is nilpotent: all its eigenvalues are 0, and no factor changes that.",
    ),
    (
        lambda: solve([[1.0, 1.0], [0.0, 0.0]], [1.0, 1.0]),
        "`matrix` is singular (condition number inf): its rows depend on each other, and no single solution exists.",
    ),
    (lambda: solve(torch.eye(2), [1.0]), "`right` has shape (1,) where `matrix` has 2 rows."),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_what_is_said(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()


def test_what_is_not_a_number_is_said():
    with pytest.raises(WonderlandError, match=r"^`matrix` is not made of numbers: "):
        gershgorin([["a"]])
