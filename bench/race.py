"""Races: two programs in one process, turn and turn about, after both gave the same answer."""

import platform
import time
from collections.abc import Callable

import torch
from torch import nn

from wonderland.core import keep_freed_memory
from wonderland.ops import native

HEADER = f"{'':44}{'ours':>11}{'theirs':>14}{'ratio':>8}   (middle half of the rounds)"


def setting(threads: int, raised: bool, rounds: int) -> str:
    """Prepare this process, and say how."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    raised = raised and keep_freed_memory()
    return (
        f"torch {torch.__version__} on {platform.machine()}, {threads} threads, float32, kernels {native.status()}, "
        f"glibc's mmap and trim thresholds {'raised for both' if raised else 'as they are'}, best of {rounds} rounds"
    )


def race(label: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int, *, peer: str = "") -> float:
    """Time both in turns, so that whatever else the machine does hits both; print and return theirs by ours, best by best."""
    mine, other = [], []
    for _ in range(2):
        ours(), theirs()
    for _ in range(rounds):
        for call, times in ((ours, mine), (theirs, other)):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
    ratios = sorted(b / a for a, b in zip(mine, other, strict=True))
    low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
    ratio = min(other) / min(mine)
    print(
        f"{label:44}{1e3 * min(mine):8.3f} ms{1e3 * min(other):11.3f} ms{ratio:7.2f}x   ({low:.2f} to {high:.2f}) {peer}",
        flush=True,
    )
    return ratio


def forward(call: Callable[[], object]) -> Callable[[], None]:
    """Without gradients."""

    def run() -> None:
        with torch.no_grad():
            call()

    return run


def both(module: nn.Module, call: Callable[[], torch.Tensor]) -> Callable[[], None]:
    """Forward and backward, gradients of the weights included."""

    def run() -> None:
        module.zero_grad()
        call().sum().backward()

    return run
