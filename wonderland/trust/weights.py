"""Weights of ensemble members, fitted to holdout rows."""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray

PRIOR_ROWS = 200


def simplex(errors: ndarray, *, iterations: int = 2000) -> ndarray:
    r"""Weights of the kinds of members that minimise the squared error of their mean, shrunk towards equal weights on few rows.

    .. math:: w^* = \arg\min_{w \ge 0,\ \sum_r w_r = 1} \frac{1}{n} \sum_i \Bigl\| \sum_r w_r e_{ir} \Bigr\|^2

    where e is the predicted probability minus the truth (the Brier score), or the error of a number. This is a small quadratic
    program in the Gram matrix of the errors, solved by exponentiated gradient steps, which keep weights positive. The result
    for n rows is then averaged with equal weights, which count as 200 rows.

    Shapes: errors (n, r, k) -> (r,).

    >>> errors = np.array([[[1.0], [0.1]], [[-1.0], [0.1]], [[1.0], [0.1]], [[-1.0], [0.1]]])
    >>> simplex(np.tile(errors, (5000, 1, 1))).round(2).tolist()
    [0.01, 0.99]
    """
    gram = np.einsum("nrk,nsk->rs", errors, errors) / max(1, len(errors))
    shares = np.full(len(gram), 1 / len(gram))
    step_size = 1 / max(float(np.abs(gram).max()), 1e-12)
    for _ in range(iterations):
        gradient = gram @ shares
        previous, shares = shares, shares * np.exp(-step_size * (gradient - shares @ gradient))
        shares /= shares.sum()
        if np.abs(shares - previous).max() < 1e-7:
            break
    return (len(errors) * shares + PRIOR_ROWS / len(gram)) / (len(errors) + PRIOR_ROWS)


def member_shares(errors: ndarray, linear: Sequence[bool] | None = None) -> ndarray:
    r"""Weights of the kinds of members, of which `linear` marks those that are linear models.

    The networks are weighted by :func:`simplex`. The linear members e_L, which are the sum of few parameters, get the share of
    least squared error beside that mixture e_N, shrunk towards 0 where there are few rows:

    .. math:: \lambda = \frac{n}{n + 50} \Bigl[\frac{\sum_i e_{Ni}^\top (e_{Ni} - e_{Li})}{\sum_i \|e_{Ni} - e_{Li}\|^2}\Bigr]_0^1

    Shapes: errors (n, r, k) -> (r,).

    >>> errors = np.array([[[1.0], [0.5]], [[-1.0], [-0.5]]])
    >>> member_shares(np.tile(errors, (5000, 1, 1)), [False, True]).round(2).tolist()
    [0.0, 1.0]
    """
    flags = np.zeros(errors.shape[1], bool) if linear is None else np.asarray(linear)
    if not flags.any() or flags.all():
        return simplex(errors)
    weights = np.zeros(len(flags))
    weights[~flags] = simplex(errors[:, ~flags])
    networks, lines = np.einsum("nrk,r->nk", errors, weights), errors[:, flags].mean(1)
    gap = networks - lines
    share = (
        float(np.clip((networks * gap).sum() / max(np.square(gap).sum(), 1e-300), 0, 1))
        * len(errors)
        / (len(errors) + 50)
    )
    weights *= 1 - share
    weights[flags] = share / flags.sum()
    return weights


def spread(shares: ndarray, members: int) -> ndarray:
    """Weights of kinds as weights of members, where member i is of kind i modulo the number of kinds."""
    return np.tile(shares, members // len(shares)) * len(shares) / members
