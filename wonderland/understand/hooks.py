"""Layers by name, and models in evaluation mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from wonderland.core import WonderlandError


def layer_of(model: Any, name: str) -> nn.Module:
    """A layer by its name."""
    modules = dict(model.named_modules())
    if name not in modules:
        raise WonderlandError(f"There is no layer {name!r}. Some of them are {', '.join(list(modules)[1:5])}.")
    return modules[name]


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """A model in evaluation mode for a while."""
    training = getattr(model, "training", False)
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()
