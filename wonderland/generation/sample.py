"""Sampling from tensors: prompts of equal length in, a tensor of new tokens out."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.generate import generate


def sample(
    model: Any, tokens: Any, count: Any, *, temperature: Any = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """Continue prompts of one length: (b, t) -> (b, count) new tokens, each drawn from the model at a temperature.

    Temperature 0 always takes the most likely token. The model runs in evaluation mode.
    """
    valid = isinstance(count, int) and isinstance(temperature, int | float)
    if not valid or count < 1 or not temperature >= 0:
        raise WonderlandError(
            f"Sampling takes at least one step and a temperature of at least 0, not {count} and {temperature}."
        )
    model.check(tokens, None)
    seed = 0 if temperature == 0 else int(torch.randint(1 << 62, (), generator=generator))
    generated = generate(model, tokens, count, temperature=temperature, seed=seed).tokens
    return torch.tensor(generated, dtype=tokens.dtype, device=tokens.device)
