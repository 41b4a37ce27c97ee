"""Tagging: spans as CoNLL counts them, sets of tags that keep their promise, scores that come true."""

import numpy as np
import pytest
import torch

from wonderland.core.batch import Batch
from wonderland.data.examples import RowExamples
from wonderland.tasks import Tagging, View
from wonderland.tasks.text.tag_spans import marks_spans, span_scores, spans_of


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        (["B-A", "B-A"], [(0, 1, "A"), (1, 2, "A")]),
        (["I-A", "I-A", "I-B"], [(0, 2, "A"), (2, 3, "B")]),
        (["B-A", "E-A", "I-A"], [(0, 2, "A"), (2, 3, "A")]),
        (["S-A", "O", "U-B"], [(0, 1, "A"), (2, 3, "B")]),
        (["B-A", "I-B", "L-B", "O"], [(0, 1, "A"), (1, 3, "B")]),
    ],
)
def test_spans_of_every_scheme(tags, spans):
    assert spans_of(tags) == spans


def test_scores_are_those_of_conlleval():
    # Counted by hand: 3 true spans, 4 predicted, 2 shared.
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "I-ORG", "O"]]
    guess = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "O", "B-PER"]]
    told = span_scores(true, guess)
    assert (told["precision"], told["recall"], told["f1"]) == (0.5, pytest.approx(2 / 3), pytest.approx(4 / 7))
    assert told["by_name"]["ORG"]["f1"] == 0
    assert not marks_spans(["O"])
    assert not marks_spans(["B-A", "NN"])


class Certain(torch.nn.Module):
    """A model of words whose number is their tag, right with the given chance."""

    def __init__(self, right: float):
        super().__init__()
        self.right = right

    def forward(self, x):
        share = torch.full((*x.shape[:2], 3), (1 - self.right) / 2)
        return share.scatter(2, (x[..., :1] - 1).clamp_min(0), self.right).log()


def _view(right: float, seed: int, rows: int = 400) -> View:
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 3, (rows, 6)).astype(np.int16)
    guess = np.where(draw.random(y.shape) < right, y, (y + draw.integers(1, 3, y.shape)) % 3)
    y[:, 4:] = np.where(draw.random((rows, 1)) < 0.5, -100, y[:, 4:])
    x = torch.from_numpy(np.where(y >= 0, guess + 1, 0).astype(np.int64))[..., None]
    return View(Certain(right), RowExamples(x, y, rows), np.arange(rows))


def test_sets_miss_no_more_than_was_asked():
    task = Tagging(["O", "B-A", "B-C"])
    trust = task.calibrate(_view(0.8, 0), _view(0.8, 1), 0.7)
    found = task.evaluate(_view(0.8, 2, 2000), trust)
    assert found["conformal"]["coverage"] > 0.7 - 0.02
    assert found["metrics"]["accuracy"] == pytest.approx(0.8, abs=0.02)
    assert found["conformal"]["mean_size"] == 1.0
    again = task.trust(trust.to_json())
    assert again.to_json() == trust.to_json()
    with pytest.raises(ValueError, match=r"trust\.json does not hold scores of tags"):
        task.trust({**trust.to_json(), "risks": [2.0]})


def test_the_loss_of_independent_words_is_cross_entropy():
    task, x = Tagging(["a", "b", "c"]), torch.tensor([[[1], [2], [0]]])
    loss, words = task.loss(Certain(0.5), Batch({"x": x, "y": torch.tensor([[0, 0, -100]])}))
    assert words == 2
    assert loss.item() == pytest.approx(-(np.log(0.5) + np.log(0.25)) / 2)
