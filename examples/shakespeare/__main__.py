"""Train the small GPT on tiny Shakespeare with three seeds, and hold its loss beside nanoGPT's 1.88."""

import sys

import torch

from examples.lab import DATA, Claim, below, equal, lines, run, spread, table
from examples.lab.files import find
from examples.shakespeare.training import BLOCK, STEPS, encode, train
from wonderland.core.memory import keep_freed_memory

STATED = 1.88
SEEDS = (1337, 1, 2)  # the first is nanoGPT's


def lab(data: str | None = None, steps: int = STEPS) -> tuple[list[Claim], str, dict[str, str]]:
    """Three seeds; with fewer steps than nanoGPT's nothing is stated."""
    keep_freed_memory()
    tokens, letters = encode(find("tinyshakespeare.txt", data).read_text(encoding="utf-8"))
    cut = int(0.9 * len(tokens))
    curves, ends, models = {}, [], []
    for seed in SEEDS:
        model, curve = train(tokens[:cut], tokens[cut:], len(letters), seed=seed, steps=steps)
        curves[f"seed {seed}"] = curve
        ends.append(curve[-1][1])
        models.append(model)
    prompt = torch.tensor([[letters.index("\n")]])
    written = models[0].sample(prompt, BLOCK - 1, generator=torch.Generator().manual_seed(0))[0]
    size = sum(weight.numel() for weight in models[0].parameters())
    rows = [(f"seed {seed}", f"{end:.4f}") for seed, end in zip(SEEDS, ends, strict=True)]
    report = "\n".join(
        [
            f"{len(tokens):,} letters, {len(letters)} of them different; {size:,} parameters; {steps:,} steps",
            table(("", "nats a letter, held-out text"), [*rows, ("all", spread(ends))]),
            "",
            "".join(letters[number] for number in written.tolist()),
        ]
    )
    claims = []
    if steps >= STEPS:
        mean = sum(ends) / len(ends)
        claims = [
            below(f"mean validation loss, nanoGPT's {STATED}", mean, STATED),
            below("worst of the seeds", max(ends), STATED),
            equal("parameters", size, 804_096),
        ]
    picture = lines(curves, title="Loss on held-out Shakespeare", x_label="step", y_label="nats a letter")
    return claims, report, {"loss": picture}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("shakespeare", __doc__, lab, given, {**DATA, "--steps": {"type": int, "default": STEPS}})


if __name__ == "__main__":
    sys.exit(main())
