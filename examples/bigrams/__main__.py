"""Fit bigram models to names.txt, and compare the losses with those that makemore prints."""

import sys

import torch

from examples.bigrams.model import by_gradient, counts, loss, probabilities
from examples.lab import DATA, Claim, about, below, lines, run, spread, table
from examples.lab.names import ALPHABET, contexts, load
from wonderland.understand import svg

SEEDS = (2147483647, 1, 2)
STEPS = 300


def picture(probability: torch.Tensor) -> str:
    """The table of probabilities as a heat map: rows are letters, columns the next letter."""
    side, parts = (svg.WIDTH - 40) / 27, []
    for i, letter in enumerate(ALPHABET):
        parts.append(svg.text(24, 20 + side * (i + 0.7), letter, "m s e"))
        parts.append(svg.text(32 + side * (i + 0.5), 15, letter, "m s c"))
        for j, value in enumerate(probability[i].tolist()):
            shade = (
                f'<rect x="{32 + side * j:g}" y="{20 + side * i:g}" width="{side:.3f}" height="{side:.3f}" class="f0" '
            )
            parts.append(shade + f'fill-opacity="{min(1.0, value**0.5 * 1.2):.3f}"/>')
    title = "How often a letter follows another"
    return svg.chart(parts, 20 + side * 27 + 10, title, f"{title}: darker is more often; the dot begins and ends names")


def names(probability: torch.Tensor, count: int, seed: int = 0) -> list[str]:
    """Names sampled letter by letter."""
    generator, words = torch.Generator().manual_seed(seed), []
    for _ in range(count):
        word, letter = "", 0
        while letter or not word:
            letter = int(torch.multinomial(probability[letter], 1, generator=generator))
            if not letter:
                break
            word += ALPHABET[letter]
        words.append(word)
    return words


def lab(data: str | None = None) -> tuple[list[Claim], str, dict[str, str]]:
    before, after = contexts(load(data), 1)
    seen = counts(before[:, 0], after)
    plain, added = loss(seen, probabilities(seen)), loss(seen, probabilities(seen, 1.0))
    runs = [by_gradient(before[:, 0], after, steps=STEPS, seed=seed) for seed in SEEDS]
    ends = [path[-1] for _, path in runs]
    descended = [loss(seen, logits.double().softmax(1)) for logits, _ in runs]
    rows = [
        ("counts", f"{plain:.6f}", "2.454014"),
        ("counts, add-one smoothing", f"{added:.6f}", "2.454577"),
        ("gradient descent, with the penalty", spread(ends), "2.4818"),
        ("gradient descent, cross-entropy alone", spread(descended), ""),
    ]
    claims = [
        about("counts", plain, 2.454014, 5e-7),
        about("counts, add-one smoothing", added, 2.454577, 5e-7),
        below(
            f"gradient descent, {STEPS} steps of rate 50, mean of {len(SEEDS)} seeds", sum(ends) / len(ends), 2.48185
        ),
    ]
    shown = {
        f"seed {seed}": [(k, value - plain) for k, value in enumerate(path)]
        for seed, (_, path) in zip(SEEDS, runs, strict=True)
    }
    curve = lines(
        shown,
        title="By gradient: loss above that of the counts",
        x_label="step",
        y_label="nats above the counts",
        log_y=True,
    )
    report = table(("method", "loss", "makemore's"), rows)
    text = f"{report}\n\nnew names: {', '.join(names(probabilities(seen), 8))}"
    return claims, text, {"table": picture(probabilities(seen)), "loss": curve}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("bigrams", __doc__, lab, given, DATA)


if __name__ == "__main__":
    sys.exit(main())
