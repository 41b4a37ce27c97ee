"""K-means: vectors in groups around their means."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy import ndarray

from wonderland.core import WonderlandError, uniform


class Clusters(NamedTuple):
    """The cluster of each vector (n,), the centres (k, d), and the mean squared distance to them."""

    labels: ndarray
    centres: ndarray
    distance: float


def kmeans(vectors: Any, clusters: int, *, steps: int = 50, starts: int = 3, seed: int = 0) -> Clusters:
    r"""Lloyd's algorithm from centres drawn far apart (k-means++), the best of several starts.

    .. math:: \min_{c, z} \frac{1}{n} \sum_i \lVert x_i - c_{z_i} \rVert^2

    Papers: Lloyd, 1982; Arthur and Vassilvitskii, 2007.

    >>> kmeans([[0.0], [0.1], [5.0], [5.2]], 2).centres.round(2).ravel().tolist()
    [0.05, 5.1]
    """
    x = torch.as_tensor(np.asarray(vectors, np.float64))
    if x.dim() != 2 or not len(x) or not bool(torch.isfinite(x).all()):
        raise WonderlandError(f"k-means takes finite vectors (n, d), not of shape {tuple(x.shape)}.")
    if not 1 <= clusters <= len(x):
        raise WonderlandError(f"{len(x):,} vectors can form 1 to {len(x):,} clusters, not {clusters}.")
    runs = [_lloyd(x, _spread_centres(x, clusters, seed, start), steps) for start in range(starts)]
    labels, centres, distance = min(runs, key=lambda one: one[2])
    order = np.lexsort(centres.numpy().T[::-1])  # the same clusters have the same numbers
    rank = np.argsort(order)
    return Clusters(rank[labels.numpy()], centres.numpy()[order], distance)


def _spread_centres(x: torch.Tensor, clusters: int, seed: int, start: int) -> torch.Tensor:
    """Centres drawn one by one, with a chance that grows with the squared distance to those before."""
    draws = [float(uniform(seed, start, np.array([i]), 1)[0, 0]) for i in range(clusters)]
    chosen = [int(draws[0] * len(x))]
    nearest = (x - x[chosen[0]]).square().sum(1)
    for draw in draws[1:]:
        total = nearest.cumsum(0)
        place = int(torch.searchsorted(total, draw * total[-1]).clamp_max(len(x) - 1))
        chosen.append(place)
        nearest = torch.minimum(nearest, (x - x[place]).square().sum(1))
    return x[chosen].clone()


def _lloyd(x: torch.Tensor, centres: torch.Tensor, steps: int) -> tuple[torch.Tensor, torch.Tensor, float]:
    labels = torch.full((len(x),), -1)
    near = torch.zeros(len(x), dtype=x.dtype)
    for _ in range(steps):
        distances = torch.cdist(x, centres)
        near, new = distances.min(1)
        if bool((new == labels).all()):
            break
        labels = new
        counts = torch.bincount(labels, minlength=len(centres))
        sums = torch.zeros_like(centres).index_add_(0, labels, x)
        empty = counts == 0
        centres = torch.where(empty[:, None], centres, sums / counts.clamp_min(1)[:, None])
    return labels, centres, float(near.square().mean())
