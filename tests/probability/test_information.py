"""Information theory: every identity of the book on random tables, and estimates from samples."""

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_selection import mutual_info_regression

from wonderland import WonderlandError
from wonderland.probability import (
    JointTable,
    conditional_entropy,
    cross_entropy,
    entropy,
    kl_divergence,
    mutual_information,
    neighbour_entropy,
    neighbour_information,
    pointwise_mutual_information,
    self_information,
)

few = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 10**6)
counts = st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(sum)


def normal(counted):
    found = torch.tensor(counted, dtype=torch.float64)
    return found / found.sum()


tables = st.integers(1, 4).flatmap(
    lambda b: st.lists(st.lists(st.integers(0, 9), min_size=b, max_size=b), min_size=1, max_size=4)
).filter(lambda rows: sum(map(sum, rows))).map(normal)  # fmt: skip


@given(counts)
@few
def test_entropy_is_between_none_and_that_of_equal_chances(counted):
    p = normal(counted)
    assert -1e-12 <= float(entropy(p)) <= math.log(len(p)) + 1e-12
    assert float(entropy(p, base=2)) == pytest.approx(float(entropy(p)) / math.log(2))
    kept = p[p > 0]
    assert float(entropy(p)) == pytest.approx(float((kept * self_information(kept)).sum()), abs=1e-12)


@given(counts, seeds)
@few
def test_divergence(counted, seed):
    p = normal(counted)
    q = torch.rand(len(p), generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.01
    q = q / q.sum()
    assert float(kl_divergence(p, q)) >= -1e-12
    assert float(kl_divergence(p, p)) == pytest.approx(0, abs=1e-12)
    assert float(cross_entropy(p, q)) == pytest.approx(float(entropy(p) + kl_divergence(p, q)))
    assert float(cross_entropy(p, q)) >= float(entropy(p)) - 1e-12


@given(tables)
@few
def test_two_variables(table):
    x, y = table.sum(1), table.sum(0)
    joint, shared = float(entropy(table)), float(mutual_information(table))
    assert max(float(entropy(x)), float(entropy(y))) <= joint + 1e-12
    assert joint <= float(entropy(x) + entropy(y)) + 1e-12
    assert float(conditional_entropy(table)) == pytest.approx(joint - float(entropy(x)), abs=1e-12)
    assert shared >= 0
    assert shared == pytest.approx(float(mutual_information(table.T)), abs=1e-12)
    assert shared == pytest.approx(float(entropy(y) - conditional_entropy(table)), abs=1e-12)
    assert shared == pytest.approx(float(kl_divergence(table, x.unsqueeze(1) * y)), abs=1e-12)
    pmi = pointwise_mutual_information(table)
    assert shared == pytest.approx(float((table * pmi)[table > 0].sum()), abs=1e-12)
    assert float(mutual_information(x.unsqueeze(1) * y)) == pytest.approx(0, abs=1e-12)


@given(tables)
@few
def test_bayes_turns_a_table_round(table):
    joint = JointTable(table)
    torch.testing.assert_close(joint.rows, table.sum(1))
    for column in range(table.shape[1]):
        if joint.columns[column] > 0:
            torch.testing.assert_close(joint.given_column(column) * joint.columns[column], table[:, column])
    if (joint.rows > 0).all():
        likelihood = torch.stack([joint.given_row(row) for row in range(len(table))])
        torch.testing.assert_close(JointTable.from_conditional(joint.rows, likelihood).probs, table)
    assert joint.independent(1e-7) == (float(mutual_information(table)) < 1e-9)


def test_the_tickets_of_the_book():
    table = JointTable.from_counts([[58, 2], [27, 3], [2, 8]])
    assert table.rows.tolist() == pytest.approx([0.6, 0.3, 0.1])
    assert table.columns.tolist() == pytest.approx([0.87, 0.13])
    assert table.given_row(2).tolist() == pytest.approx([0.2, 0.8])
    real, fake = table.given_column(0), table.given_column(1)
    assert real.tolist() == pytest.approx([0.6667, 0.3103, 0.0230], abs=5e-5)
    assert fake.tolist() == pytest.approx([0.1538, 0.2308, 0.6154], abs=5e-5)
    assert float(kl_divergence(real, fake)) == pytest.approx(0.9939, abs=5e-5)
    assert float(kl_divergence(fake, real)) == pytest.approx(1.7290, abs=5e-5)
    assert float(mutual_information(table.probs)) == pytest.approx(0.1511, abs=5e-5)
    assert not table.independent()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bayes_theorem_of_a_medical_test(dtype):
    """D2L 2.6: one in 667 is ill; a test that misses none and errs once in a hundred; then a second, weaker test."""
    prior = torch.tensor([0.0015, 0.9985], dtype=dtype)
    first = torch.tensor([[1.0, 0.0], [0.01, 0.99]], dtype=dtype)
    second = torch.tensor([[0.98, 0.02], [0.03, 0.97]], dtype=dtype)
    table = JointTable.from_conditional(prior, first)
    assert table.columns.tolist() == pytest.approx([0.011485, 0.988515], rel=1e-5)
    ill = table.given_column(0)
    assert float(ill[0]) == pytest.approx(0.0015 / 0.011485, rel=1e-5)
    assert float(table.given_column(1)[0]) == 0
    again = JointTable.from_conditional(ill, second)  # the posterior is the next prior
    assert float(again.given_column(0)[0]) == pytest.approx(0.8307, abs=1e-4)


def test_the_impossible_is_infinite():
    assert float(kl_divergence([0.5, 0.5], [1.0, 0.0])) == math.inf
    assert float(kl_divergence([1.0, 0.0], [0.5, 0.5])) == pytest.approx(math.log(2))
    assert float(self_information(0.0)) == math.inf


def test_gradients_pass_through():
    logits = torch.randn(4, dtype=torch.float64, requires_grad=True)
    q = torch.softmax(torch.randn(4, dtype=torch.float64), 0)
    assert torch.autograd.gradcheck(lambda z: kl_divergence(z.softmax(0), q), logits)


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_neighbours_find_the_information_of_a_gaussian(rho):
    x, noise = torch.randn(2, 1500, dtype=torch.float64)
    y = rho * x + (1 - rho**2) ** 0.5 * noise
    found = neighbour_information(x, y)
    assert found == pytest.approx(-0.5 * math.log(1 - rho**2), abs=0.1)
    assert found == neighbour_information(y, x)
    assert found == pytest.approx(neighbour_information(x, 1 * y + 5), abs=1e-9)


def test_the_estimate_of_scikit_learn():
    x, noise = torch.randn(2, 300, dtype=torch.float64)
    y = x.sin() + 0.5 * noise
    x, y = x / x.std(correction=0), y / y.std(correction=0)
    theirs = mutual_info_regression(x.unsqueeze(1).numpy(), y.numpy(), random_state=0)[0]
    assert neighbour_information(x, y) == pytest.approx(theirs, abs=1e-6)


def test_neighbours_find_the_entropy_of_a_gaussian():
    x = 3 * torch.randn(1500, 2, dtype=torch.float64)
    assert neighbour_entropy(x) == pytest.approx(math.log(2 * math.pi * math.e * 9), abs=0.1)
    assert neighbour_entropy(x / 100) == pytest.approx(neighbour_entropy(x) - 2 * math.log(100))
    assert neighbour_entropy(x / 100) < 0


SENTENCES = [
    (lambda: entropy([0.5, 0.6]), "`p` sums to 1.1: probabilities sum to 1."),
    (lambda: entropy([1.5, -0.5]), "`p` holds -0.5 at index (1,): probabilities are not negative."),
    (lambda: entropy([math.nan, 1.0]), "`p` holds nan at index (0,): only finite numbers are allowed here."),
    (lambda: entropy([1.0], base=1.0), "`base` has to be above 1 (2 for bits), or None for nats, not 1.0."),
    (lambda: kl_divergence([0.5, 0.5], [0.5, 0.4]), "`q` sums to 0.9: probabilities sum to 1."),
    (lambda: kl_divergence([0.5, 0.5], [1.0]), "`p` has shape (2,) where `q` has (1,)."),
    (lambda: mutual_information([0.5, 0.5]), "`joint` has shape (2,) and has to be a matrix."),
    (lambda: self_information(1.5), "`p` has to lie between 0 and 1."),
    (lambda: JointTable.from_counts([[0, 0]]), "`counts` has to be non-negative, with at least one count above 0."),
    (
        lambda: JointTable.from_counts([[0, 0], [1, 1]]).given_row(0),
        "`row` 0 has probability 0: there is no distribution given it.",
    ),
    (
        lambda: JointTable.from_counts([[1, 1]]).given_column(2),
        "`column` is 2, and the table has 2, counted from 0.",
    ),
    (
        lambda: JointTable.from_conditional([1.0], [[0.5, 0.4]]),
        "`likelihood[0]` sums to 0.9: probabilities sum to 1.",
    ),
    (lambda: neighbour_information([1.0, 2.0], [1.0]), "`y` has 1 samples where `x` has 2."),
    (
        lambda: neighbour_entropy([1.0, 2.0], k=2),
        "`k` is 2, and each of 2 samples has only 1 neighbours.",
    ),
    (
        lambda: neighbour_entropy([1.0, 1.0, 1.0], k=1),
        "`samples` holds more than 1 equal rows: samples of a continuous variable do not repeat.",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_error_messages(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
