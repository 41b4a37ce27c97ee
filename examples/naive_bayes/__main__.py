"""Count binarised pixels of MNIST and classify by Bayes' rule.

With the four files of MNIST the accuracy is that of D2L (0.8427, 60,000 rows for training). With the test files alone (t10k),
the first 8,000 rows are counted and the last 2,000 classified.
"""

import gzip
import struct
import sys
from pathlib import Path

import numpy as np

from examples.lab import DATA, Claim, about, above, run, table
from examples.lab.files import find
from wonderland.probability import bernoulli_naive_bayes


def images(path: Path) -> np.ndarray:
    """Binary pixels, 1 from 128 on. Shapes: -> (n, 784)."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    _, count, height, width = struct.unpack(">IIII", raw[:16])
    return (np.frombuffer(raw, np.uint8, offset=16).reshape(count, height * width) >= 128).astype(np.float64)


def labels(path: Path) -> np.ndarray:
    """Shapes: -> (n,)."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return np.frombuffer(raw, np.uint8, offset=8).astype(np.int64)


def lab(data: str | None = None) -> tuple[list[Claim], str, dict[str, str]]:
    X, y = images(find("mnist-t10k-images-idx3-ubyte.gz", data)), labels(find("mnist-t10k-labels-idx1-ubyte.gz", data))
    folder = find("mnist-t10k-images-idx3-ubyte.gz", data).parent
    train = folder / "mnist-train-images-idx3-ubyte.gz"
    if train.is_file():
        known, classes = images(train), labels(folder / "mnist-train-labels-idx1-ubyte.gz")
        new, truth = X, y
    else:
        known, classes, new, truth = X[:8000], y[:8000], X[8000:], y[8000:]
    fit = bernoulli_naive_bayes(known, classes)
    accuracy = float((fit.predict(new).numpy() == truth).mean())
    if train.is_file():
        claim = about("accuracy on MNIST's test rows, D2L prints 0.8427", accuracy, 0.8427, 2e-3)
    else:
        claim = above("accuracy on the last 2,000 test rows, 8,000 counted (D2L: 0.8427 with 60,000)", accuracy, 0.8)
    wrong = [
        (str(k), int((truth == k).sum()), f"{float((fit.predict(new[truth == k]).numpy() == k).mean()):.4f}")
        for k in range(10)
    ]
    return [claim], table(("digit", "rows", "accuracy"), wrong), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed, 2 without data."""
    return run("naive_bayes", __doc__.splitlines()[0], lab, given, DATA)


if __name__ == "__main__":
    sys.exit(main())
