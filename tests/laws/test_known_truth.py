"""Every verdict on modules of known truth is right."""

import pytest
import torch

from tests.laws.known_truth import TRUTHS
from wonderland.laws import LAWS


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_every_verdict_is_right(truth):
    torch.manual_seed(0)
    module = truth.build()
    for law, outcome in truth.outcomes.items():
        verdict = LAWS[law](module, truth.example)
        assert verdict.outcome == outcome, str(verdict)
        assert verdict.outcome == "not applicable" or (verdict.error <= verdict.tolerance) == bool(verdict)


def test_there_are_enough_of_them_on_both_sides():
    verdicts = [outcome for truth in TRUTHS for outcome in truth.outcomes.values()]
    assert len(TRUTHS) >= 50
    assert len({truth.name for truth in TRUTHS}) == len(TRUTHS)
    assert verdicts.count("holds") >= 40
    assert verdicts.count("broken") >= 40
