"""Branches one after another as one node for autograd: what a node costs is paid once, and threads wait for each other once."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wonderland.ops import branches, native
from wonderland.ops.branches import ROOM, Kind, room


class Link(NamedTuple):
    """One branch of a chain: its kind, its weights and its settings. `mixes` says that it lets tokens see earlier ones."""

    kind: Kind
    weights: tuple[Tensor | None, ...]
    settings: tuple[Any, ...]
    mixes: bool = False


def chain(x: Tensor, links: Sequence[Link]) -> Tensor:
    """A stream through several branches, each adding to it.

    Threads take their sequences through all of them, and for autograd all are one node; more than one where weights are large,
    since a node holds the slopes of all its weights. Who calls it has made sure that nobody listens to the dispatcher.
    Gradients that are differentiated again go link by link.
    """
    if not native.learns(x, *(weight for link in links for weight in link.weights)):
        x, y = x.contiguous(), torch.empty(x.shape, dtype=x.dtype)
        described = []
        for kind, weights, settings, _ in links:
            described.append(kind.there(y, x, *weights, *settings, False)[0])
            x = y  # a branch adds to what it has read, so from the second on they work in place
        branches.forward(described, y)
        return y
    for some in _pieces(links):
        x = _Chain.apply(some, x, *(weight for link in some for weight in link.weights))  # pyright: ignore
    return x


def _pieces(links: Sequence[Link]) -> Iterator[tuple[Link, ...]]:
    """Links whose slopes take no more than ROOM together, or one link."""
    piece, taken = [], 0
    for link in links:
        size = room(link.weights)
        if piece and taken + size > ROOM:
            yield tuple(piece)
            piece, taken = [], 0
        piece.append(link)
        taken += size
    yield tuple(piece)


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, links: tuple[Link, ...], x: Tensor, *weights: Tensor | None) -> Tensor:  # pyright: ignore
        ctx.links, ctx.counts, described = links, [], []
        saved: list[Tensor | None] = [*weights, x]
        x = x.contiguous()
        for kind, own, settings, _ in links:
            y = torch.empty(x.shape, dtype=x.dtype)
            branch, kept = kind.there(y, x, *own, *settings, True)
            described.append(branch)
            saved += [*kept, y]
            ctx.counts.append(len(kept))
            x = y
        branches.forward(described, x)
        ctx.save_for_backward(*saved[:-1])
        return x

    @staticmethod
    def backward(ctx: Any, slope: Any) -> Any:  # pyright: ignore
        with native.several(slope):
            return _Chain.back(ctx, slope)

    @staticmethod
    def back(ctx: Any, slope: Any) -> Any:
        links, saved, at = ctx.links, ctx.saved_tensors, sum(len(link.weights) for link in ctx.links)
        if native.graphed():

            def whole(x: Tensor, *weights: Tensor | None) -> Tensor:
                at = 0
                for kind, own, settings, _ in links:
                    x, at = native.first(kind.op, x, *weights[at : at + len(own)], *settings, True), at + len(own)
                return x

            return None, *native.again(whole, (saved[at], *saved[:at]), slope)
        described, slopes, own = [], [], 0
        for link, count in zip(links, ctx.counts, strict=True):
            weights, x, kept = saved[own : own + len(link.weights)], saved[at], saved[at + 1 : at + 1 + count]
            branch, found = link.kind.back(x.contiguous(), weights, kept, link.settings)
            described.append(branch)
            slopes += branches.slopes_of(weights, found)
            own, at = own + len(link.weights), at + 1 + count
        return None, branches.backward(described, slope), *slopes
