"""Residual networks as ensembles of paths: how many there are of each length, and what is lost without one block."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn import (
    BasicBlock,
    BottleneckBlock,
    ConvNeXtBlock,
    InvertedResidual,
    NormFreeBlock,
    PreActivation,
    Residual,
    ResidualConvolution,
)

KINDS = (
    BasicBlock, BottleneckBlock, ConvNeXtBlock, InvertedResidual, NormFreeBlock, PreActivation, Residual, ResidualConvolution,
)  # fmt: skip


class Lesions(dict[str, float]):
    """The score without each block, by its name. It draws itself in a notebook, as bars."""

    def _repr_html_(self) -> str:
        most = max((abs(value) for value in self.values()), default=0.0) or 1.0
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td style='text-align:left'><div style='display:inline-block;height:10px;"
            f"background:#4a6fa5;width:{200 * abs(value) / most:.0f}px'></div> {value:.4g}</td></tr>"
            for name, value in self.items()
        )
        return f"<table><tr><th>without</th><th>score</th></tr>{rows}</table>"


class PathLengths:
    """How many paths of each length a residual network has: `counts` (longest + 1,) whole numbers, by the layers that they pass."""

    def __init__(self, branches: Sequence[int]):
        counts = [1]
        for layers in branches:
            if layers < 1:
                raise WonderlandError(f"A residual branch has at least one layer, not {layers}.")
            through = [0] * layers + counts
            counts = [a + b for a, b in zip(counts + [0] * layers, through, strict=True)]
        self.branches, self.counts = list(branches), counts

    @property
    def total(self) -> int:
        """All paths: 2 to the power of the blocks."""
        return sum(self.counts)

    @property
    def mean(self) -> float:
        """The mean number of layers on a path."""
        return float(np.dot(np.arange(len(self.counts)), np.array(self.counts, float)) / self.total)

    def _repr_html_(self) -> str:
        most = max(self.counts)
        bars = "".join(
            f"<div title='{count:,} paths of {length} layers' style='display:inline-block;width:8px;margin-right:1px;"
            f"background:#4a6fa5;height:{120 * count / most:.0f}px'></div>"
            for length, count in enumerate(self.counts)
        )
        return (
            f"<p>{self.total:,} paths through 0 to {len(self.counts) - 1} layers, {self.mean:.1f} on average</p>{bars}"
        )


def residual_blocks(model: nn.Module) -> dict[str, nn.Module]:
    """The residual blocks of a network, by their names."""
    return {name: module for name, module in model.named_modules() if isinstance(module, KINDS)}


def path_lengths(model: nn.Module) -> PathLengths:
    r"""The paths of a residual network by length: each block is passed through its branch or around it.

    .. math:: h_2 = h_1 + f_2(h_1) = x + f_1(x) + f_2(x + f_1(x)): \qquad \prod_b (1 + z^{n_b}) = \sum_l c_l z^l

    n_b are the convolutions and linear layers in the branch of block b (a projection at its shortcut is on no branch), and c_l is the
    number of paths through l layers. Book: Alice 9.4.2. Paper: Veit et al., 2016.

    >>> from wonderland.models import ResNet
    >>> lengths = path_lengths(ResNet.resnet18(classes=10))
    >>> lengths.total, lengths.counts[:5], lengths.mean
    (256, [1, 0, 8, 0, 28], 8.0)
    """
    branches = []
    for block in residual_blocks(model).values():
        aside = getattr(block, "shortcut", None)
        aside = {id(module) for module in aside.modules()} if isinstance(aside, nn.Module) else set()
        gate = getattr(block, "squeeze", None)  # a gate beside the branch lengthens no path
        aside |= {id(module) for module in gate.modules()} if isinstance(gate, nn.Module) else set()
        layers = [
            module
            for module in block.modules()
            if isinstance(module, nn.Conv2d | nn.Linear) and id(module) not in aside
        ]
        branches.append(max(1, len(layers)))
    if not branches:
        raise WonderlandError("This network has no residual blocks of nn, so nothing to count.")
    return PathLengths(branches)


def lesions(
    model: nn.Module, score: Callable[[nn.Module], float], blocks: Mapping[str, nn.Module] | None = None
) -> Lesions:
    """The score of a residual network without each of its blocks: a block that keeps its shape is replaced by the identity.

    A residual network is much like an ensemble of its paths, of which n blocks make 2^n, so it survives the loss of one. `blocks` are
    all residual blocks that keep the shape unless given. Book: Alice 9.4.2. Paper: Veit et al., 2016.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    >>> sorted(lesions(net, lambda net: 1.0, {"0": net[0]}))
    ['0']
    """
    if blocks is None:
        blocks = {name: block for name, block in residual_blocks(model).items() if keeps_shape(block)}
    result = Lesions()
    for name in blocks:
        owner: Any = model.get_submodule(name.rpartition(".")[0])
        kept = getattr(owner, name.rpartition(".")[2])
        setattr(owner, name.rpartition(".")[2], nn.Identity())
        try:
            result[name] = float(score(model))
        finally:
            setattr(owner, name.rpartition(".")[2], kept)
    return result


def keeps_shape(block: nn.Module) -> bool:
    """Whether a residual block has a plain shortcut."""
    return getattr(block, "shortcut", None) is None and getattr(block, "residual", True) is not False
