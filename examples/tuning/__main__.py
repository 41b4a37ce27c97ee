"""D2L 19 in small: random search, successive halving and ASHA choose rate and batch size of LeNet on 1,000 images of digits.

The books' settings (rates from 0.01 to 1 on a logarithmic scale, batches of 32 to 256; 5 trials of 10 epochs; 30 trials with eta 2 from 2 epochs on; ASHA with two workers) on
MNIST's test images in place of Fashion-MNIST, with at most 8 epochs where rungs double.
"""

import gzip
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from examples.lab import Claim, below, equal, run, table
from examples.lab.claims import DATA
from examples.lab.files import find
from wonderland.core import mix
from wonderland.models import LeNet
from wonderland.search import ASHA, Float, Integer, RandomSearch, Result, Space, Study, SuccessiveHalving, Tuner, work

SPACE = Space({"lr": Float(0.01, 1.0, log=True), "batch_size": Integer(32, 256)})
ROWS = 1000


class Trainings:
    """LeNet with rectifiers by stochastic gradient descent (with sigmoids it does not leave chance in so few steps); a trial that is promoted goes on from its own weights."""

    def __init__(self, images: Tensor, labels: Tensor, epochs: int):
        self.images, self.labels, self.epochs = images, labels, epochs
        self.kept: dict[int, tuple[Any, Any, int]] = {}
        self.spent = 0

    def __call__(self, job: Any) -> Result:
        if job.trial not in self.kept:
            torch.manual_seed(mix(3, job.trial))
            net = LeNet(10, 1, activation="relu", pool="max")
            self.kept[job.trial] = net, torch.optim.SGD(net.parameters(), lr=job.settings["lr"]), 0
        net, optimizer, done = self.kept[job.trial]
        until, size = round(self.epochs * job.share), job.settings["batch_size"]
        for epoch in range(done, until):
            net.train()
            order = np.random.Generator(np.random.Philox(mix(job.trial, epoch))).permutation(ROWS)
            for start in range(0, ROWS, size):
                rows = order[start : start + size]
                loss = nn.functional.cross_entropy(net(self.images[rows]), self.labels[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        self.kept[job.trial] = net, optimizer, until
        self.spent += until - done
        net.eval()
        with torch.no_grad():
            wrong = net(self.images[ROWS : 2 * ROWS]).argmax(1) != self.labels[ROWS : 2 * ROWS]
        return Result(float(wrong.float().mean()), steps=until)


def searched(
    tuner: Tuner, trials: int, epochs: int, data: tuple[Tensor, Tensor], workers: int = 1
) -> tuple[Study, int]:
    """A study by so many workers, and the epochs that they trained."""
    trainings = Trainings(*data, epochs)
    with tempfile.TemporaryDirectory() as folder:
        Study.create(f"{folder}/study", SPACE, tuner, trials=trials)
        threads = [
            threading.Thread(target=work, args=(Study.open(f"{folder}/study"), trainings)) for _ in range(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return Study.open(f"{folder}/study"), trainings.spent


def images(folder: Path) -> tuple[Tensor, Tensor]:
    """2,000 of MNIST's test images and their labels."""
    with gzip.open(folder / "mnist-t10k-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(16 + 784 * 2 * ROWS), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(folder / "mnist-t10k-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + 2 * ROWS), np.uint8, offset=8)
    return torch.tensor(pixels / 255, dtype=torch.float32), torch.tensor(labels.astype(np.int64))


def lab(data: str | None = None) -> tuple[list[Claim], str, dict[str, str]]:
    """The three searches."""
    digits = images(find("mnist-t10k-images-idx3-ubyte.gz", data).parent)
    found = {
        "random search, 5 trials": searched(RandomSearch(), 5, 10, digits),
        "successive halving, 30 trials": searched(SuccessiveHalving(eta=2, rungs=3), 30, 8, digits),
        "ASHA, 30 trials, two workers": searched(ASHA(eta=2, rungs=3, spend=0), 30, 8, digits, workers=2),
    }
    rows, claims, full = [], [], 30 * 8
    for name, (study, spent) in found.items():
        best = study.best
        rows.append(
            [name, f"{best.score:.3f}", str(spent), f"{best.settings['lr']:.3g}", str(best.settings["batch_size"])]
        )
    (few, _), (halved, halving), (promoted, asha) = found.values()
    claims = [
        below("random search: best error", few.best.score, 0.3),
        below("successive halving: best error", halved.best.score, 0.2),
        below("and epochs beside whole trainings", halving / full, 0.6),
        below("ASHA: best error", promoted.best.score, 0.15),
        below("and epochs beside whole trainings", asha / full, 0.6),
        equal("trials that both measured", (len(halved.trials), len(promoted.trials)), (30, 30)),
    ]
    return claims, table(["", "best error", "epochs", "rate", "batch"], rows), {}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("tuning", __doc__, lab, given, DATA)


if __name__ == "__main__":
    sys.exit(main())
