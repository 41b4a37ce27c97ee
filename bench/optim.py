"""Optimizers compared with torch's, on the same parameters and gradients, timed alternately.

    python -m bench.optim                10 M parameters in 200 tensors: AdamW, Yogi and Lion against fused AdamW, the
                                         others against the default of torch.optim
    python -m bench.optim --rounds 40 --threads 1
    python -m bench.optim --runs 5      five comparisons of each, and the worst ratio

Three steps of both are compared before anything is timed, where torch has the rule.
"""

import argparse
from functools import partial

import torch

from bench.race import HEADER, race, setting
from wonderland import optim

FUSED = partial(torch.optim.AdamW, fused=True)
PAIRS = {
    "AdamW": (optim.AdamW, FUSED, "fused AdamW"),
    "Adam": (optim.Adam, partial(torch.optim.Adam, fused=True), "fused Adam"),
    "Yogi": (optim.Yogi, FUSED, "fused AdamW"),
    "Lion": (optim.Lion, FUSED, "fused AdamW"),
    "ScheduleFree": (optim.ScheduleFree, FUSED, "fused AdamW"),
    "SGD": (optim.SGD, torch.optim.SGD, "default"),
    "SGD, fused": (optim.SGD, partial(torch.optim.SGD, fused=True), "fused"),
    "HeavyBall": (optim.HeavyBall, partial(torch.optim.SGD, momentum=0.9), "default"),
    "Momentum": (optim.Momentum, partial(torch.optim.SGD, momentum=0.9), "default"),
    "Nesterov": (optim.Nesterov, partial(torch.optim.SGD, momentum=0.9, nesterov=True), "default"),
    "AdaGrad": (optim.AdaGrad, torch.optim.Adagrad, "default"),
    "RMSProp": (optim.RMSProp, torch.optim.RMSprop, "default"),
    "Adadelta": (optim.Adadelta, torch.optim.Adadelta, "default"),
    "Muon": (optim.Muon, torch.optim.Muon, "default"),
}
NOT_IN_TORCH = ("Yogi", "Lion", "ScheduleFree")


def tensors(count: int, rows: int, columns: int) -> list[torch.nn.Parameter]:
    """Matrices with gradients, the same in each call."""
    generator = torch.Generator().manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(rows, columns, generator=generator)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.randn(rows, columns, generator=generator)
    return parameters


def agree(ours, theirs) -> None:
    """Fail unless three steps give the same weights."""
    mine, other = tensors(3, 77, 13), tensors(3, 77, 13)
    first, second = ours(mine, lr=1e-3), theirs(other, lr=1e-3)
    for _ in range(3):
        first.step()
        second.step()
    torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="optimizers to compare; all of them by default")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument(
        "--runs", type=int, default=1, help="comparisons of each; the worst is printed if there are several"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tensors", type=int, default=200)
    parser.add_argument("--parameters", type=int, default=10_000_000)
    options = parser.parse_args()
    print(setting(options.threads, True, options.rounds))
    columns = 200
    rows = options.parameters // options.tensors // columns
    print(f"{options.tensors * rows * columns:,} parameters in {options.tensors} tensors, one step")
    print(HEADER)
    worst = {}
    for name in options.names or PAIRS:
        ours, theirs, peer = PAIRS[name]
        if name not in NOT_IN_TORCH and name != "HeavyBall":
            agree(ours, theirs)
        mine, other = (kind(tensors(options.tensors, rows, columns), lr=1e-4) for kind in (ours, theirs))
        # A step of Muon is hundreds of matrix products; a few rounds are enough.
        rounds = max(2, options.rounds // 10) if name == "Muon" else options.rounds
        ratios = [race(name, mine.step, other.step, rounds, peer=peer) for _ in range(options.runs)]
        worst[name] = min(ratios), peer
    if options.runs > 1:
        print(f"The worst of {options.runs}: " + ", ".join(f"{n} {r:.2f}x {peer}" for n, (r, peer) in worst.items()))


if __name__ == "__main__":
    main()
