from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.core.batch import Batch
from wonderland.tasks import Classification, Regression, metrics
from wonderland.tasks.coverage import by_group, least_covered
from wonderland.tasks.view import View


class Fixed(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def forward(self, x):
        return self.out


def test_cross_entropy_of_a_model_and_of_an_ensemble():
    task, y = Classification(["a", "b", "c"]), torch.tensor([0, 2])
    logits = torch.randn(4, 2, 3)
    each = torch.stack([F.cross_entropy(member, y) for member in logits])
    batch = Batch({"x": torch.zeros(2, 1), "y": y})
    torch.testing.assert_close(task.loss(Fixed(logits), batch), (each.mean(), 2.0))
    torch.testing.assert_close(task.loss(Fixed(logits[0]), batch), (each[0], 2.0))
    member_labels = torch.stack([y, y.flip(0), y, y])
    torch.testing.assert_close(
        task.loss(Fixed(logits), Batch({"x": torch.zeros(4, 2, 1), "y": member_labels}, axis=1)),
        (
            torch.stack(
                [F.cross_entropy(member, labels) for member, labels in zip(logits, member_labels, strict=True)]
            ).mean(),
            2.0,
        ),
    )


def test_members_are_combined_by_mean_probability():
    task = Classification(["a", "b"])
    logits = torch.randn(5, 7, 2)
    probabilities = task.combine(logits).exp()
    torch.testing.assert_close(probabilities, logits.double().softmax(-1).mean(0))


def test_squared_error_of_a_model_and_of_an_ensemble():
    task = Regression(mean=10.0, scale=2.0, low=4.0, high=16.0)
    out, y = torch.randn(3, 5, 1), torch.randn(5)
    each = torch.stack([F.mse_loss(member[:, 0], y) for member in out])
    batch = Batch({"x": torch.zeros(5, 1), "y": 2 * y.double() + 10})  # targets in their member_labels scale
    torch.testing.assert_close(task.loss(Fixed(out), batch), (each.mean(), 5.0))
    torch.testing.assert_close(task.loss(Fixed(out[0]), batch), (each[0], 5.0))
    values = np.array([4.0, 10.0, 16.0])
    assert task.original(task.standard(values)) == pytest.approx(values)
    assert task.original(np.array([-100.0, 100.0])).tolist() == [4 - 1.2, 16 + 1.2]


def test_tasks_are_parts():
    for task in (Classification(["x", "y"], label_smoothing=0.1), Regression(1.0, 2.0, 0.0, 3.0)):
        again = Spec.from_json(type(task).spec(**task.arguments()).to_json()).build()
        assert again.arguments() == task.arguments()


def test_errors():
    with pytest.raises(WonderlandError, match=r"^Classification needs at least two classes, not 1\.$"):
        Classification(["a"])
    with pytest.raises(WonderlandError, match=r"^The target's scale must be positive, not 0.0\.$"):
        Regression(scale=0.0)


def test_rare_classes_are_measured_and_the_least_covered_class_is_named():
    task = Classification(["no", "yes"])
    y = np.array([0] * 18 + [1] * 2)
    p = np.where(np.arange(20)[:, None] >= 17, [0.2, 0.8], [0.9, 0.1])
    found = task.metrics(np.log(p), y)
    assert found["rare_class_f1"] == pytest.approx(0.8)
    assert found["average_precision"] == pytest.approx(metrics.average_precision(y == 1, p[:, 1]))
    assert "rare_class_f1" not in task.metrics(np.log(p), np.arange(20) % 2)
    y = np.arange(20) % 2
    sets = np.stack([np.ones(20), np.arange(20) < 10], 1).astype(bool)
    hits, names = sets[np.arange(20), y], np.array(["no", "yes"])[y]
    assert least_covered(hits, names, 5) == {"name": "yes", "coverage": 0.5, "rows": 10}
    few = np.array(["no"] * 18 + ["yes"] * 2)
    assert least_covered(hits, few, 5) is None


def test_the_group_that_is_covered_least_is_named_where_it_has_rows_enough():
    hits = np.array([True] * 25 + [False] * 5 + [True] * 40 + [False] * 10)
    dataset = SimpleNamespace(
        group="shop", groups=np.array([0] * 30 + [1] * 40 + [2] * 10), group_names=["a", "b", "c"]
    )
    view = View(torch.nn.Identity(), None, np.arange(80), dataset=dataset)
    found = by_group(hits, view, None, None)["worst_group"]
    assert found == {"name": "a", "coverage": pytest.approx(25 / 30), "rows": 30, "of": "shop"}
    own = np.array(["x"] * 40 + ["y"] * 40)
    assert by_group(hits, view, own, "town")["worst_group"]["name"] == "y"
    assert by_group(hits, View(torch.nn.Identity(), None, np.arange(80)), None, None) == {}
