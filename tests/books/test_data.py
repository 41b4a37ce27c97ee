"""What the books state about datasets, labels and minibatches, tested on those that training uses."""

import math

import pandas as pd
import pytest
import torch

from wonderland import kinds
from wonderland.data import Batches, Dataset, soft_labels
from wonderland.kinds.table.table import Table


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_dataset_is_pairs_of_inputs_and_targets():
    """Alice 3.1: n pairs (x, y). A target is a code of its class or a number, in the order of the rows."""
    frame = pd.DataFrame(
        {"size": torch.randn(40, generator=draw()).double(), "age": torch.randn(40, generator=draw(1)).double()}
    )
    frame["price"] = frame["size"] ** 2 - frame["age"]
    numbers = kinds.open(frame, "price")
    assert isinstance(numbers, Table)
    assert isinstance(numbers, Dataset)
    assert (len(numbers), numbers.task) == (40, "regression")
    assert numbers.y.tolist() == frame["price"].tolist()
    assert numbers.example(3) == frame.loc[3].to_dict()
    classes = kinds.open(frame.assign(price=["low", "high"] * 20), "price")
    assert (classes.task, classes.classes) == ("binary", ["high", "low"])
    assert classes.y.tolist() == [1, 0] * 20
    # The content decides the fingerprint, and the order of the rows belongs to it.
    assert kinds.open(frame.copy(), "price").fingerprint == numbers.fingerprint
    assert kinds.open(frame[::-1], "price").fingerprint != numbers.fingerprint


def test_soft_labels_are_one_hot_vectors():
    """D2L 4.1: a class among c is the unit vector of its code, as probabilities that cross-entropy can read."""
    y = torch.tensor([2, 0, 1, 2])
    rows = soft_labels(y, 4)
    assert rows.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert torch.equal(rows.argmax(1), y)
    logits = torch.randn(4, 4)
    torch.testing.assert_close(
        torch.nn.functional.cross_entropy(logits, rows), torch.nn.functional.cross_entropy(logits, y)
    )
    assert soft_labels(rows) is rows


def test_the_gradients_of_batches_are_unbiased_and_their_noise_falls_with_the_root():
    """D2L 12.5, with the batches that training uses: one epoch averages to the whole gradient, four times the rows halve the noise."""
    x = torch.randn(960, 3, dtype=torch.float64, generator=draw())
    y = torch.randn(960, dtype=torch.float64, generator=draw(1))
    w = torch.ones(3, dtype=torch.float64)

    def gradient(rows, targets):
        return 2 * ((rows @ w - targets)[:, None] * rows).mean(0)

    whole, noise = gradient(x, y), []
    for size in (4, 16, 64):
        batches = Batches(x, y, size=size, seed=2)
        epochs = max(1, 4 * size // 16)
        each = torch.stack([
            gradient(*batches.batch(epoch, i)) for epoch in range(epochs) for i in range(batches.per_epoch)
        ])  # fmt: skip
        torch.testing.assert_close(each.mean(0), whole)
        noise.append((each - whole).square().sum(1).mean().sqrt().item())
    # Drawn without replacement, the variance has a factor of 1 - size / rows besides.
    corrected = [value / math.sqrt(1 - size / 960) for value, size in zip(noise, (4, 16, 64), strict=True)]
    assert corrected[0] / corrected[1] == pytest.approx(2, rel=0.1)
    assert corrected[1] / corrected[2] == pytest.approx(2, rel=0.1)


def test_an_epoch_meets_every_row_once():
    """D2L 12.4: drawn without replacement, unlike n draws with replacement, which miss more than a third."""
    batches = Batches(torch.arange(960.0)[:, None], torch.arange(960), size=32, seed=0)
    for epoch in range(2):
        codes = []
        for i in range(batches.per_epoch):
            _, y = batches.batch(epoch, i)
            codes.append(y)
        assert torch.cat(codes).sort().values.tolist() == list(range(960))
