"""Transcription: error rates, what a task says of texts, and damaged trust."""

import math

import pytest

from wonderland.core import WonderlandError
from wonderland.tasks import Transcription
from wonderland.tasks.text.error_rates import character_error_rate, edit_distance, word_error_rate
from wonderland.tasks.transcription import TranscriptTrust


def test_error_rates_are_edits_over_the_length_of_what_is_true():
    assert [edit_distance("", "abc"), edit_distance("abc", ""), edit_distance("flaw", "lawn")] == [3, 3, 2]
    assert character_error_rate(["ab", "c"], ["abc", "c"]) == pytest.approx(1 / 4)
    assert word_error_rate(["a b", "c d e"], ["a b", "c e"]) == pytest.approx(1 / 4)
    assert word_error_rate([""], [""]) == 0


def test_the_bound_of_calibration_texts():
    trust = TranscriptTrust([0.0, 0.3, 0.1, 0.2], 0.8, 0.0)
    assert trust.bound(0.8) == 0.3
    assert trust.bound(0.4) == 0.1
    assert trust.bound(0.9) == 1.0
    task = Transcription("ab")
    assert task.trust(trust.to_json()).to_json() == trust.to_json()
    for damaged in ({}, {"rates": [], "level": 0.9, "weight": 0}, {"rates": [math.nan], "level": 0.9, "weight": 0}):
        with pytest.raises(
            WonderlandError, match=r"trust.json does not hold error rates of texts: it is damaged or not ours\."
        ):
            task.trust(damaged)
    with pytest.raises(
        WonderlandError, match=r"Transcription takes its characters as one text without repetitions, not 'aa'\."
    ):
        Transcription("aa")
