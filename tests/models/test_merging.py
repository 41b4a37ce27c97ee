"""Merging weights: each method against its definition, entry by entry."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.models import merge_weights


def weights(seed, **more):
    generator = torch.Generator().manual_seed(seed)
    return {"a": torch.randn(4, 5, generator=generator), "b": torch.randn(3, generator=generator), **more}


def test_an_average_counts_models_by_their_shares():
    one, two = weights(0), weights(1)
    merged = merge_weights([one, two], shares=[3, 1])
    for name in one:
        torch.testing.assert_close(merged[name], 0.75 * one[name] + 0.25 * two[name])


def test_task_vectors_are_added_to_the_base():
    base, one, two = weights(0), weights(1), weights(2)
    merged = merge_weights([one, two], "task", base=base, scale=0.3)
    for name in one:
        torch.testing.assert_close(merged[name], base[name] + 0.3 * (one[name] + two[name] - 2 * base[name]))
    forgotten = merge_weights([one], "task", base=base, scale=-1.0)
    torch.testing.assert_close(forgotten["a"], 2 * base["a"] - one["a"])


def test_ties_trims_elects_and_averages_what_agrees():
    base, models = weights(0), [weights(seed) for seed in (1, 2, 3)]
    merged = merge_weights(models, "ties", base=base, density=0.5, scale=0.7)
    for name in base:
        changes = [(model[name] - base[name]).flatten() for model in models]
        kept = max(1, round(0.5 * changes[0].numel()))
        trimmed = []
        for change in changes:
            least = change.abs().sort(descending=True).values[kept - 1]
            trimmed.append([float(v) if abs(v) >= least else 0.0 for v in change])
        expected = []
        for entries in zip(*trimmed, strict=True):
            positive = sum(entries) > 0
            agreeing = [v for v in entries if v != 0 and (v > 0) == positive]
            expected.append(sum(agreeing) / len(agreeing) if agreeing else 0.0)
        change = (merged[name] - base[name]).flatten() / 0.7
        torch.testing.assert_close(change, torch.tensor(expected), rtol=1e-4, atol=1e-5)


def test_whole_numbers_come_from_the_first_and_new_weights_are_averaged():
    one, two = weights(1, n=torch.tensor(3)), weights(2, n=torch.tensor(5))
    base = {"a": weights(0)["a"]}
    merged = merge_weights([one, two], "task", base=base)
    assert merged["n"] == 3
    torch.testing.assert_close(merged["b"], (one["b"] + two["b"]) / 2)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ([weights(0)], {}, "Merging takes two models or more."),
        ([weights(0), weights(1)], {"method": "tasks"},
         "There is no method 'tasks'. Did you mean 'task'? Models are merged by average, task, ties."),
        ([weights(0), weights(1)], {"method": "ties"},
         "The method ties adds changes to the model that all began from: name it as base (--base)."),
        ([weights(0), {"a": torch.zeros(4, 5)}], {}, "Models of one architecture are merged, and model 2 has no 'b'."),
        ([weights(0), weights(1) | {"b": torch.zeros(2)}], {},
         "Models of one architecture are merged, and 'b' has shape [2] in model 2, not [3]."),
        ([weights(0), weights(1)], {"shares": [1.0]}, "Shares are 2 numbers, one for each model, 0 or more, not [1.0]."),
        ([weights(0), weights(1)], {"method": "ties", "base": weights(2), "density": 0.0},
         "The density of ties is above 0 and at most 1, not 0."),
    ],
)  # fmt: skip
def test_what_cannot_be_merged_is_told(arguments, options, words):
    with pytest.raises(WonderlandError) as error:
        merge_weights(arguments, **options)
    assert str(error.value) == words
