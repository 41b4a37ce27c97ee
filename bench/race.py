"""Races: two implementations timed alternately in one process, after their outputs were found equal."""

import platform
import time
from collections.abc import Callable

import torch
from torch import nn

from wonderland.core import keep_freed_memory
from wonderland.ops import native

HEADER = f"{'':44}{'ours':>11}{'theirs':>14}{'ratio':>8}   (quartiles of the rounds)"


def setting(threads: int, raised: bool, rounds: int) -> str:
    """Set threads, seed and allocator of this process, and describe them."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    raised = raised and keep_freed_memory()
    return (
        f"torch {torch.__version__} on {platform.machine()}, {threads} threads, float32, kernels {native.status()}, "
        f"glibc's mmap and trim thresholds {'raised for both' if raised else 'at their defaults'}, best of {rounds} rounds"
    )


def race(label: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int, *, peer: str = "") -> float:
    """Time both alternately, so that other load on the machine affects both; print and return the ratio theirs / ours.

    The ratio is that of the best times; in brackets, the quartiles of the ratios of single rounds.
    """
    our_times, their_times = [], []
    for _ in range(2):
        ours(), theirs()
    for _ in range(rounds):
        for call, times in ((ours, our_times), (theirs, their_times)):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
    ratios = sorted(b / a for a, b in zip(our_times, their_times, strict=True))
    low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
    ratio = min(their_times) / min(our_times)
    print(
        f"{label:44}{1e3 * min(our_times):8.3f} ms{1e3 * min(their_times):11.3f} ms{ratio:7.2f}x   ({low:.2f} to {high:.2f}) {peer}",
        flush=True,
    )
    return ratio


def forward(call: Callable[[], object]) -> Callable[[], None]:
    """A forward pass without gradients."""

    def run() -> None:
        with torch.no_grad():
            call()

    return run


def both(module: nn.Module, call: Callable[[], torch.Tensor]) -> Callable[[], None]:
    """Forward and backward pass, with gradients of the weights."""

    def run() -> None:
        module.zero_grad()
        call().sum().backward()

    return run
