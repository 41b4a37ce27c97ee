"""Muon: momentum of a matrix, orthogonalised so that all its singular values are near one."""

import math

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.optim.rules.rule import Options, State, UpdateRule

PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32, "float64": torch.float64}
COEFFICIENTS = (
    3.4445,
    -4.7750,
    2.0315,
)  # a quintic with a large derivative at 0 that maps singular values to about 0.7 to 1.2


def orthogonalise(matrix: Tensor, steps: int = 5, *, precision: str = "bfloat16", eps: float = 1e-7) -> Tensor:
    r"""A matrix with the same singular vectors and singular values near 1, by Newton-Schulz iterations.

    .. math:: X \leftarrow a X + (b A + c A^2) X, \qquad A = X X^\top, \qquad X_0 = G / \lVert G \rVert_F

    >>> values = torch.linalg.svdvals(orthogonalise(torch.randn(8, 4), precision="float32"))
    >>> bool(values.min() > 0.3), bool(values.max() < 1.3)
    (True, True)
    """
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    if precision not in PRECISIONS:
        raise WonderlandError(f"precision is one of {', '.join(PRECISIONS)}, not {precision!r:.60}.")
    x = matrix.to(PRECISIONS[precision])
    x = x.T.contiguous() if tall else x  # contiguous for speed; the same bits
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _init(parameter: Tensor, options: Options) -> State:
    return {"momentum_buffer": torch.zeros_like(parameter)}


def _update(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""Nesterov momentum, orthogonalised, with decoupled weight decay.

    .. math::
        B_t = \mu B_{t-1} + (1 - \mu) G_t, \qquad O_t = \mathrm{NS}((1 - \mu) G_t + \mu B_t), \qquad
        X_t = X_{t-1} - \eta\,\Bigl(\sqrt{\max(1, \tfrac{m}{n})}\,O_t + \lambda X_{t-1}\Bigr)

    For the matrices inside a network; embeddings, heads, biases and norms are left to AdamW. Paper: Jordan et al., 2024.
    """
    momentum, lr = options["momentum"], options["lr"]
    buffer = torch.lerp(state["momentum_buffer"], gradient, 1 - momentum)
    ahead = torch.lerp(gradient, buffer, momentum)
    rows, columns = parameter.shape
    near = orthogonalise(ahead, options["ns_steps"], precision=options["precision"], eps=options["eps"])
    step = math.sqrt(max(1, rows / columns)) * near.to(parameter.dtype) + options["weight_decay"] * parameter
    return -lr * step, {"momentum_buffer": buffer}


muon = UpdateRule(
    _init,
    _update,
    {"lr": 1e-3, "momentum": 0.95, "weight_decay": 0.1, "ns_steps": 5, "eps": 1e-7, "precision": "bfloat16"},
)
