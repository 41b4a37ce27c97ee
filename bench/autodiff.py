"""Gradients by our reverse programs compared with torch.autograd, with equal weights and tokens, timed alternately.

    python -m bench.autodiff                 a GPT of 4 layers and width 128 on (12, 64) tokens; once traced, then compiled
    python -m bench.autodiff --no-compile    without torch.compile, which takes half a minute

Gradients are compared before anything is timed. Each time is the best of the rounds, and ratios are theirs divided by ours: at
least 0.87 is "at most 1.15 times torch", 0.71 "at most 1.4 times", 0.95 "at most 1.05 times".
"""

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.race import HEADER, race, setting
from wonderland import autodiff, nn
from wonderland.models.decoder import Decoder

VOCAB, WIDTH, DEPTH, BATCH, LENGTH = 65, 128, 4, 12, 64


def gpt() -> Decoder:
    """The model: learned positions and four heads."""
    return Decoder(
        VOCAB, WIDTH, DEPTH, mixer=nn.Attention.spec(heads=4, bias=True), position=nn.Learned.spec(length=LENGTH)
    )


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy over all tokens."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main() -> None:
    """Print the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    print(setting(options.threads, False, options.rounds))
    model = gpt()
    parameters = autodiff.parameters(model)
    tokens, targets = torch.randint(VOCAB, (2, BATCH, LENGTH))

    def loss(parameters: dict[str, Tensor], tokens: Tensor, targets: Tensor) -> Tensor:
        return loss_of(autodiff.call(model, parameters, tokens), targets)

    def theirs(call: Callable[..., Tensor] = model) -> None:
        model.zero_grad(set_to_none=True)
        loss_of(call(tokens), targets).backward()

    program = autodiff.trace(autodiff.value_and_grad(loss), parameters, tokens, targets)
    with autodiff.plain_rules():
        plain = autodiff.trace(autodiff.value_and_grad(loss), parameters, tokens, targets)
    theirs()
    for traced in (program, plain):
        for name, gradient in traced(parameters, tokens, targets)[1].items():
            torch.testing.assert_close(gradient, model.get_parameter(name).grad, rtol=1e-3, atol=1e-5)
    print(HEADER)
    race(
        f"one gradient, {len(program)} steps",
        lambda: program(parameters, tokens, targets),
        theirs,
        options.rounds,
        peer="torch.autograd",
    )
    race(
        f"tensor operations only, {len(plain)} steps",
        lambda: plain(parameters, tokens, targets),
        theirs,
        options.rounds,
        peer="torch.autograd",
    )
    if options.no_compile:
        return
    compiled, flat = torch.compile(program.graph()), [*parameters.values(), tokens, targets]
    other = torch.compile(model)

    def ours() -> None:
        with torch.no_grad():
            compiled(*flat)

    race("compiled", ours, lambda: theirs(other), options.rounds, peer="torch.compile and its backward")


if __name__ == "__main__":
    main()
