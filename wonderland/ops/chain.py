"""Several operators as one node for autograd: what a node costs in Python is paid once."""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wonderland.ops import native


class Link(NamedTuple):
    """One operator of a chain: what it takes after the stream, weights first, and last whether it keeps what backward needs.

    `mixes` says that it lets tokens see earlier ones.
    """

    op: Any
    weights: tuple[Tensor | None, ...]
    settings: tuple[Any, ...]
    mixes: bool = False


def chain(x: Tensor, links: Sequence[Link]) -> Tensor:
    """A stream through several operators, the first result of one being the first argument of the next, as one node for autograd.

    It saves what a node costs in Python, forward and backward. Who calls it has made sure that nobody listens to the
    dispatcher. Gradients that are differentiated again go link by link.
    """
    weights = [weight for link in links for weight in link.weights]
    if not native.learns(x, *weights):
        for op, own, settings, _ in links:
            x = op._init_fn(x, *own, *settings, False)[0]
        return x
    return _Chain.apply(tuple(links), x, *weights)  # pyright: ignore


class _Note:
    """What an operator leaves for its backward pass."""

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, links: tuple[Link, ...], x: Tensor, *weights: Tensor | None) -> Tensor:  # pyright: ignore
        ctx.links, ctx.notes, saved, at = links, [], [x, *weights], 0
        for op, own, settings, _ in links:
            given = (x, *weights[at : at + len(own)], *settings, True)
            found, note, at = op._init_fn(*given), _Note(), at + len(own)
            op._setup_context_fn(note, given, found)
            x = found[0]
            saved += note.saved_tensors
            note.saved_tensors, count = (), len(note.saved_tensors)
            ctx.notes.append((note, count, len(found) - 1))
        ctx.save_for_backward(*saved)
        return x

    @staticmethod
    def backward(ctx: Any, slope: Any) -> Any:  # pyright: ignore
        links, saved = ctx.links, ctx.saved_tensors
        x, weights = saved[0], saved[1 : 1 + sum(len(link.weights) for link in links)]
        if native.graphed():

            def whole(x: Tensor, *weights: Tensor | None) -> Tensor:
                at = 0
                for op, own, settings, _ in links:
                    x, at = native.first(op, x, *weights[at : at + len(own)], *settings, True), at + len(own)
                return x

            return None, *native.again(whole, (x, *weights), slope)
        slopes, end = [], len(saved)
        for link, (note, count, others) in zip(reversed(links), reversed(ctx.notes), strict=True):
            own = copy.copy(note)
            own.saved_tensors, end = saved[end - count : end], end - count
            found = link.op._backward_fn(own, slope, *(None,) * others)
            slope, slopes = found[0], [*found[1 : 1 + len(link.weights)], *slopes]
        return None, slope, *slopes
