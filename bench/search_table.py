"""ASHA beside full random search on a recorded table: 200 configurations of a network on digits, 27 epochs each.

python -m bench.search_table --record    # trains all of them, and writes bench/search_table.csv
python -m bench.search_table             # replays studies from the table, which trains nothing

A row is a configuration and its validation error (log loss) after each epoch. Full random search trains all 200 to the end; the question is
how many epochs ASHA takes until its best trial has a loss that small, in orders of the configurations that the seed decides.
"""

import argparse
import csv
import itertools
import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from wonderland.core import mix
from wonderland.search import ASHA, Choice, Float, Integer, Result, Space, Study, work

FILE = Path(__file__).with_name("search_table.csv")
CONFIGURATIONS, EPOCHS, ETA, RUNGS = 200, 27, 3, 4
SPACE = Space({
    "lr": Float(1e-4, 1.0, log=True), "batch": Choice((16, 32, 64, 128)), "width": Integer(8, 128, log=True),
    "depth": Integer(1, 3), "dropout": Float(0.0, 0.6), "weight_decay": Float(1e-6, 1e-1, log=True),
})  # fmt: skip


def curve(number: int) -> list[float]:
    """The validation loss of a configuration after each epoch; the best so far, as in a run."""
    settings = SPACE.sample(0, number)
    images, labels = digits()
    order = np.random.Generator(np.random.Philox(mix(0, 1))).permutation(len(images))
    train, held = order[:1200], order[1200:]
    torch.manual_seed(mix(7, number))
    sizes = [64, *[settings["width"]] * settings["depth"]]
    layers = [
        layer
        for a, b in itertools.pairwise(sizes)
        for layer in (nn.Linear(a, b), nn.ReLU(), nn.Dropout(settings["dropout"]))
    ]
    model = nn.Sequential(*layers, nn.Linear(sizes[-1], 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings["lr"], weight_decay=settings["weight_decay"])
    found, best = [], math.log(10) * 10  # what a network that diverges is given
    for epoch in range(EPOCHS):
        model.train()
        shuffled = np.random.Generator(np.random.Philox(mix(number, epoch))).permutation(train)
        for start in range(0, len(train), settings["batch"]):
            rows = shuffled[start : start + settings["batch"]]
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            value = float(nn.functional.cross_entropy(model(images[held]), labels[held]))
        best = min(best, value) if math.isfinite(value) else best
        found.append(best)
    return found


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    return torch.tensor(bunch.data / 16, dtype=torch.float32), torch.tensor(bunch.target)


def record() -> None:
    """Train every configuration, and write the table."""
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["configuration", *range(1, EPOCHS + 1)])
        for number in range(CONFIGURATIONS):
            writer.writerow([number, *(f"{value:.4f}" for value in curve(number))])


def read() -> np.ndarray:
    """The table. Shapes: -> (configurations, epochs)."""
    with FILE.open(newline="") as file:
        return np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]])


def replay(table: np.ndarray, seed: int) -> tuple[float, float, int | None]:
    """The best loss of full random search, that of ASHA, and the epochs after which ASHA has reached the former."""
    order = np.random.Generator(np.random.Philox(mix(seed, 2))).permutation(len(table))
    target, spent, reached, best = float(table[:, -1].min()), 0, None, math.inf
    space = Space({"number": Float(0.0, 1.0)})

    def objective(job: Any) -> Result:
        nonlocal spent, reached, best
        epochs = round(EPOCHS * job.share)
        spent += epochs - (
            round(EPOCHS * job.share / ETA) if job.rung else 0
        )  # a promoted trial goes on from its checkpoint
        value = float(table[order[job.trial], epochs - 1])
        best = min(best, value)
        if reached is None and best <= target:
            reached = spent
        return Result(value, steps=epochs)

    with tempfile.TemporaryDirectory() as folder:
        study = Study.create(f"{folder}/study", space, ASHA(eta=ETA, rungs=RUNGS), trials=len(table), seed=seed)
        work(study, objective)
    return target, best, reached


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    if args.record:
        record()
    table = read()
    found = [replay(table, seed) for seed in range(args.seeds)]
    full = table.size
    reached = [epochs for _, _, epochs in found if epochs is not None]
    print(f"full random search: {full:,} epochs, loss {found[0][0]:.4f}")
    print(
        f"ASHA reached it in {len(reached)} of {len(found)} orders; its median loss at the end {statistics.median(b for _, b, _ in found):.4f}"
    )
    if reached:
        print(
            f"epochs until then: median {statistics.median(reached):,.0f} ({statistics.median(reached) / full:.1%}), most {max(reached):,} ({max(reached) / full:.1%})"
        )


if __name__ == "__main__":
    main()
