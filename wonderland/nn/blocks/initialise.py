"""Initialisation: where weights begin, so that a signal keeps its size through many layers, forward and backward."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, nearest
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.residual import Residual
from wonderland.nn.vision.residual_convolution import ResidualConvolution

# How much larger weights must be so that the activation after them keeps the mean square of its inputs.
GAINS = {"identity": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def xavier(
    weight: Tensor, *, gain: float | int = 1.0, uniform: bool = False, generator: torch.Generator | None = None
) -> Tensor:
    r"""Weights as large as suits both directions, in place.

    .. math:: \mathrm{Var}(w) = \frac{2 g^2}{n_\text{in} + n_\text{out}}

    Normal, or `uniform` on plus and minus the root of three variances. Shapes: weight (out, in, ...).
    Book: D2L 5.4. Paper: Glorot and Bengio, 2010.

    >>> xavier(torch.empty(300, 100)).std().round(decimals=2)
    tensor(0.0700)
    """
    inputs, outputs = _fans(weight, "xavier")
    return _draw(weight, _positive(gain, "gain", "xavier") * math.sqrt(2 / (inputs + outputs)), uniform, generator)


def kaiming(
    weight: Tensor,
    *,
    activation: str = "relu",
    mode: str = "inward",
    uniform: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Weights that keep the mean square of a signal through a layer and its activation, in place.

    .. math:: \mathrm{Var}(w) = \frac{g^2}{n}, \qquad g^2 = 2 \text{ for ReLU}

    n counts inputs (mode "inward": activations keep their size) or outputs ("outward": gradients do).
    Shapes: weight (out, in, ...). Paper: He et al., 2015.

    >>> kaiming(torch.empty(300, 200)).std().round(decimals=2)
    tensor(0.1000)
    """
    if activation not in GAINS:
        raise WonderlandError(
            f"kaiming knows the activations {', '.join(GAINS)}, not {activation!r}.{nearest(activation, GAINS)}"
        )
    if mode not in ("inward", "outward"):
        raise WonderlandError(f"kaiming takes a mode of 'inward' or 'outward', not {mode!r}.")
    count = _fans(weight, "kaiming")[mode == "outward"]
    return _draw(weight, GAINS[activation] / math.sqrt(count), uniform, generator)


def orthogonal(weight: Tensor, *, gain: float | int = 1.0, generator: torch.Generator | None = None) -> Tensor:
    r"""A random orthogonal matrix, in place: :math:`W^\top W = g^2 I` (or :math:`W W^\top`, if wide).

    Shapes: weight (out, in, ...), its later axes taken together. Paper: Saxe et al., 2014.

    >>> w = orthogonal(torch.empty(3, 5))
    >>> torch.allclose(w @ w.T, torch.eye(3), atol=1e-5)
    True
    """
    _fans(weight, "orthogonal")
    gain = _positive(gain, "gain", "orthogonal")
    rows = weight.shape[0]
    flat = torch.empty(rows, weight[0].numel(), dtype=torch.float64).normal_(generator=generator)
    orthogonal, triangle = torch.linalg.qr(flat.T if rows < flat.shape[1] else flat)
    # With the signs of the diagonal the distribution is uniform over orthogonal matrices.
    orthogonal = orthogonal * triangle.diagonal().sign()
    with torch.no_grad():
        return weight.copy_((gain * (orthogonal.T if rows < flat.shape[1] else orthogonal)).reshape(weight.shape))


def spectral_radius(weight: Tensor, radius: float | int = 1.0) -> Tensor:
    r"""A square matrix rescaled, in place, so that the largest magnitude of its eigenvalues is `radius`.

    .. math:: W \leftarrow \frac{\rho}{\max_i |\lambda_i|}\, W

    Its powers then neither vanish nor explode as fast as they might. Shapes: weight (n, n). Book: D2L 22.2.

    >>> spectral_radius(torch.diag(torch.tensor([1.0, 4.0])), 2)
    tensor([[0.5000, 0.0000],
            [0.0000, 2.0000]])
    """
    if weight.dim() != 2 or weight.shape[0] != weight.shape[1]:
        raise WonderlandError(f"spectral_radius takes a square weight (n, n), not of shape {tuple(weight.shape)}.")
    radius = _positive(radius, "radius", "spectral_radius")
    largest = float(torch.linalg.eigvals(weight.detach().double()).abs().max())
    if not largest > 1e-12 * float(weight.detach().abs().max()):
        raise WonderlandError("spectral_radius takes a weight with an eigenvalue other than 0, which it can rescale.")
    with torch.no_grad():
        return weight.mul_(radius / largest)


def zero_residuals(model: nn.Module) -> int:
    """Make every residual branch begin at 0, so that the model begins as its shortcuts; returns how many were set to 0.

    The scale of a `Residual` or of a `Block` with `layer_scale` becomes 0, else the last matrix of the branch.
    Book: Alice 9.4.1. Papers: Goyal et al., 2017; Zhang et al., 2019.

    >>> from wonderland.nn.channel.mlp import MLP
    >>> block = Block(4, MLP.spec())
    >>> x = torch.randn(1, 2, 4)
    >>> zero_residuals(block), bool((block(x) == x).all())
    (1, True)
    """
    last: list[list[Tensor]] = []
    for module in model.modules():
        if isinstance(module, Residual):
            last.append([module.scale])
        elif isinstance(module, ResidualConvolution):
            last.append([module.conv_out.weight])
        elif isinstance(module, Block) and module.scales is not None:
            last += [[scale] for scale in module.scales]
        elif isinstance(module, Block):
            last += [_final(branch, "zero_residuals") for branch in module.parts()]
    if not last:
        raise WonderlandError("zero_residuals takes a model with residual branches, and this one has none.")
    with torch.no_grad():
        for branch in last:
            for value in branch:
                value.zero_()
    return len(last)


def gpt2(model: nn.Module, *, deviation: float | int = 0.02, generator: torch.Generator | None = None) -> int:
    r"""Begin as GPT-2 does: every matrix and table normal, what ends a residual branch smaller; returns how many do.

    .. math:: w \sim N(0, \sigma^2), \qquad w_\text{last} \sim N(0, \sigma^2 / n), \qquad b = 0

    n counts the residual branches of the model's blocks, two a layer in a transformer: their sum begins as large as one.
    Paper: Radford et al., 2019.

    >>> from wonderland.nn.channel.mlp import MLP
    >>> gpt2(nn.Sequential(*[Block(4, MLP.spec()) for _ in range(3)]))
    3
    """
    deviation = _positive(deviation, "deviation", "gpt2")
    last = [
        _final(branch, "gpt2")[0] for block in model.modules() if isinstance(block, Block) for branch in block.parts()
    ]
    if not last:
        raise WonderlandError("gpt2 takes a model with residual blocks, and this one has none.")
    ends = {id(weight) for weight in last}
    for module in model.modules():
        for name, value in module.named_parameters(recurse=False):
            if name == "bias":
                nn.init.zeros_(value)
            elif value.dim() > 1:
                _draw(value, deviation / math.sqrt(len(last)) if id(value) in ends else deviation, False, generator)
    return len(last)


class Signal(NamedTuple):
    """Root mean squares, one for each layer: of what goes forward out of it, and of the gradient that comes to it."""

    forward: list[float]
    backward: list[float]


def signal(layers: Sequence[Callable[[Tensor], Tensor]], x: Tensor, *, seed: int = 0) -> Signal:
    """How large activations and gradients are after each layer, for a random gradient of size 1 at the end.

    A stack is well begun if both lists stay near one size. Book: D2L 5.4.

    >>> found = signal([nn.Identity(), nn.Identity()], torch.ones(2, 3))
    >>> found.forward
    [1.0, 1.0]
    """
    if not layers:
        raise WonderlandError("signal takes at least one layer to send x through.")
    outputs = []
    with torch.enable_grad():
        h = x.detach().requires_grad_()
        for layer in layers:
            h = layer(h)
            outputs.append(h)
        cotangent = torch.randn(h.shape, generator=torch.Generator().manual_seed(seed)).to(h)
        grads = torch.autograd.grad(h, outputs, cotangent, allow_unused=True)

    def size(value: Tensor | None) -> float:
        return 0.0 if value is None else float(value.detach().double().square().mean().sqrt())

    return Signal([size(value) for value in outputs], [size(value) for value in grads])


def _final(branch: Any, name: str) -> list[Tensor]:
    layer = getattr(branch, "out", None)
    layer = layer if isinstance(layer, nn.Linear) else getattr(branch, "outward", None)
    if not isinstance(layer, nn.Linear):
        raise WonderlandError(
            f"{name} finds no last matrix in {type(branch).__name__}: give its Block a layer_scale instead."
        )
    return [layer.weight] if layer.bias is None else [layer.weight, layer.bias]


def _draw(weight: Tensor, deviation: float, uniform: bool, generator: torch.Generator | None) -> Tensor:
    with torch.no_grad():
        if uniform:
            bound = math.sqrt(3) * deviation
            return weight.uniform_(-bound, bound, generator=generator)
        return weight.normal_(0, deviation, generator=generator)


def _fans(weight: Tensor, name: str) -> tuple[int, int]:
    if weight.dim() < 2 or 0 in weight.shape:
        raise WonderlandError(f"{name} takes a weight (out, in, ...) with entries, not of shape {tuple(weight.shape)}.")
    places = weight[0, 0].numel()
    return weight.shape[1] * places, weight.shape[0] * places


def _positive(value: float | int, noun: str, name: str) -> float:
    if not 0 < value < math.inf:
        raise WonderlandError(f"{name} takes a {noun} above 0, not {value}.")
    return float(value)
