"""Train makemore's default transformer on names.txt with three seeds, and compare its test loss with the 1.92 that makemore states."""

import sys

import torch

from examples.lab import DATA, Claim, below, lines, run, spread, table
from examples.lab.names import ALPHABET, load
from examples.names_transformer.training import STEPS, train
from wonderland.core.memory import keep_freed_memory
from wonderland.generation import sample

STATED = 1.925  # "about 1.92"
SEEDS = (3407, 1, 2)  # the first is makemore's


def lab(data: str | None = None, steps: int = STEPS) -> tuple[list[Claim], str, dict[str, str]]:
    """Three seeds on makemore's split, with and without averaged weights; with fewer steps there are no claims."""
    keep_freed_memory()
    words = load(data)
    curves, plain, averaged, rows, model = {}, [], [], [], None
    for seed in SEEDS:
        model, curve = train(words, seed=seed, steps=steps)
        at = min(curve, key=lambda entry: entry[1])
        mean = min(curve, key=lambda entry: entry[2])
        curves[f"seed {seed}"] = [(step, loss) for step, loss, _ in curve]
        curves[f"seed {seed}, average"] = [(step, loss) for step, _, loss in curve]
        plain.append(at[1])
        averaged.append(mean[2])
        rows.append((f"seed {seed}", f"{at[1]:.4f}", at[0], f"{mean[2]:.4f}", mean[0]))
    assert model is not None
    rows.append(("all", spread(plain), "", spread(averaged), ""))
    size = sum(weight.numel() for weight in model.parameters())
    written = sample(model, torch.zeros(8, 1, dtype=torch.int64), 15, generator=torch.Generator().manual_seed(0))
    names = ["".join(ALPHABET[letter] for letter in row).partition(".")[0] for row in written.tolist()]
    report = table(("", "best test loss", "at step", "of the average of weights", "at step"), rows)
    report += f"\n{size:,} parameters, at most {steps:,} steps. Names: {', '.join(names)}"
    claims = []
    if steps >= STEPS:
        stated = "makemore's about 1.92"
        claims = [
            below(f"mean of the best test losses, {stated}", sum(plain) / len(plain), STATED),
            below(f"mean of the best test losses of averaged weights, {stated}", sum(averaged) / len(averaged), STATED),
        ]
    picture = lines(curves, title="Loss on 1,000 names", x_label="step", y_label="nats per character")
    return claims, report, {"loss": picture}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("names_transformer", __doc__, lab, given, {**DATA, "--steps": {"type": int, "default": STEPS}})


if __name__ == "__main__":
    sys.exit(main())
