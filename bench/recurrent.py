"""Recurrent mixers compared with torch.nn, with equal weights, timed alternately.

    python -m bench.recurrent            LSTM, GRU and RNN at three sizes, forward and with backward, and single steps
    python -m bench.recurrent LSTM --rounds 40

Outputs and gradients are compared before anything is timed. Each time is the best of the rounds, and ratios are theirs
divided by ours; in brackets, the quartiles of the ratios of single rounds. Both sides run with glibc's thresholds raised.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import nn

from wonderland.core import keep_freed_memory
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.mixers.lstm import LSTM
from wonderland.nn.mixers.rnn import RNN
from wonderland.ops import native

PAIRS = {"LSTM": (LSTM, nn.LSTM), "GRU": (GRU, nn.GRU), "RNN": (RNN, nn.RNN)}
SHAPES = [(4, 512, 128), (32, 64, 128), (1, 512, 256)]


def agree(mixer: nn.Module, theirs: nn.Module, x: torch.Tensor) -> None:
    """Fail unless outputs and gradients of the input are equal."""
    actual, expected = mixer(x), theirs(x)[0]
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    gradients = [torch.autograd.grad(y.square().sum(), x)[0] for y in (actual, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def race(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> str:
    """Time both alternately, so that other load on the machine affects both."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for round in range(rounds + 2):
        for name, call in (("ours", ours), ("theirs", theirs)):
            began = time.perf_counter()
            call()
            if round >= 2:
                times[name].append(time.perf_counter() - began)
    best = {name: min(seconds) for name, seconds in times.items()}
    ratios = sorted(b / a for a, b in zip(times["ours"], times["theirs"], strict=True))
    low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
    return (
        f"{1e3 * best['ours']:8.3f} ms  {1e3 * best['theirs']:8.3f} ms  {best['theirs'] / best['ours']:6.2f}x"
        f"  ({low:.2f} to {high:.2f})"
    )


def forward(call: Callable[[], torch.Tensor]) -> Callable[[], None]:
    def run() -> None:
        with torch.no_grad():
            call()

    return run


def both(module: nn.Module, x: torch.Tensor, call: Callable[[], torch.Tensor]) -> Callable[[], None]:
    def run() -> None:
        module.zero_grad()
        x.grad = None
        call().sum().backward()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *PAIRS], help="mixers to compare; all of them by default")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    raised = keep_freed_memory()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(
        f"torch {torch.__version__}, {options.threads} threads, float32, kernels {native.status()}, "
        f"glibc thresholds {'raised' if raised else 'at their defaults'}, best of {options.rounds}"
    )
    print(f"{'':34}{'ours':>11}{'torch.nn':>13}{'ratio':>8}   (quartiles)")
    for name in options.names or PAIRS:
        kind, peer = PAIRS[name]
        for b, t, dim in SHAPES:
            theirs = peer(dim, dim, batch_first=True)
            mixer = kind.from_torch(theirs)
            x = torch.randn(b, t, dim, requires_grad=True)
            agree(mixer, theirs, x)
            label = f"{name} {(b, t, dim)}"
            ours_only, theirs_only = (lambda m=mixer, x=x: m(x)), (lambda m=theirs, x=x: m(x)[0])
            print(f"{label + ' forward':34}", race(forward(ours_only), forward(theirs_only), options.rounds))
            print(
                f"{label + ' both':34}",
                race(both(mixer, x, ours_only), both(theirs, x, theirs_only), options.rounds),
            )
        steps(name, kind, peer, options.rounds)


def steps(name: str, kind: type, peer: type, rounds: int, dim: int = 128, count: int = 50) -> None:
    """Single tokens in a row, each from the state after the last one, as in generation."""
    theirs = peer(dim, dim, batch_first=True)
    mixer = kind.from_torch(theirs)
    x = torch.randn(count, 1, 1, dim)

    @torch.no_grad()
    def ours() -> torch.Tensor:
        y, state = x[0], None
        for token in x:
            y, state = mixer.stream(token, state)
        return y

    @torch.no_grad()
    def other() -> torch.Tensor:
        y, state = x[0], None
        for token in x:
            y, state = theirs(token, state)
        return y

    torch.testing.assert_close(ours(), other(), rtol=1e-5, atol=1e-5)
    print(f"{f'{name} {count} steps of (1, 1, {dim})':34}", race(ours, other, rounds))


if __name__ == "__main__":
    main()
