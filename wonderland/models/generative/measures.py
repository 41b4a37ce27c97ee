"""How good samples are: distances between sets, precision and recall, and whether they are copies."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError


def mmd(a: Tensor, b: Tensor, *, width: float | None = None) -> float:
    r"""The squared maximum mean discrepancy with a Gaussian kernel, without bias; about 0 for samples of one distribution.

    .. math:: E k(x, x') + E k(y, y') - 2 E k(x, y), \qquad k(x, y) = e^{-\lVert x - y \rVert^2 / 2 w^2}

    `width` is the median distance unless given. Shapes: (n, d), (m, d). Paper: Gretton et al., 2012.
    """
    _check(a, b)
    width = float(torch.cdist(a, b).median()) if width is None else width
    aa, bb, ab = (
        (-torch.cdist(x, y).square() / (2 * max(width, 1e-12) ** 2)).exp() for x, y in ((a, a), (b, b), (a, b))
    )
    n, m = len(a), len(b)
    return float((aa.sum() - n) / (n * (n - 1)) + (bb.sum() - m) / (m * (m - 1)) - 2 * ab.mean())


def frechet_distance(a: Tensor, b: Tensor) -> float:
    r"""The distance of the Gaussians with the means and covariances of two sets of features.

    .. math:: \lVert \mu_a - \mu_b \rVert^2 + \text{tr}(\Sigma_a + \Sigma_b - 2 (\Sigma_a^{1/2} \Sigma_b \Sigma_a^{1/2})^{1/2})

    Shapes: (n, d), (m, d). Paper: Heusel et al., 2017.

    >>> x = torch.randn(500, 2, generator=torch.Generator().manual_seed(0))
    >>> round(frechet_distance(x, x + 3.0), 3)
    18.0
    """
    _check(a, b)
    a, b = a.double(), b.double()
    first, second = torch.cov(a.T).reshape(a.shape[1], -1), torch.cov(b.T).reshape(a.shape[1], -1)
    values, vectors = torch.linalg.eigh(first)
    root = vectors * values.clamp_min(0).sqrt() @ vectors.T
    cross = torch.linalg.eigvalsh(root @ second @ root).clamp_min(0).sqrt().sum()
    return float((a.mean(0) - b.mean(0)).square().sum() + first.trace() + second.trace() - 2 * cross)


def precision_recall(real: Tensor, fake: Tensor, *, neighbours: int = 3) -> tuple[float, float]:
    """The share of samples that lie within reach of real data, and of real data within reach of samples.

    Reach is the distance to the k-th neighbour. Shapes: (n, d), (m, d). Paper: Kynkaanniemi et al., 2019.
    """
    _check(real, fake)

    def covered(points: Tensor, by: Tensor) -> float:
        reach = torch.cdist(by, by).kthvalue(min(neighbours + 1, len(by)), 1).values
        return float((torch.cdist(points, by) <= reach).any(1).float().mean())

    return covered(fake, real), covered(real, fake)


def memorised(fake: Tensor, train: Tensor, held: Tensor) -> tuple[float, Tensor]:
    """The share of samples nearer to the training data than held-out data of the same number would be (about 1/2 without copying),
    and the nearest training row of each sample (n,)."""
    _check(fake, train)
    count = min(len(train), len(held))
    to_train, nearest = torch.cdist(fake, train).min(1)
    fair = torch.cdist(fake, train[:count]).amin(1) < torch.cdist(fake, held[:count]).amin(1)
    assert to_train.shape == nearest.shape
    return float(fair.float().mean()), nearest


def _check(a: Tensor, b: Tensor) -> None:
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[1] or min(len(a), len(b)) < 2:
        raise WonderlandError("Two sets of at least two rows with the same features are compared.")
