"""Train a small GPT with our reverse program instead of loss.backward(), and with loss.backward(): the weights are equal.

    python examples/own_backward.py [--steps 100]

Both runs start from the same weights, see the same tokens and take the same AdamW steps in float64. After the last step
no weight differs by more than 1e-9, or the script fails.
"""

import argparse
import copy
import sys
import time

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland import autodiff, nn
from wonderland.models.decoder import Decoder

VOCAB, LENGTH, ALLOWED = 65, 64, 1e-9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--depth", type=int, default=4)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    shape = {"mixer": nn.Attention.spec(heads=4, bias=True), "position": nn.Learned.spec(length=LENGTH)}
    ours = Decoder(VOCAB, options.dim, options.depth, **shape).double()
    theirs = copy.deepcopy(ours)
    batches = torch.randint(VOCAB, (options.steps, 2, 12, LENGTH))

    def loss(parameters: dict[str, Tensor], tokens: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(autodiff.call(ours, parameters, tokens).flatten(0, 1), targets.flatten())

    program = autodiff.trace(autodiff.value_and_grad(loss), autodiff.parameters(ours), *batches[0])
    print(f"The reverse program has {len(program)} steps and a peak of {program.peak / 1e6:.0f} MB.")
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-3) for model in (ours, theirs)]
    began = time.monotonic()
    for number, (tokens, targets) in enumerate(batches):
        value, gradients = program(autodiff.parameters(ours), tokens, targets)
        for name, parameter in ours.named_parameters():
            parameter.grad = gradients[name]
        expected = F.cross_entropy(theirs(tokens).flatten(0, 1), targets.flatten())
        theirs.zero_grad()
        expected.backward()
        for optimizer in optimizers:
            optimizer.step()
        if number % 20 == 19:
            print(
                f"step {number + 1}: loss {float(value):.6f} and {float(expected.detach()):.6f}, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    pairs = zip(ours.parameters(), theirs.parameters(), strict=True)
    worst = max(float((weight - expected).abs().max().detach()) for weight, expected in pairs)
    print(f"After {options.steps} steps the weights differ by at most {worst:.2g} (allowed {ALLOWED:g}).")
    return 0 if worst <= ALLOWED else 1


if __name__ == "__main__":
    sys.exit(main())
