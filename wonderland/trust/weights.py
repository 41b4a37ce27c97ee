"""Weights of members: how far each kind of member is to be believed, from rows that none of them learned from."""

import numpy as np
from numpy import ndarray

DOUBT = 200


def simplex(errors: ndarray, *, iterations: int = 2000) -> ndarray:
    r"""Shares of kinds of members that make the least squared error together, drawn towards equal shares on few rows.

    .. math:: w^* = \arg\min_{w \ge 0,\ \sum_r w_r = 1} \frac{1}{n} \sum_i \Bigl\| \sum_r w_r e_{ir} \Bigr\|^2

    with e the predicted probability less the truth (the Brier score), or the error of a number. The problem is a small
    quadratic one in the matrix of mean products of errors; multiplicative steps keep shares positive. The answer for n
    rows is then mixed with equal shares as if 200 more rows spoke for those.

    Shapes: errors (n, r, k) -> (r,).

    >>> errors = np.array([[[1.0], [0.1]], [[-1.0], [0.1]], [[1.0], [0.1]], [[-1.0], [0.1]]])
    >>> simplex(np.tile(errors, (5000, 1, 1))).round(2).tolist()
    [0.01, 0.99]
    """
    gram = np.einsum("nrk,nsk->rs", errors, errors) / max(1, len(errors))
    shares = np.full(len(gram), 1 / len(gram))
    pace = 1 / max(float(np.abs(gram).max()), 1e-12)
    for _ in range(iterations):
        slope = gram @ shares
        shares = shares * np.exp(-pace * (slope - shares @ slope))
        shares /= shares.sum()
    return (len(errors) * shares + DOUBT / len(gram)) / (len(errors) + DOUBT)


def spread(shares: ndarray, members: int) -> ndarray:
    """Shares of kinds as shares of members, when kinds take turns: member i is of kind i modulo their number."""
    return np.tile(shares, members // len(shares)) * len(shares) / members
