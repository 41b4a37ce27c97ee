"""Derivatives agree with torch over its operator database: a sample in the default suite, all of it in the slow one."""

from collections import Counter

import pytest
import torch

from tests.autodiff.opdb import EQUAL, TRUER, WRONG, judged

SAMPLE = [
    "addmm",
    "atan2",
    "cat",
    "cumprod",
    "fft.rfftn",
    "index_put",
    "index_reduce.prod",
    "linalg.cholesky",
    "linalg.det",
    "linalg.eigh",
    "linalg.lu_factor",
    "linalg.pinv",
    "linalg.qr",
    "linalg.solve",
    "linalg.svd",
    "logcumsumexp",
    "matrix_exp",
    "nn.functional.conv2d",
    "nn.functional.grid_sample",
    "nn.functional.group_norm",
    "nn.functional.layer_norm",
    "nn.functional.max_pool2d",
    "nn.functional.softsign",
    "ormqr",
    "scatter_reduce.amax",
    "std_mean",
    "where",
]
COMPLEX = [
    "addr",
    "cholesky_solve",
    "fft.hfftn",
    "fft.fftn",
    "linalg.cholesky",
    "linalg.eig",
    "linalg.eigh",
    "linalg.householder_product",
    "linalg.lu_solve",
    "linalg.qr",
    "linalg.slogdet",
    "linalg.solve_triangular",
    "linalg.svdvals",
    "matrix_exp",
    "sigmoid",
    "tanh",
]
LEAST = {"reverse": 525, "forward": 497, "second": 515}
# Both write in place under torch.no_grad, which torch's autograd takes for a change of numbers without one of derivatives.


@pytest.mark.parametrize(
    "kind", ["reverse", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("forward", "second"))]
)
def test_a_sample_of_the_database_agrees_with_torch(kind):
    verdicts = {name: (verdict, reason) for name, verdict, reason in judged(kind, SAMPLE)}
    assert len(verdicts) >= len(SAMPLE) - 4
    assert {name: found for name, found in verdicts.items() if found[0] != EQUAL} == {}


@pytest.mark.parametrize(
    "kind", ["reverse", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("forward", "second"))]
)
def test_complex_numbers_agree_with_torch(kind):
    verdicts = {name: (verdict, reason) for name, verdict, reason in judged(kind, COMPLEX, torch.complex128)}
    assert len(verdicts) == len(COMPLEX)
    assert {name: found for name, found in verdicts.items() if found[0] != EQUAL} == {}


@pytest.mark.parametrize("kind", ["reverse", "second"])
def test_where_torch_differs_from_the_limit_autodiff_does_not(kind):
    names = {"reverse": ["as_strided_scatter"], "second": ["nn.functional.linear_cross_entropy.chunked"]}[kind]
    assert [verdict for _, verdict, _ in judged(kind, names)] == [TRUER]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["reverse", "forward", "second"])
def test_the_whole_database_has_no_wrong_derivative(kind):
    found = list(judged(kind))
    assert {name: reason for name, verdict, reason in found if verdict == WRONG} == {}
    assert Counter(verdict for _, verdict, _ in found)[EQUAL] >= LEAST[kind]
