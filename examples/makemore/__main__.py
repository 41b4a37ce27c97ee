"""Train the two networks on names.txt with three seeds, and compare their losses with those that makemore prints."""

import sys

import torch

from examples.lab import DATA, Claim, below, lines, run, spread, table
from examples.lab.names import ALPHABET, contexts, load, splits
from examples.makemore.network import Network, normed, plain
from examples.makemore.training import losses, train

# What makemore prints for one seed (train, dev), and the steps it takes.
PRINTED = {"plain": (2.1260, 2.1701), "batch norm": (2.0674, 2.1057)}
STEPS = 200_000
WITHIN = 0.005  # how much worse than makemore's single seed the mean of three seeds may be


@torch.no_grad()
def names(network: Network, count: int, seed: int = 0) -> list[str]:
    """New names from the first of the seeds."""
    generator, words = torch.Generator().manual_seed(seed), []
    seeds = len(network.weights["table"])
    for _ in range(count):
        word, context = "", [0, 0, 0]
        while len(word) < 20:
            probabilities = network.logits(torch.tensor([context]).expand(seeds, 1, 3))[0, 0].softmax(0)
            letter = int(torch.multinomial(probabilities, 1, generator=generator))
            if letter == 0:
                break
            word, context = word + ALPHABET[letter], [*context[1:], letter]
        words.append(word)
    return words


def lab(data: str | None = None, steps: int = STEPS) -> tuple[list[Claim], str, dict[str, str]]:
    """Both networks; with fewer steps than makemore's there are no claims."""
    parts = splits(load(data))
    sets = {name: contexts(words, 3) for name, words in parts._asdict().items()}
    claims, rows, curves, made = [], [], {}, []
    for name, make in (("plain", plain), ("batch norm", normed)):
        network, curves[name] = train(make, *sets["train"], steps=steps)
        means = {part: losses(network, *pairs) for part, pairs in sets.items()}
        rows.append((name, *(f"{loss:.4f}" for loss in PRINTED[name]), *(spread(means[part]) for part in sets)))
        made.append(f"{name}: {', '.join(names(network, 8))}")
        if steps >= STEPS:
            for part, stated in zip(("train", "dev"), PRINTED[name], strict=True):
                mean = sum(means[part]) / len(means[part])
                claims.append(below(f"{name}: mean loss on {part}, makemore's {stated}", mean, stated + WITHIN))
    report = table(("network", "makemore: train", "dev", "ours: train", "dev", "test"), rows)
    picture = lines(
        curves,
        title="Loss of the batches, means of 1,000 steps",
        x_label="step",
        y_label="nats per character",
        log_y=True,
    )
    return claims, "\n".join([report, "", *made]), {"loss": picture}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("makemore", __doc__, lab, given, {**DATA, "--steps": {"type": int, "default": STEPS}})


if __name__ == "__main__":
    sys.exit(main())
