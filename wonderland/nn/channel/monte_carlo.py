"""Monte Carlo dropout: mean and standard deviation of the outputs over many draws of dropout."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.blocks.ensemble import MemberDropout

_PLAIN = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


class Drawn(NamedTuple):
    """Mean (b, ...) and spread (b, ...) of answers; the spread is their standard deviation."""

    mean: Tensor
    spread: Tensor


def monte_carlo(model: nn.Module, *inputs: Any, draws: int = 10) -> Drawn:
    r"""The mean and spread of a model's answers with dropout on.

    .. math:: \mu = \frac1k \sum_i f(x; M_i), \qquad \sigma^2 = \frac{1}{k - 1} \sum_i (f(x; M_i) - \mu)^2

    Dropout alone is on, everything else (batch norm above all) as in evaluation; every module is left in the mode it was
    in. The mean's own error is sigma over the root of `draws`.

    Book: Alice 9.3.1. Paper: Gal and Ghahramani, 2016.

    >>> model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    >>> monte_carlo(model, torch.zeros(3, 2), draws=5).spread.shape
    torch.Size([3, 1])
    """
    if draws < 2:
        raise WonderlandError(f"monte_carlo takes at least 2 draws, which have a spread, not {draws}.")
    answers = dropout_outputs(model, *inputs, draws=draws)
    if not isinstance(answers[0], Tensor):
        raise WonderlandError(
            f"monte_carlo takes a model that answers with a tensor, not a {type(answers[0]).__name__}."
        )
    outputs = torch.stack(answers)
    return Drawn(outputs.mean(0), outputs.std(0))


def dropout_outputs(model: nn.Module, *inputs: Any, draws: int) -> list[Any]:
    """The model's answers with dropout on, one for each draw."""
    with _dropping(model), torch.no_grad():
        return [model(*inputs) for _ in range(draws)]


def drops(module: nn.Module) -> bool:
    """Whether a module itself, not one inside it, drops something in training."""
    rates = [getattr(module, name, 0) for name in ("dropout", "drop_path")]
    inline = any(isinstance(rate, int | float) and rate > 0 for rate in rates)
    plain = isinstance(module, _PLAIN) and module.p > 0
    return inline or plain or (isinstance(module, MemberDropout) and module.active)


@contextmanager
def _dropping(model: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    droppers = [module for module, _ in modes if drops(module)]
    if not droppers:
        raise WonderlandError("monte_carlo takes a model with dropout in it: without, every draw is the same.")
    try:
        model.eval()
        for module in droppers:
            module.training = True
        yield
    finally:
        for module, mode in modes:
            module.training = mode
