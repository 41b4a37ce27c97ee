"""Muon for the filters of convolutions, AdamW for everything else."""

import torch
from torch import Tensor

from wonderland.optim.rules.adam import adamw
from wonderland.optim.rules.muon import orthogonalise
from wonderland.optim.rules.rule import Options, State, UpdateRule


def _init(parameter: Tensor, options: Options) -> State:
    if parameter.ndim > 2:
        return {"momentum_buffer": torch.zeros_like(parameter)}
    return adamw.init(parameter, options)


def _update(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""A filter bank of m filters is one matrix (m, n); it is rescaled to the norm of a semi-orthogonal one, then moved by Muon.

    .. math::
        B_t = \mu B_{t-1} + G_t, \qquad O_t = \mathrm{NS}(G_t + \mu B_t), \qquad
        X_t = \frac{\sqrt{m}}{\lVert X_{t-1} \rVert} X_{t-1} - \eta\,O_t

    For networks in which a norm follows each convolution, so that the scale of its filters does not matter. Tensors of one or
    two axes are updated by AdamW with the rate `others` times that of the filters. Paper: Jordan, 2024 (airbench).
    """
    if parameter.ndim <= 2:
        return adamw.update(gradient, state, parameter, {**options, "lr": options["lr"] * options["others"]})
    momentum, count = options["momentum"], parameter.shape[0]
    buffer = momentum * state["momentum_buffer"] + gradient
    ahead = (gradient + momentum * buffer).reshape(count, -1)
    near = orthogonalise(ahead, options["ns_steps"], precision=options["precision"]).reshape(parameter.shape)
    scale = count**0.5 / parameter.norm().clamp(min=1e-12)
    return (scale - 1) * parameter - options["lr"] * near.to(parameter.dtype), {"momentum_buffer": buffer}


filter_muon = UpdateRule(
    _init,
    _update,
    {
        "lr": 0.1, "momentum": 0.6, "others": 0.1, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.01,
        "ns_steps": 3, "precision": "float32",
    },
)  # fmt: skip
