"""Permutation importance and saliency: known cases, determinism, no side effects."""

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.understand import permutation_importance, saliency


def table(rows: int = 500):
    x = torch.randn(rows, 5, generator=torch.Generator().manual_seed(0))
    return x, 3 * x[:, 1] + x[:, 3] + x[:, 4]


def loss_score(x, y):
    return -float((3 * x[:, 1] + x[:, 3] + x[:, 4] - y).square().mean())


def test_finds_the_informative_columns():
    x, y = table()
    found = permutation_importance(loss_score, x, [[0], [1], [2], [3, 4], []], y, repeats=5)
    values = [item.value for item in found]
    assert values[0] == values[2] == values[4] == 0
    assert values[1] > 3 * values[3] > 0
    assert abs(values[1] - 18) < 4
    assert abs(values[3] - 4) < 1.5
    assert found[1].spread > 0
    assert found[0].spread == 0


def test_features_of_one_column_move_together():
    x = torch.randn(300, 1, generator=torch.Generator().manual_seed(1)).repeat(1, 2)
    seen = []
    permutation_importance(lambda x, y: seen.append(bool((x[:, 0] == x[:, 1]).all())) or 0.0, x, [[0, 1], [1]], x[:, 0])
    assert seen == [True] * 4 + [False] * 3


def test_the_same_seed_gives_the_same_result_without_side_effects():
    x, y = table()
    before, random = x.clone(), torch.get_rng_state()
    first = permutation_importance(loss_score, x, [[1], [3]], y, seed=4)
    assert permutation_importance(loss_score, x, [[1], [3]], y, seed=4) == first
    assert permutation_importance(loss_score, x, [[1], [3]], y, seed=5) != first
    assert torch.equal(x, before)
    assert torch.equal(torch.get_rng_state(), random)


def test_rows_are_limited_and_scores_may_be_per_row():
    x, y = table(3000)
    sizes = []

    def score(x, y):
        sizes.append(len(x))
        return -(x[:, 1] - y).abs()

    found = permutation_importance(score, x, [[1]], y, repeats=1, limit_rows=100)
    assert sizes == [100, 100]
    assert found[0].spread == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": torch.zeros(3)}, "Importance needs one target for each row, but x has 500 rows and y has 3."),
        ({"columns": [[0], [9]]}, "Importance was asked for feature 9, but x has 5 features."),
        ({"repeats": 0}, "Importance needs at least one repeat, not 0."),
        (
            {"x": torch.zeros(1, 5), "y": torch.zeros(1)},
            "Importance needs at least two rows: one row cannot be permuted.",
        ),
    ],
)
def test_errors(change, message):
    x, y = table()
    with pytest.raises(WonderlandError) as error:
        permutation_importance(loss_score, **({"x": x, "columns": [[0]], "y": y} | change))
    assert str(error.value) == message


class Patch(nn.Module):
    """Tells two classes apart by one patch of the image, in an arbitrary offset of both logits."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        patch = self.scale * x[:, :, 2:4, 5:7].mean((1, 2, 3))
        offset = 100 * x.sum((1, 2, 3))
        return self.drop(torch.stack([offset - patch, offset + patch], 1))


def test_saliency_is_high_at_informative_pixels():
    x = torch.rand(40, 3, 8, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model, random = Patch().double(), torch.get_rng_state()
    found = saliency(model, x, torch.arange(40) % 2, batch=7)
    assert found.shape == (8, 9)
    inside = found[2:4, 5:7].clone()
    assert inside.min() > 0
    found[2:4, 5:7] = 0
    assert found.abs().max() < 1e-6 * inside.min()
    assert model.training
    assert model.scale.grad is None
    assert torch.equal(torch.get_rng_state(), random)


def test_saliency_does_not_depend_on_batches_or_offset():
    x = torch.rand(30, 1, 8, 9, generator=torch.Generator().manual_seed(0))
    model, y = nn.Sequential(nn.Flatten(), nn.Linear(72, 4)), torch.arange(30) % 4
    whole = saliency(model, x, y)
    assert torch.allclose(whole, saliency(model, x, y, batch=4), rtol=1e-4)
    assert torch.allclose(whole, saliency(model, x + 5, y), rtol=1e-3)


def test_saliency_of_bytes_and_of_a_regression():
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 1))
    found = saliency(model, torch.randint(0, 255, (6, 1, 4, 4), dtype=torch.uint8))
    assert found.shape == (4, 4)
    with torch.inference_mode():
        assert saliency(model, torch.rand(2, 1, 4, 4)).isfinite().all()


def test_saliency_error():
    with pytest.raises(WonderlandError) as error:
        saliency(nn.Flatten(), torch.zeros(3, 4))
    assert str(error.value) == "saliency takes images of shape (n, c, h, w), not (3, 4)."
