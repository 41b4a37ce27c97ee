"""Draws from the posterior of a trained model's weights: Laplace's approximation of its last layer, or SWAG."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from wonderland.core import WonderlandError
from wonderland.nn.blocks.ensemble import MemberLinear
from wonderland.trust.last_layer import layer_posterior
from wonderland.trust.swag import Swag
from wonderland.trust.weight_draws import WeightDraws

LAPLACE_DRAWS, SWAG_DRAWS = 30, 10
COLLECTED = 20  # weights that SWAG takes into its averages
ENDS = "uncertainty laplace needs a model that ends in a linear layer: choose dropout or swag."
NORM_BATCHES = 20  # from which the statistics of batch norm are computed anew


def last_layer(model: nn.Module) -> tuple[str, nn.Linear | MemberLinear]:
    """The name of the last linear layer of a model, and the layer."""
    layers = [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear | MemberLinear)]
    if not layers:
        raise WonderlandError(ENDS)
    return layers[-1]


def laplace_draws(
    model: nn.Module,
    x: Any,
    y: Tensor,
    likelihood: str,
    *,
    rows: Sequence[Tensor] | None = None,
    weights: Tensor | None = None,
    seed: int = 0,
) -> WeightDraws:
    """Draws of the last layer's weights, given inputs x of training rows and their targets y (n,), standardised if numbers.

    Each member of an ensemble has a posterior of its own, from its `rows` among x; `weights` (n,) are those of the rows.
    """
    name, layer = last_layer(model)
    phi, out, computed = _features(model, name, layer, x)
    members = isinstance(layer, MemberLinear)
    generator = torch.Generator().manual_seed(seed)
    kernels, biases = [], []
    for member in range(layer.weight.shape[0] if members else len(phi)):
        own = slice(None) if rows is None else rows[member]
        kernel = layer.weight[member].T if members else layer.weight
        bias = layer.bias[member].T if members else (None if layer.bias is None else layer.bias[:, None])
        mean = torch.cat([kernel] if bias is None else [kernel, bias], 1).detach().double()
        if member in computed:
            place = computed.index(member)
            inputs = phi[place][own] if bias is None else nn.functional.pad(phi[place][own], (0, 1), value=1.0)
            shares = None if weights is None else weights[own]
            fitted = layer_posterior(inputs, out[place][own], y[own], mean, likelihood, weights=shares)
            drawn = fitted.draws(LAPLACE_DRAWS, generator).to(layer.weight.dtype)
        else:  # a member without hidden layers, whose weights are not this layer's
            drawn = mean.to(layer.weight.dtype).expand(LAPLACE_DRAWS, -1, -1)
        kernels.append(drawn[:, :, : kernel.shape[1]])
        biases.append(drawn[:, :, kernel.shape[1] :])
    prefix = f"{name}." if name else ""
    if members:
        draws = {"weight": torch.stack(kernels, 1).mT, "bias": torch.stack(biases, 1).mT}
    else:
        draws = {"weight": kernels[0], **({} if layer.bias is None else {"bias": biases[0][..., 0]})}
    return WeightDraws({prefix + key: values.contiguous() for key, values in draws.items()})


def _features(model: nn.Module, name: str, layer: nn.Module, x: Any) -> tuple[Tensor, Tensor, list[int]]:
    """Inputs of the last layer and outputs of the model for each member, in evaluation mode: (m, n, d), (m, n, c), and which members
    these are. A model whose last layer serves some of its members only names them by `deep`."""
    kept: list[Tensor] = []
    chosen: Tensor | None = None

    def keep(module: nn.Module, given: tuple[Any, ...], result: Tensor) -> None:
        kept.extend([given[0], result])

    hook = layer.register_forward_hook(keep)
    model.eval()
    pieces = []
    try:
        with torch.no_grad():
            for piece in x.split(2048) if isinstance(x, Tensor) else [x]:
                kept.clear()
                out = model(piece)
                if len(kept) == 2 and kept[1].dim() == 3 and len(kept[1]) < len(out):
                    chosen = getattr(model, "deep", None)
                    out = out if chosen is None else out[chosen]
                if len(kept) != 2 or not _adds(model, name, layer, piece[:8], out, kept[1], chosen):
                    raise WonderlandError(ENDS)
                pieces.append([tensor if tensor.dim() == 3 else tensor[None] for tensor in (kept[0], out)])
    finally:
        hook.remove()
    phi, outputs = (torch.cat(parts, 1).double() for parts in zip(*pieces, strict=True))
    return phi, outputs, list(range(len(phi))) if chosen is None else chosen.tolist()


def _adds(
    model: nn.Module, name: str, layer: nn.Module, x: Any, out: Tensor, result: Tensor, chosen: Tensor | None
) -> bool:
    """Whether the outputs are those of the layer, plus what does not depend on its weights."""
    if out.shape != result.shape:
        return False
    zeros = {".".join(filter(None, (name, key))): torch.zeros_like(value) for key, value in layer.named_parameters()}
    rest = functional_call(model, zeros, (x,))
    rest = rest if chosen is None else rest[chosen]
    rows = rest.shape[-2]
    return torch.allclose(out[..., :rows, :] - result[..., :rows, :], rest, atol=1e-4)


def swag_draws(
    model: nn.Module,
    steps: int,
    start: Callable[[nn.Module], Any],
    step: Callable[[Any, Any], Any],
    batches: Iterator[Any],
    *,
    seed: int = 0,
) -> WeightDraws:
    """Draws of all weights by SWAG: training goes on for `steps` at a constant rate, and weights on the way are collected.

    `start` makes a state of a model and `step` changes it for one batch, as a `Learner` does. The model given is not changed.
    """
    torch.manual_seed(seed)
    state = start(copy.deepcopy(model))
    swag, seen = Swag(state.model), []
    every = max(1, steps // COLLECTED)
    for place in range(1, every * COLLECTED + 1):
        batch = next(batches)
        if len(seen) < NORM_BATCHES:
            seen.append(batch)
        step(state, batch)
        if place % every == 0:
            swag.collect()
    generator, drawn = torch.Generator().manual_seed(seed), []
    device = next(state.model.parameters()).device
    for _ in range(SWAG_DRAWS):
        swag.draw(generator)
        swag.refresh(batch["x"].to(device) for batch in seen)
        changed = {name for name, _ in state.model.named_parameters()}
        changed |= {name for name, _ in state.model.named_buffers() if name.endswith(("running_mean", "running_var"))}
        drawn.append(
            {name: v.detach().cpu().clone() for name, v in state.model.state_dict().items() if name in changed}
        )
    return WeightDraws({name: torch.stack([one[name] for one in drawn]) for name in drawn[0]})
