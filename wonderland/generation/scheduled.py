"""Scheduled sampling: in training, some true tokens of the input are replaced by samples from the model itself."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.seeds import uniform
from wonderland.generation.reading import Reader
from wonderland.generation.sampling import draw


def teacher_forcing_rate(
    step: int, schedule: str = "inverse_sigmoid", *, rate: float | int = 1000.0, least: float | int = 0.0
) -> float:
    r"""The probability that an input token is the true one at a training step, from 1 down to `least`.

    .. math::
        \text{linear: } 1 - i / k, \qquad \text{exponential: } e^{-i / k}, \qquad
        \text{inverse sigmoid: } \frac{k}{k + e^{i / k}}

    with i the step and k = `rate`, in steps. Paper: Bengio et al., 2015. Book: Alice 8.3.

    >>> [round(teacher_forcing_rate(i, "linear", rate=10), 2) for i in (0, 5, 20)]
    [1.0, 0.5, 0.0]
    """
    if step < 0 or not rate > 0 or not 0 <= least <= 1:
        raise WonderlandError(
            f"teacher_forcing_rate needs a step from 0, a rate above 0 and least from 0 to 1, "
            f"not {step}, {rate} and {least}."
        )
    if schedule == "linear":
        probability = 1 - step / rate
    elif schedule == "exponential":
        probability = math.exp(-step / rate)
    elif schedule == "inverse_sigmoid":
        probability = rate / (rate + math.exp(min(step / rate, 700.0)))
    else:
        raise WonderlandError(f"Schedules are linear, exponential and inverse_sigmoid, not {schedule!r}.")
    return max(float(least), probability)


def scheduled_sampling(
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
    """Inputs for a training step: tokens (b, t), each kept with probability `truth` and otherwise sampled from the model.

    The sample for position i is drawn from the model's logits after the inputs before it. With `passes=None` those are the mixed
    inputs, position by position, as in the paper. With a number of passes, all positions are sampled at once from the inputs of
    the pass before, at the cost of one forward pass each; as many passes as tokens give the exact result. The first token and
    padding are kept. No gradient flows through the samples, and the targets remain the true tokens. The random numbers depend
    only on (seed, step), row and position.

    Paper: Bengio et al., 2015; Mihaylova and Martins, 2019 (passes). Book: Alice 8.3.

    >>> from wonderland.models import Decoder
    >>> model, tokens = Decoder(vocab=10, dim=8, depth=1), torch.randint(10, (2, 6))
    >>> bool((scheduled_sampling(model, tokens, 1.0) == tokens).all()), scheduled_sampling(model, tokens, 0.5).shape
    (True, torch.Size([2, 6]))
    """
    if not 0 <= truth <= 1:
        raise WonderlandError(f"truth, the probability of a true token, is from 0 to 1, not {truth!r}.")
    if passes is not None and passes < 1:
        raise WonderlandError(f"passes is a whole number from 1, or None for position by position, not {passes!r}.")
    if not temperature > 0:
        raise WonderlandError(f"scheduled_sampling takes a temperature above 0, not {temperature!r}.")
    b, t = tokens.shape
    numbers = uniform(seed, step, np.arange(b), 2 * t)
    keep = torch.from_numpy(numbers[:, :t] < truth).to(tokens.device)
    keep[:, 0] = True
    if mask is not None:
        keep |= ~mask
        # With left padding, the first real token of a row is not in column 0.
        keep |= mask & (mask.cumsum(1) == 1)
    uniforms = torch.from_numpy(numbers[:, t:]).to(tokens.device)
    if bool(keep.all()):
        return tokens.clone()
    reader = Reader(model)
    return (_by_position if passes is None else _by_passes)(reader, tokens, keep, uniforms, mask, passes, temperature)


def _by_passes(
    reader: Reader, tokens: Tensor, keep: Tensor, uniforms: Tensor, mask: Any, passes: Any, temperature: Any
) -> Tensor:
    mixed, b = tokens, tokens.shape[0]
    for _ in range(passes):
        with reader.evaluating():
            logits = reader.model(mixed, mask)[:, :-1]
            probabilities = (logits / temperature).softmax(-1, dtype=torch.float64).flatten(0, 1)
            drawn = torch.tensor(draw(probabilities, uniforms[:, 1:].reshape(-1, 1)), device=tokens.device).view(b, -1)
        rest = torch.where(keep[:, 1:], tokens[:, 1:], drawn.to(tokens.dtype))
        before, mixed = mixed, torch.cat([tokens[:, :1], rest], 1)
        if torch.equal(before, mixed):
            break
    return mixed


def _by_position(
    reader: Reader, tokens: Tensor, keep: Tensor, uniforms: Tensor, mask: Any, passes: Any, temperature: Any
) -> Tensor:
    mixed, state = tokens.clone(), None
    for position in range(1, tokens.shape[1]):
        with reader.evaluating():
            real = None if mask is None else mask[:, position - 1 : position]
            logits, state = reader.model.stream(mixed[:, position - 1 : position], state, real)
            probabilities = (logits[:, -1] / temperature).softmax(-1, dtype=torch.float64)
            drawn = torch.tensor(draw(probabilities, uniforms[:, position : position + 1]), device=tokens.device)
        mixed[:, position] = torch.where(keep[:, position], tokens[:, position], drawn.to(tokens.dtype))
    return mixed
