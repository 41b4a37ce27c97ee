"""The attention weights of a whole model: those of every layer that attends, while the model reads an input."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn import CrossMixer, Mixer
from wonderland.understand.hooks import evaluating


def attention_maps(model: nn.Module, *inputs: Any, **named: Any) -> dict[str, Tensor]:
    """The attention weights of each layer that attends, by the name of the layer, while `model(*inputs, **named)` runs.

    Self-attention gives (b, heads, t, t), attention of a context, as in an `EncoderDecoder` or a `Seq2Seq`, (b, heads, t, m).
    A layer that is used several times has the weights of its uses one after another: of the steps of a recurrent decoder
    along t; of layers that share their weights under the names "layer", "layer, use 2" and so on.

    >>> from wonderland.models import Seq2Seq
    >>> model = Seq2Seq(source_vocab=9, vocab=9, dim=4, state_size=6, attention=True)
    >>> maps = attention_maps(model, torch.zeros(1, 5, dtype=torch.int64), torch.zeros(1, 3, dtype=torch.int64))
    >>> {name: tuple(weights.shape) for name, weights in maps.items()}
    {'attention': (1, 1, 3, 5)}
    """
    recorded: dict[str, list[Tensor]] = {}
    with torch.no_grad(), evaluating(model), ExitStack() as stack:
        steps: set[str] = set()
        for name, module in model.named_modules():
            if isinstance(module, CrossMixer) and callable(getattr(module, "weights", None)):
                steps.add(name)
                stack.enter_context(
                    _recording(module, "answer", lambda m, x, state: m.weights(x, state), name, recorded)
                )
            elif isinstance(module, Mixer) and callable(getattr(module, "maps", None)):
                stack.enter_context(
                    _recording(module, "whole", lambda m, x, mask=None: m.maps(x, mask), name, recorded)
                )
        model(*inputs, **named)
    if not recorded:
        raise WonderlandError(f"This {type(model).__name__} has no layer with attention weights.")
    maps: dict[str, Tensor] = {}
    for name, uses in recorded.items():
        if name in steps:
            maps[name] = torch.cat(uses, 2)
            continue
        maps |= {name if index == 0 else f"{name}, use {index + 1}": weights for index, weights in enumerate(uses)}
    return maps


@contextmanager
def _recording(module: Any, method: str, weights: Any, name: str, recorded: dict[str, list[Tensor]]) -> Iterator[None]:
    """While a method of a module is called, its attention weights are recorded too."""
    original = getattr(module, method)

    def recording(*arguments: Any) -> Any:
        recorded.setdefault(name, []).append(weights(module, *arguments).detach())
        return original(*arguments)

    # A hook keeps fused forms away, which would not call the method.
    hook = module.register_forward_hook(lambda *_: None)
    setattr(module, method, recording)
    try:
        yield
    finally:
        delattr(module, method)
        hook.remove()
