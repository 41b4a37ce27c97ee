"""Scheduled sampling: in training, some true tokens of the input give way to what the model itself would have written."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.seeds import uniform
from wonderland.generation.reading import Reader
from wonderland.generation.sampling import draw


def truth_rate(
    step: int, schedule: str = "inverse_sigmoid", *, rate: float | int = 1000.0, least: float | int = 0.0
) -> float:
    r"""The share of true tokens in the input at a training step, from 1 down to `least`.

    .. math::
        \text{linear: } 1 - i / k, \qquad \text{exponential: } e^{-i / k}, \qquad
        \text{inverse sigmoid: } \frac{k}{k + e^{i / k}}

    with k = `rate`, the pace in steps. Paper: Bengio et al., 2015. Book: Alice 8.3.

    >>> [round(truth_rate(i, "linear", rate=10), 2) for i in (0, 5, 20)]
    [1.0, 0.5, 0.0]
    """
    if step < 0 or not rate > 0 or not 0 <= least <= 1:
        raise WonderlandError(
            f"The share of true tokens needs a step from 0, a rate above 0 and a least share from 0 to 1, "
            f"not {step}, {rate} and {least}."
        )
    if schedule == "linear":
        share = 1 - step / rate
    elif schedule == "exponential":
        share = math.exp(-step / rate)
    elif schedule == "inverse_sigmoid":
        share = rate / (rate + math.exp(min(step / rate, 700.0)))
    else:
        raise WonderlandError(f"Schedules are linear, exponential and inverse_sigmoid, not {schedule!r}.")
    return max(float(least), share)


def mix_samples(
    model: Any,
    tokens: Tensor,
    truth: float | int,
    *,
    seed: int = 0,
    step: int = 0,
    mask: Tensor | None = None,
    passes: int | None = 1,
    temperature: float | int = 1.0,
) -> Tensor:
    """Inputs for a training step: tokens (b, t) in which each stays with probability `truth`, and else is what the model draws there.

    What is drawn for position i comes from the model's logits after the positions before it. With `passes=None` these are the
    mixed ones, read token by token, as in the paper. With a number, all positions are drawn at once from what the last pass
    mixed: one pass costs one reading of the batch, and as many passes as tokens give the exact mixture. The first token, and
    padding, stay. No gradient flows through the draw; targets remain the true tokens. The random numbers depend on
    (seed, step) and the place alone.

    Paper: Bengio et al., 2015; Mihaylova and Martins, 2019 (passes). Book: Alice 8.3.

    >>> from wonderland.models import Decoder
    >>> model, tokens = Decoder(vocab=10, dim=8, depth=1), torch.randint(10, (2, 6))
    >>> bool((mix_samples(model, tokens, 1.0) == tokens).all()), mix_samples(model, tokens, 0.5).shape
    (True, torch.Size([2, 6]))
    """
    if not 0 <= truth <= 1:
        raise WonderlandError(f"truth, the share of true tokens, is from 0 to 1, not {truth!r}.")
    if passes is not None and passes < 1:
        raise WonderlandError(f"passes is a whole number from 1, or None for token by token, not {passes!r}.")
    if not temperature > 0:
        raise WonderlandError(f"Samples are mixed in at a temperature above 0, not {temperature!r}.")
    b, t = tokens.shape
    numbers = uniform(seed, step, np.arange(b), 2 * t)
    keep = torch.from_numpy(numbers[:, :t] < truth).to(tokens.device)
    keep[:, 0] = True
    if mask is not None:
        keep |= ~mask
        # The first real token of a row may stand behind padding.
        keep |= mask & (mask.cumsum(1) == 1)
    lots = torch.from_numpy(numbers[:, t:]).to(tokens.device)
    if bool(keep.all()):
        return tokens.clone()
    reader = Reader(model)
    return (_by_steps if passes is None else _by_passes)(reader, tokens, keep, lots, mask, passes, temperature)


def _by_passes(
    reader: Reader, tokens: Tensor, keep: Tensor, lots: Tensor, mask: Any, passes: Any, temperature: Any
) -> Tensor:
    mixed, b = tokens, tokens.shape[0]
    for _ in range(passes):
        with reader.resting():
            logits = reader.model(mixed, mask)[:, :-1]
            chances = (logits / temperature).softmax(-1, dtype=torch.float64).flatten(0, 1)
            drawn = torch.tensor(draw(chances, lots[:, 1:].reshape(-1, 1)), device=tokens.device).view(b, -1)
        fresh = torch.where(keep[:, 1:], tokens[:, 1:], drawn.to(tokens.dtype))
        after = torch.cat([tokens[:, :1], fresh], 1)
        if torch.equal(after, mixed):
            break
        mixed = after
    return mixed


def _by_steps(
    reader: Reader, tokens: Tensor, keep: Tensor, lots: Tensor, mask: Any, passes: Any, temperature: Any
) -> Tensor:
    mixed, state = tokens.clone(), None
    for at in range(1, tokens.shape[1]):
        with reader.resting():
            real = None if mask is None else mask[:, at - 1 : at]
            logits, state = reader.model.stream(mixed[:, at - 1 : at], state, real)
            chances = (logits[:, -1] / temperature).softmax(-1, dtype=torch.float64)
            drawn = torch.tensor(draw(chances, lots[:, at : at + 1]), device=tokens.device)
        mixed[:, at] = torch.where(keep[:, at], tokens[:, at], drawn.to(tokens.dtype))
    return mixed
