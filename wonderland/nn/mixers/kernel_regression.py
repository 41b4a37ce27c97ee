"""Kernel regression: the mean of known values, each weighted by how near its key is. Attention before attention."""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked
from wonderland.ops import shapes
from wonderland.ops.softmax import masked_softmax


@part
def gaussian(distance: Tensor) -> Tensor:
    """The logarithm of the Gaussian kernel, exp(-u^2 / 2)."""
    return -0.5 * distance.square()


@part
def boxcar(distance: Tensor) -> Tensor:
    """The logarithm of the boxcar kernel: 1 up to distance 1, 0 beyond."""
    return torch.zeros_like(distance).masked_fill(distance > 1, -math.inf)


@part
def constant(distance: Tensor) -> Tensor:
    """The logarithm of the constant kernel: every key counts alike."""
    return torch.zeros_like(distance)


@part
def triangular(distance: Tensor) -> Tensor:
    """The logarithm of the triangular kernel, max(0, 1 - u); the D2L book calls it Epanechnikov."""
    return _log(1 - distance)


@part
def epanechnikov(distance: Tensor) -> Tensor:
    """The logarithm of the Epanechnikov kernel, max(0, 1 - u^2)."""
    return _log(1 - distance.square())


KERNELS: dict[str, Callable[[Tensor], Tensor]] = {
    kernel.__name__: kernel for kernel in (gaussian, boxcar, constant, triangular, epanechnikov)
}


@part
class KernelRegression(Checked, nn.Module):
    r"""The estimator of Nadaraya and Watson.

    .. math::
        f(q) = \frac{\sum_i K(\lVert q - k_i \rVert / \sigma)\, v_i}{\sum_i K(\lVert q - k_i \rVert / \sigma)}

    It is attention with the logarithm of a kernel as its score, and is computed so: far queries do not underflow. A query
    that no key reaches (boxcar, triangular, epanechnikov) gets 0; its `weights` say so by summing to 0.

    - `kernel`: "gaussian", "boxcar", "constant", "triangular" or "epanechnikov".
    - `width`: sigma; narrower follows the data more closely. With `trainable=True` it is learned (positive by its logarithm).

    Shapes: queries (n, d), keys (m, d), values (m, o), mask (n, m) True where a key may be seen -> (n, o).
    Book: D2L 11.2. Paper: Nadaraya, 1964; Watson, 1964.

    >>> keys, values = torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0], [4.0]])
    >>> KernelRegression()(torch.tensor([[0.5]]), keys, values)
    tensor([[3.]])
    """

    log_width: Tensor

    def __init__(self, *, kernel: str = "gaussian", width: float | int = 1.0, trainable: bool = False):
        super().__init__()
        if kernel not in KERNELS:
            raise WonderlandError(f"KernelRegression has no kernel {kernel!r}: take one of {', '.join(KERNELS)}.")
        if not width > 0 or not math.isfinite(width):
            raise WonderlandError(f"KernelRegression cannot be built with width={width}: it is above 0.")
        self.kernel = KERNELS[kernel]
        log_width = torch.tensor(math.log(width))
        if trainable:
            self.log_width = nn.Parameter(log_width)
        else:
            self.register_buffer("log_width", log_width)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        """What this instance promises of the queries, each of which is answered alone; the suite checks it."""
        from wonderland import laws

        alike = (laws.batch_independence, laws.gradients, laws.determinism, laws.save_load)
        return (*alike, laws.finiteness, laws.compiles)

    @property
    def width(self) -> Tensor:
        """The width of the kernel, sigma."""
        return self.log_width.exp()

    def weights(
        self,
        queries: Float[Tensor, "n d"],
        keys: Float[Tensor, "m d"],
        mask: Bool[Tensor, "n m"] | None = None,
    ) -> Float[Tensor, "n m"]:
        """How much each key counts for each query; rows sum to 1, or to 0 where no key is in reach."""
        sizes = shapes.agree("KernelRegression", queries=(queries, "n d"), keys=(keys, "m d"))
        if mask is not None and (
            not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != (sizes["n"], sizes["m"])
        ):
            had = f"{mask.dtype} {tuple(mask.shape)}" if isinstance(mask, Tensor) else f"a {type(mask).__name__}"
            raise WonderlandError(
                f"KernelRegression takes a mask of booleans ({sizes['n']}, {sizes['m']}), True where a key may be seen, not {had}."
            )
        distance = torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist") / self.width
        scores = self.kernel(distance)
        reached = scores > -math.inf
        return masked_softmax(scores, reached if mask is None else reached & mask)

    def forward(
        self,
        queries: Float[Tensor, "n d"],
        keys: Float[Tensor, "m d"],
        values: Float[Tensor, "m o"],
        mask: Bool[Tensor, "n m"] | None = None,
    ) -> Float[Tensor, "n o"]:
        shapes.agree("KernelRegression", queries=(queries, "n d"), keys=(keys, "m d"), values=(values, "m o"))
        return self.weights(queries, keys, mask) @ values


def _log(weight: Tensor) -> Tensor:
    """log where positive, -inf elsewhere, without the gradient of log at 0."""
    return torch.where(weight > 0, weight.clamp_min(torch.finfo(weight.dtype).tiny).log(), -math.inf)
