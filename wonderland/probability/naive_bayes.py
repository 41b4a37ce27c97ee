"""Naive Bayes classifiers: features are taken as independent within a class."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers


@dataclass(frozen=True, eq=False)
class BernoulliNaiveBayes:
    """Fitted on features of 0 and 1. Shapes: log_prior (m,), probs (m, c), the chance of a 1 in each class."""

    log_prior: Tensor
    probs: Tensor

    def logits(self, X: Numbers) -> Tensor:
        """log p(y) + log p(x | y), not normalised. Shapes: (n, c) -> (n, m)."""
        x = _binary(_features(X, self.probs.shape[1]))
        log_likelihood = torch.special.xlogy(x.unsqueeze(1), self.probs) + torch.special.xlogy(
            1 - x.unsqueeze(1), 1 - self.probs
        )
        return self.log_prior + log_likelihood.sum(-1)

    def probabilities(self, X: Numbers) -> Tensor:
        """Posterior probabilities. Shapes: (n, c) -> (n, m)."""
        return self.logits(X).softmax(-1)

    def predict(self, X: Numbers) -> Tensor:
        """The most probable class. Shapes: (n, c) -> (n,)."""
        return self.logits(X).argmax(-1)


@dataclass(frozen=True, eq=False)
class GaussianNaiveBayes:
    """Fitted on real features. Shapes: log_prior (m,), means (m, c), variances (m, c)."""

    log_prior: Tensor
    means: Tensor
    variances: Tensor

    def logits(self, X: Numbers) -> Tensor:
        """log p(y) + log p(x | y), not normalised. Shapes: (n, c) -> (n, m)."""
        x = _features(X, self.means.shape[1]).unsqueeze(1)
        log_likelihood = -((x - self.means).square() / self.variances + (2 * torch.pi * self.variances).log()) / 2
        return self.log_prior + log_likelihood.sum(-1)

    def probabilities(self, X: Numbers) -> Tensor:
        """Posterior probabilities. Shapes: (n, c) -> (n, m)."""
        return self.logits(X).softmax(-1)

    def predict(self, X: Numbers) -> Tensor:
        """The most probable class. Shapes: (n, c) -> (n,)."""
        return self.logits(X).argmax(-1)


def bernoulli_naive_bayes(X: Numbers, y: Numbers, *, smoothing: float = 1.0) -> BernoulliNaiveBayes:
    r"""Class frequencies, and within each class how often each feature is 1.

    .. math::
        \log p(y | x) = \log p(y) + \sum_j \log p(x_j | y) + \text{const}, \qquad
        p(x_j = 1 | y) = \frac{n_{jy} + \alpha}{n_y + 2 \alpha}

    The smoothing α is the mean of a Beta(α, α) posterior: with 0, one unseen value excludes a class. Logs are summed,
    since hundreds of factors underflow.

    Shapes: X (n, c) of 0 and 1, y (n,) labels from 0. Book: D2L 22.9.

    >>> fit = bernoulli_naive_bayes([[1, 0], [1, 1], [0, 1], [0, 0]], [0, 0, 1, 1])
    >>> fit.probs
    tensor([[0.7500, 0.5000],
            [0.2500, 0.5000]], dtype=torch.float64)
    >>> fit.predict([[1, 1]])
    tensor([0])
    """
    x = _binary(numbers("X", X, 2))
    alpha = float(numbers("smoothing", smoothing, 0))
    if alpha < 0:
        raise WonderlandError(f"`smoothing` has to be 0 or more, not {alpha:g}.")
    one_hot = _one_hot(x, y)
    sizes = one_hot.sum(0)
    return BernoulliNaiveBayes((sizes / sizes.sum()).log(), (one_hot.T @ x + alpha) / (sizes + 2 * alpha).unsqueeze(1))


def gaussian_naive_bayes(X: Numbers, y: Numbers, *, floor: float = 1e-9) -> GaussianNaiveBayes:
    r"""Class frequencies, and within each class a Gaussian for each feature.

    .. math::
        \log p(y | x) = \log p(y) - \frac12 \sum_j \left[ \frac{(x_j - \mu_{jy})^2}{\sigma_{jy}^2}
        + \log 2 \pi \sigma_{jy}^2 \right] + \text{const}

    Means and variances are the most likely ones; `floor` times the largest variance of a feature is added to each
    variance, as scikit-learn does, so that a constant feature does not divide by zero.

    Shapes: X (n, c), y (n,) labels from 0. Book: D2L 22.9; Alice A.6.

    >>> fit = gaussian_naive_bayes([[0.0], [1.0], [5.0], [7.0]], [0, 0, 1, 1])
    >>> fit.predict([[0.2], [6.0]])
    tensor([0, 1])
    """
    x = numbers("X", X, 2)
    one_hot = _one_hot(x, y)
    sizes = one_hot.sum(0)
    means = one_hot.T @ x / sizes.unsqueeze(1)
    deviations = (x.unsqueeze(1) - means).square()
    offset = float(numbers("floor", floor, 0)) * float(x.var(0, correction=0).max())
    variances = (one_hot.unsqueeze(2) * deviations).sum(0) / sizes.unsqueeze(1) + offset
    if bool((variances <= 0).any()):
        raise WonderlandError("`X` has a feature that is constant within a class: pass `floor` above 0, or drop it.")
    return GaussianNaiveBayes((sizes / sizes.sum()).log(), means, variances)


def _one_hot(X: Tensor, y: Numbers) -> Tensor:
    """One-hot labels (n, m); every class from 0 to the largest label has at least one row."""
    labels = numbers("y", y, 1)
    if len(labels) != len(X):
        raise WonderlandError(f"`y` has {len(labels)} entries where `X` has {len(X)} rows.")
    wrong = (labels != labels.round()) | (labels < 0) | (labels > 1e6)
    if bool(wrong.any()):
        where = int(wrong.nonzero()[0])
        raise WonderlandError(f"`y` holds {labels[where].item():g} at index {where}: labels are whole numbers from 0.")
    one_hot = torch.nn.functional.one_hot(labels.long()).to(torch.float64)
    empty = (one_hot.sum(0) == 0).nonzero().flatten().tolist()
    if empty:
        raise WonderlandError(f"`y` has no row of class {empty[0]}: every class needs at least one.")
    return one_hot


def _binary(X: Tensor) -> Tensor:
    wrong = (X != 0) & (X != 1)
    if bool(wrong.any()):
        where = tuple(wrong.nonzero()[0].tolist())
        raise WonderlandError(f"`X` holds {X[where].item():g} at index {where}: features have to be 0 or 1 here.")
    return X


def _features(X: Numbers, c: int) -> Tensor:
    x = numbers("X", X, 2)
    if x.shape[1] != c:
        raise WonderlandError(f"`X` has {x.shape[1]} columns where the model was fitted on {c}.")
    return x
