"""Optimizers beside torch's, the same parameters and gradients, same process, turn and turn about.

    python -m bench.optim                10 M parameters in 200 tensors: AdamW, Yogi and Lion against fused AdamW, the
                                         others against the default of torch.optim
    python -m bench.optim --rounds 40 --threads 1

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
    "Momentum": (optim.Momentum, partial(torch.optim.SGD, momentum=0.9), "default"),
    "Nesterov": (optim.Nesterov, partial(torch.optim.SGD, momentum=0.9, nesterov=True), "default"),
    "AdaGrad": (optim.AdaGrad, torch.optim.Adagrad, "default"),
    "RMSProp": (optim.RMSProp, torch.optim.RMSprop, "default"),
    "Adadelta": (optim.Adadelta, torch.optim.Adadelta, "default"),
}


def tensors(count: int, size: int) -> list[torch.nn.Parameter]:
    """Parameters with gradients, the same each time."""
    generator = torch.Generator().manual_seed(0)
    made = [torch.nn.Parameter(torch.randn(size, generator=generator)) for _ in range(count)]
    for parameter in made:
        parameter.grad = torch.randn(size, generator=generator)
    return made


def agree(ours, theirs) -> None:
    """Stop unless three steps give the same weights."""
    mine, other = tensors(3, 1001), tensors(3, 1001)
    first, second = ours(mine, lr=1e-3), theirs(other, lr=1e-3)
    for _ in range(3):
        first.step()
        second.step()
    torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="which to race; all of them by default")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tensors", type=int, default=200)
    parser.add_argument("--parameters", type=int, default=10_000_000)
    options = parser.parse_args()
    print(setting(options.threads, True, options.rounds))
    print(f"{options.parameters:,} parameters in {options.tensors} tensors, one step")
    print(HEADER)
    for name in options.names or PAIRS:
        ours, theirs, peer = PAIRS[name]
        if name not in ("Yogi", "Lion", "ScheduleFree"):
            agree(ours, theirs)
        size = options.parameters // options.tensors
        mine, other = ours(tensors(options.tensors, size), lr=1e-4), theirs(tensors(options.tensors, size), lr=1e-4)
        race(name, mine.step, other.step, options.rounds, peer=peer)


if __name__ == "__main__":
    main()
