"""Losses equal torch's where torch has them, in values and gradients, and wrong use raises."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.core import WonderlandError
from wonderland.tasks import losses

POINTS = (4, 3)
X = torch.randn(POINTS, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 2
Y = torch.randn(POINTS, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) * 2
LABELS = torch.tensor([0, 2, 1, 2])
SOFT = Y.softmax(-1)
BITS = (Y > 0).double()
COUNTS = (Y.abs() * 2).round()
LOG_VARIANCE = Y.flip(0) / 2
OURS_AND_TORCHS = {
    "squared": (losses.squared, F.mse_loss, Y),
    "absolute": (losses.absolute, F.l1_loss, Y),
    "huber": (losses.huber, F.huber_loss, Y),
    "huber of delta 0.3": (
        lambda p, t, **how: losses.huber(p, t, delta=0.3, **how),
        lambda p, t, **how: F.huber_loss(p, t, delta=0.3, **how),
        Y,
    ),
    "binary": (losses.binary_cross_entropy, F.binary_cross_entropy_with_logits, BITS),
    "binary with probabilities": (losses.binary_cross_entropy, F.binary_cross_entropy_with_logits, Y.sigmoid()),
    "classes": (losses.cross_entropy, F.cross_entropy, LABELS),
    "classes with probabilities": (losses.cross_entropy, F.cross_entropy, SOFT),
    "smoothed": (
        lambda p, t, **how: losses.cross_entropy(p, t, smoothing=0.2, **how),
        lambda p, t, **how: F.cross_entropy(p, t, label_smoothing=0.2, **how),
        LABELS,
    ),
    "smoothed probabilities": (
        lambda p, t, **how: losses.cross_entropy(p, t, smoothing=0.2, **how),
        lambda p, t, **how: F.cross_entropy(p, t, label_smoothing=0.2, **how),
        SOFT,
    ),
    "focal with gamma 0": (lambda p, t, **how: losses.focal(p, t, gamma=0, **how), F.cross_entropy, LABELS),
    "gaussian": (
        lambda p, t, **how: losses.gaussian_nll(p, t, log_variance=LOG_VARIANCE, **how),
        lambda p, t, **how: F.gaussian_nll_loss(p, t, LOG_VARIANCE.exp(), full=True, eps=1e-12, **how),
        Y,
    ),
    "poisson": (
        losses.poisson_nll,
        lambda p, t, reduction: _reduced(-torch.distributions.Poisson(p.exp()).log_prob(t), reduction),
        COUNTS,
    ),
    "hinge": (
        losses.hinge,
        lambda p, t, reduction: _reduced(F.relu(1 - p * t), reduction),
        2 * BITS - 1,
    ),
}
# Every loss with all that it needs, for properties that hold for all.
ALL = {
    "squared": (losses.squared, Y),
    "absolute": (losses.absolute, Y),
    "huber": (losses.huber, Y),
    "quantile": (lambda p, t, **how: losses.quantile(p, t, level=0.8, **how), Y),
    "hinge": (losses.hinge, 2 * BITS - 1),
    "binary_cross_entropy": (losses.binary_cross_entropy, BITS),
    "cross_entropy": (losses.cross_entropy, LABELS),
    "focal": (losses.focal, LABELS),
    "gaussian_nll": (lambda p, t, **how: losses.gaussian_nll(p, t, log_variance=torch.zeros_like(p), **how), Y),
    "poisson_nll": (losses.poisson_nll, COUNTS),
    "contrastive": (losses.contrastive, Y),
}
ROWS = torch.tensor([True, False, True, True])


def _reduced(values, reduction):
    return {"mean": values.mean, "sum": values.sum, "none": lambda: values}[reduction]()


def value_and_gradient(loss, x, target, **how):
    x = x.clone().requires_grad_()
    value = loss(x, target, **how)
    (slope,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), slope


def error_message(call) -> str:
    with pytest.raises(WonderlandError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", OURS_AND_TORCHS)
def test_values_and_gradients_are_torchs(name, reduction):
    ours, torchs, target = OURS_AND_TORCHS[name]
    for actual, expected in zip(
        value_and_gradient(ours, X, target, reduction=reduction),
        value_and_gradient(torchs, X, target, reduction=reduction),
        strict=True,
    ):
        torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def test_poisson_nll_equals_torch_up_to_a_constant():
    ours, slope = value_and_gradient(losses.poisson_nll, X, COUNTS, reduction="none")
    torchs, expected = value_and_gradient(F.poisson_nll_loss, X, COUNTS, reduction="none")
    torch.testing.assert_close(ours - torchs, torch.lgamma(COUNTS + 1), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(slope, expected, rtol=1e-12, atol=1e-12)


def test_class_weights_are_weights_of_the_labels():
    by_class = torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64)
    ours = losses.cross_entropy(X, LABELS, weight=by_class[LABELS])
    torch.testing.assert_close(ours, F.cross_entropy(X, LABELS, weight=by_class), rtol=1e-12, atol=1e-12)


def test_classes_are_the_last_axis_of_sequences():
    logits, labels = torch.randn(2, 5, 3, dtype=torch.float64), torch.randint(3, (2, 5))
    expected = F.cross_entropy(logits.transpose(1, 2), labels)
    torch.testing.assert_close(losses.cross_entropy(logits, labels), expected, rtol=1e-12, atol=1e-12)


def test_binary_gradient_at_zero_is_that_of_the_sigmoid():
    _, slope = value_and_gradient(losses.binary_cross_entropy, torch.zeros(1, dtype=torch.float64), torch.zeros(1))
    assert slope.item() == 0.5


@pytest.mark.parametrize("name", ALL)
def test_what_is_hidden_is_not_read(name):
    loss, target = ALL[name]
    value, slope = value_and_gradient(loss, X[ROWS], target[ROWS])
    x, nan_filled = X.clone(), target.clone()
    x[~ROWS] = torch.nan
    nan_filled[~ROWS] = -100 if not target.is_floating_point() else torch.nan
    masked_value, masked_gradient = value_and_gradient(loss, x, nan_filled, mask=ROWS)
    torch.testing.assert_close(masked_value, value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(masked_gradient[ROWS], slope, rtol=1e-12, atol=1e-12)
    assert masked_gradient[~ROWS].count_nonzero() == 0


@pytest.mark.parametrize("name", [name for name in ALL if name != "contrastive"])
def test_a_weight_of_two_is_a_row_given_twice(name):
    loss, target = ALL[name]
    twice = torch.tensor([0, 0, 1, 3])
    weight = torch.tensor([2.0, 1.0, 0.0, 1.0])
    for reduction in ("mean", "sum"):
        expected = loss(X[twice], target[twice], reduction=reduction)
        torch.testing.assert_close(
            loss(X, target, weight=weight, reduction=reduction), expected, rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("name", ALL)
def test_a_sum_is_the_sum_of_each(name):
    loss, target = ALL[name]
    weight = torch.tensor([0.5, 1.0, 2.0, 0.0])
    how = {"mask": ROWS, "weight": weight}
    each = loss(X, target, reduction="none", **how)
    torch.testing.assert_close(loss(X, target, reduction="sum", **how), each.sum())
    assert each[~ROWS].count_nonzero() == 0


@pytest.mark.parametrize("name", ALL)
def test_losses_have_the_gradients_of_their_values(name):
    loss, target = ALL[name]
    assert torch.autograd.gradcheck(lambda x: loss(x, target), X.clone().requires_grad_())


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (i > 1)) for i, name in enumerate(ALL)])
def test_losses_compile(name):
    torch.compiler.reset()
    loss, target = ALL[name]
    compiled = torch.compile(lambda x, t: loss(x, t, mask=ROWS), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(X, target), loss(X, target, mask=ROWS))


@given(level=st.floats(0.05, 0.95), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_quantile_loss_is_minimal_at_the_quantile(level, seed):
    sample = torch.randn(101, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    best = torch.quantile(sample, level, interpolation="nearest")

    def risk(at):
        return losses.quantile(at.expand(101), sample, level=level)

    assert all(risk(best) <= risk(sample[i]) + 1e-2 for i in range(0, 101, 5))
    both = losses.quantile(X, Y, level=level) + losses.quantile(X, Y, level=1 - level)
    torch.testing.assert_close(both, losses.absolute(X, Y))


def test_huber_is_the_books():
    e = torch.tensor([0.5, 1.0, 2.0, 3.0])
    assert losses.huber(e, torch.zeros(4), reduction="none").tolist() == [0.125, 0.5, 1.5, 2.5]


def test_hinge_is_never_below_the_errors():
    y = torch.where(torch.rand(500) > 0.5, 1.0, -1.0)
    score = torch.randn(500)
    assert bool((losses.hinge(score, y, reduction="none") >= (score.sign() != y).float()).all())


def test_the_gradient_of_cross_entropy_is_probability_less_truth():
    _, slope = value_and_gradient(losses.cross_entropy, X, SOFT, reduction="sum")
    torch.testing.assert_close(slope, X.softmax(-1) - SOFT)
    _, slope = value_and_gradient(losses.cross_entropy, X, SOFT, reduction="sum", smoothing=0.3)
    torch.testing.assert_close(slope, X.softmax(-1) - (0.7 * SOFT + 0.1))


def test_two_logits_equal_one_binary_logit():
    pair = torch.stack([torch.zeros(4, dtype=torch.float64), X[:, 0]], -1)
    labels = BITS[:, 0]
    torch.testing.assert_close(losses.cross_entropy(pair, labels.long()), losses.binary_cross_entropy(X[:, 0], labels))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0, 5])
def test_focal_is_its_equation_and_stays_finite(gamma):
    p = X.softmax(-1)[torch.arange(4), LABELS]
    actual = losses.focal(X, LABELS, gamma=gamma, reduction="none")
    torch.testing.assert_close(actual, -((1 - p) ** gamma) * p.log())
    value, slope = value_and_gradient(
        lambda x, t: losses.focal(x, t, gamma=gamma), torch.tensor([[800.0, 0.0], [0.0, 800.0]]), torch.tensor([0, 0])
    )
    assert value.isfinite()
    assert bool(slope.isfinite().all())


def test_a_learned_variance_converges_to_the_mean_square():
    error = torch.randn(2000, dtype=torch.float64) * 3
    s = error.square().mean().log().requires_grad_()
    loss = losses.gaussian_nll(torch.zeros_like(error), error, log_variance=s.expand(2000))
    (slope,) = torch.autograd.grad(loss, s)
    assert abs(slope.item()) < 1e-12


def test_contrastive_loss_of_independent_views_is_about_log_n():
    n = 64
    a, b = torch.randn(2, n, 32, dtype=torch.float64)
    actual = losses.contrastive(a, b, temperature=1.0)
    assert abs(actual.item() - math.log(n)) < 0.1
    torch.testing.assert_close(
        losses.contrastive(a, b), F.cross_entropy(F.normalize(a) @ F.normalize(b).T / 0.1, torch.arange(n))
    )


def test_symmetric_contrastive_loss_is_symmetric():
    torch.testing.assert_close(
        losses.contrastive(X, Y, symmetric=True), (losses.contrastive(X, Y) + losses.contrastive(Y, X)) / 2
    )
    assert losses.contrastive(torch.eye(4), torch.eye(4), temperature=1).isfinite()


def test_decisions_equal_the_book():
    costs = [[0.0, 10.0], [1.0, 0.0]]
    p1 = torch.tensor([0.0, 1 / 11 - 1e-4, 1 / 11 + 1e-4, 1.0], dtype=torch.float64)
    assert losses.decide(torch.stack([1 - p1, p1], -1), costs).tolist() == [0, 0, 1, 1]


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6))
@settings(max_examples=50, deadline=None)
def test_equal_costs_choose_the_most_likely_class_and_decisions_minimise_cost(seed, classes):
    random = torch.Generator().manual_seed(seed)
    p = torch.randn(5, classes, generator=random, dtype=torch.float64).softmax(-1)
    assert torch.equal(losses.decide(p, 1 - torch.eye(classes)), p.argmax(-1))
    costs = torch.rand(classes, classes, generator=random, dtype=torch.float64)
    actual = losses.expected_costs(p, costs)
    torch.testing.assert_close(actual, torch.einsum("ij,nj->ni", costs, p))
    assert torch.equal(actual.min(-1).values, actual.gather(-1, losses.decide(p, costs)[:, None])[:, 0])


def test_silent_broadcasting_is_refused():
    assert error_message(lambda: losses.squared(torch.zeros(3, 1), torch.zeros(3))) == (
        "squared got a prediction of shape (3, 1) and a target of shape (3,): give both the same shape; nothing is "
        "broadcast. prediction.squeeze(-1) has the target's."
    )
    assert error_message(lambda: losses.absolute(torch.zeros(3), torch.zeros(3, 1))) == (
        "absolute got a prediction of shape (3,) and a target of shape (3, 1): give both the same shape; nothing is "
        "broadcast. target.squeeze(-1) has the prediction's."
    )
    assert error_message(lambda: losses.huber(torch.zeros(3), torch.zeros(()))) == (
        "huber got a prediction of shape (3,) and a target of shape (): give both the same shape; nothing is broadcast."
    )
    assert error_message(lambda: losses.gaussian_nll(torch.zeros(3), torch.zeros(3), log_variance=torch.zeros(1))) == (
        "gaussian_nll got a log_variance of shape (1,) and a prediction of shape (3,): give both the same shape; nothing is "
        "broadcast."
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: losses.cross_entropy(X, torch.tensor([0, 1, 2, 3])),
            "cross_entropy got the label 3 in its target, and the prediction has classes 0 to 2: correct it, or mask "
            "it.",
        ),
        (
            lambda: losses.focal(X, torch.tensor([0, 1, -100, 2])),
            "focal got the label -100 in its target, and the prediction has classes 0 to 2: correct it, or mask it.",
        ),
        (
            lambda: losses.cross_entropy(X.softmax(-1), LABELS),
            "cross_entropy got a prediction whose every row sums to 1: these are probabilities, not logits. "
            "Remove the softmax from the model, or give the logarithm of its output.",
        ),
        (
            lambda: losses.cross_entropy(X, torch.zeros(4, 3)),
            "cross_entropy takes probabilities that sum to 1 as its target, not to 0.",
        ),
        (
            lambda: losses.cross_entropy(X, SOFT - 0.5),
            f"cross_entropy takes probabilities as its target, not {float(SOFT.min() - 0.5):g}.",
        ),
        (
            lambda: losses.cross_entropy(X, torch.zeros(4)),
            "cross_entropy got a prediction of shape (4, 3) and a target of probabilities of shape (4,): logits (..., c), "
            "classes last, go with labels (...) or probabilities (..., c).",
        ),
        (
            lambda: losses.cross_entropy(X, LABELS, mask=torch.ones(4, 3, dtype=torch.bool)),
            "cross_entropy got a mask of shape (4, 3) for elements of shape (4,): it masks whole predictions, not classes.",
        ),
        (
            lambda: losses.cross_entropy(X, LABELS > 0),
            "cross_entropy takes a target of labels 0, 1, 2 ... as integers, not torch.bool.",
        ),
        (
            lambda: losses.focal(X, SOFT),
            "focal takes a target of labels, not of probabilities: its weight depends on the probability of the true class.",
        ),
        (
            lambda: losses.squared(X, torch.where(Y[1, 2] == Y, torch.nan, Y)),
            "squared got a target that is nan at (1, 2): remove such elements, or mask them.",
        ),
        (
            lambda: losses.binary_cross_entropy(X, Y.clamp(min=0)),
            f"binary_cross_entropy takes a target from 0 to 1, not {float(Y.max()):g}.",
        ),
        (
            lambda: losses.hinge(X, BITS),
            "hinge takes a target of -1 and +1, not 0: for 0 and 1 use 2 * y - 1.",
        ),
        (
            lambda: losses.poisson_nll(X, torch.full(POINTS, 0.5)),
            "poisson_nll takes a target of counts 0, 1, 2 ..., not 0.5.",
        ),
        (lambda: losses.huber(X, Y, delta=0), "huber takes a delta above 0, not 0."),
        (lambda: losses.focal(X, LABELS, gamma=-1), "focal takes a gamma of at least 0, not -1."),
        (
            lambda: losses.quantile(X, Y, level=90),
            "quantile takes a level between 0 and 1, both excluded, not 90.",
        ),
        (
            lambda: losses.cross_entropy(X, LABELS, smoothing=1.5),
            "cross_entropy takes a smoothing from 0 to 1, not 1.5.",
        ),
        (
            lambda: losses.contrastive(X, Y, temperature=-0.1),
            "contrastive takes a temperature above 0, not -0.1.",
        ),
        (
            lambda: losses.contrastive(X[0], Y[0]),
            "contrastive takes a prediction and a target (n, d), not of shape (3,).",
        ),
        (
            lambda: losses.squared(X, Y, reduction="men"),
            "squared takes a reduction of 'mean', 'sum' or 'none', not 'men'. Did you mean 'mean'?",
        ),
        (
            lambda: losses.squared(X, Y, mask=torch.ones(3, dtype=torch.bool)),
            "squared got a mask of shape (3,) for elements of shape (4, 3): a mask has all of their axes, or "
            "the leading ones.",
        ),
        (
            lambda: losses.squared(X, Y, mask=torch.ones(4)),
            "squared takes a mask of booleans, True where an element is real, not torch.float32.",
        ),
        (
            lambda: losses.squared(X, Y, mask=torch.zeros(4, dtype=torch.bool)),
            "squared got a mask that hides every element, so there is no mean: skip such batches.",
        ),
        (
            lambda: losses.squared(X, Y, weight=torch.zeros(4)),
            "squared got a weight that is 0 for every unmasked element, so there is no mean: skip such batches.",
        ),
        (
            lambda: losses.squared(X, Y, weight=torch.tensor([1.0, -2.0, 1.0, 1.0])),
            "squared takes a weight of at least 0, not -2.",
        ),
        (lambda: losses.squared(X, [1.0]), "squared takes a tensor as its target, not a list."),
        (
            lambda: losses.squared(LABELS, LABELS),
            "squared takes floating point numbers as its prediction, not torch.int64.",
        ),
        (
            lambda: losses.squared(X[:0], Y[:0]),
            "squared got an empty prediction, which has no mean: skip empty batches.",
        ),
        (
            lambda: losses.decide(X, torch.eye(3)),
            f"expected_costs takes probabilities as its prediction, not {float(X.min()):g}.",
        ),
        (
            lambda: losses.decide(SOFT, torch.eye(2)),
            "expected_costs takes costs with a row for each action and a column for each of the 3 classes, not of shape "
            "(2, 2).",
        ),
    ],
)
def test_error_messages(call, sentence):
    assert error_message(call) == sentence


def test_logits_that_are_not_probabilities_pass():
    for logits in (torch.zeros(4, 3), torch.eye(3)[:1], torch.rand(4, 3), torch.full((4, 3), 0.5)):
        assert losses.cross_entropy(logits, LABELS[: len(logits)]).isfinite()
