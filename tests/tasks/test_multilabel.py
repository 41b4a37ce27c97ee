import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import wonderland
from wonderland.core import Spec, WonderlandError
from wonderland.core.batch import Batch
from wonderland.tasks import LabelTrust, MultiLabel, View
from wonderland.tasks.multilabel import missed_share
from wonderland.trust import controlled_threshold, false_negative_rates
from wonderland.trust.risk_control import THRESHOLDS

LABELS = ["red", "green", "blue"]


class Fixed(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def forward(self, x):
        return self.out


def test_the_loss_is_the_mean_cross_entropy_of_labels_also_of_an_ensemble():
    task, logits, y = MultiLabel(LABELS), torch.randn(4, 5, 3), (torch.rand(5, 3) > 0.5).double()
    each = torch.stack([F.binary_cross_entropy_with_logits(member, y.float()) for member in logits])
    batch = Batch({"x": torch.zeros(5, 1), "y": y})
    torch.testing.assert_close(task.loss(Fixed(logits), batch), (each.mean(), 5.0))
    torch.testing.assert_close(task.loss(Fixed(logits[0]), batch), (each[0], 5.0))
    assert Spec.from_json(json.loads(json.dumps(MultiLabel.spec(labels=LABELS).to_json()))).build().labels == LABELS


def test_members_are_combined_by_mean_probability():
    logits = torch.randn(4, 6, 3)
    combined = MultiLabel(LABELS).combine(logits, np.array([0.1, 0.2, 0.3, 0.4]))
    expected = (logits.double().sigmoid() * torch.tensor([0.1, 0.2, 0.3, 0.4]).double()[:, None, None]).sum(0)
    torch.testing.assert_close(combined.sigmoid(), expected)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ("red", "MultiLabel takes the names of its labels as a list of strings."),
        (["red"], r"MultiLabel needs at least two labels with different names, not \['red'\]."),
        (["red", "red"], r"MultiLabel needs at least two labels with different names, not \['red', 'red'\]."),
    ],
)
def test_labels_that_cannot_be(labels, sentence):
    with pytest.raises(WonderlandError, match=f"^{sentence}$"):
        MultiLabel(labels)


def test_false_negative_rates_count_missed_labels():
    random = np.random.default_rng(0)
    chances, y = random.random((40, 5)).round(3), random.random((40, 5)) < 0.3
    rates = false_negative_rates(chances, y)
    for place in (0, 250, 731, 1000):
        missed = (y & (chances < THRESHOLDS[place] - 1e-12)).sum(1) / np.maximum(y.sum(1), 1)
        np.testing.assert_allclose(rates[:, place], missed)
    with pytest.raises(WonderlandError, match=r"`y` has the shape \(1, 2\), and `probabilities` \(1, 3\)"):
        false_negative_rates([[0.1, 0.2, 0.3]], [[0, 1]])


def test_the_risk_is_controlled_on_average():
    random = np.random.default_rng(1)
    held = []
    for _ in range(300):
        chances = random.random((150, 4))
        y = random.random((150, 4)) < chances
        limit = controlled_threshold(false_negative_rates(chances[:50], y[:50]).mean(0), 50, 0.2)
        held.append(1 - missed_share(chances[50:] >= limit, y[50:]))
    assert 0.8 <= np.mean(held) < 0.83
    assert controlled_threshold(np.zeros(1001), 8, 0.1) is None


def of_parts(rows=3000):
    """Log-odds that are three times too sure, with targets drawn from the true probabilities."""
    generator = torch.Generator().manual_seed(0)
    true = torch.randn(rows, 3, generator=generator) * 1.5 - 0.5
    y = (torch.rand(rows, 3, generator=generator) < true.sigmoid()).double().numpy()
    from wonderland.data import RowExamples

    examples = RowExamples(3 * true, y, rows)
    thirds = np.split(np.arange(rows), 3)
    return [View(nn.Identity(), examples, part) for part in thirds]


def test_probabilities_are_calibrated_and_sets_hold_the_labels():
    task, (validation, calibration, test) = MultiLabel(LABELS), of_parts()
    trust = task.calibrate(validation, calibration, 0.9)
    assert trust.scale[:, 0] == pytest.approx(1 / 3, abs=0.08)
    told = task.evaluate(test, trust)
    assert told["ece"]["after"] < 0.04 < told["ece"]["before"]
    assert 0.86 < told["conformal"]["coverage"] < 0.97
    assert task.evaluate(test, trust, 0.99)["conformal"]["coverage"] > told["conformal"]["coverage"]
    table = task.predictions(test, trust)
    assert list(table.columns) == ["prediction", "set", "p(red)", "p(green)", "p(blue)"]
    assert all(
        set(filter(None, chosen.split(";"))) <= set(held)
        for chosen, held in zip(table["prediction"], table["set"], strict=True)
    )
    again = task.trust(json.loads(json.dumps(trust.to_json())))
    assert task.predictions(test, again).equals(table)


def test_too_few_calibration_rows_and_damaged_files_say_so():
    task, (validation, calibration, _) = MultiLabel(LABELS), of_parts()
    few = View(calibration.model, calibration.examples, calibration.part[:5])
    trust = task.calibrate(validation, few, 0.9)
    assert task.evaluate(few, trust)["conformal"]["mean_size"] == 3
    assert trust.note(0.9) == "The 90% sets hold every label: they need 9 calibration rows, and there are 5."
    for change in ({"risk": [0.5, 0.1]}, {"scale": [[1, 0]]}, {"groups": 0}, {"level": 2.0}, {"calibration_rows": "9"}):
        with pytest.raises(WonderlandError, match=r"trust\.json lacks the calibration of labels: it is damaged"):
            LabelTrust.from_json(trust.to_json() | change, 3)


def test_images_with_several_labels_from_fit_to_report(tmp_path):
    random = np.random.default_rng(0)
    y = random.random((240, 3)) < 0.4
    x = np.where(y[:, None, None, :], 200, 30) + random.integers(0, 30, (240, 8, 8, 3))
    run = wonderland.fit((x.astype(np.uint8), y), out=tmp_path / "run", steps=40, threads=1)
    assert run.task.name == "multilabel"
    assert run.metrics["f1"] > 0.9
    table = run.predict(x[:4].astype(np.uint8))
    assert table["prediction"].tolist() == [";".join(map(str, np.flatnonzero(row))) for row in y[:4]]
    assert run.evaluate((x.astype(np.uint8), y))["rows"] == 240
    report = (tmp_path / "run" / "report.html").read_text()
    assert "Missed labels" in report
    assert wonderland.load(tmp_path / "run").predict(x[:4].astype(np.uint8)).equals(table)
