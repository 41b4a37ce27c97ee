"""Resampling against its sum, scipy's polyphase filter and a tone; mu-law against its formula."""

import importlib
import re

import numpy as np
import pytest
import torch
from scipy import signal

from tests.ops.compare import agree
from wonderland.core import WonderlandError
from wonderland.ops import sound

module = importlib.import_module("wonderland.ops.sound.resample")


@pytest.mark.parametrize(("old", "new"), [(8000, 16_000), (44_100, 8000), (11_127, 8000), (3, 2)])
def test_fast_and_reference_are_equal_in_values_and_gradients(old, new):
    x = torch.randn(2, 131, dtype=torch.float64, requires_grad=True)
    agree([lambda: (module.reference(x, old, new),), lambda: (sound.resample(x, old, new),)], [x], 1e-10)


@pytest.mark.parametrize(("old", "new"), [(3, 2), (2, 5)])
def test_it_is_scipys_polyphase_filter_with_the_same_taps(old, new):
    x = np.random.default_rng(0).normal(size=400)
    reach = int(np.ceil(6 * old / (0.99 * min(old, new)))) * new
    times = torch.arange(-reach, reach + 1, dtype=torch.float64) / (old * new)
    taps = module.kernel(times, old, 0.99 * min(old, new), 6).numpy()
    theirs = signal.resample_poly(x, new, old, window=taps / new)
    np.testing.assert_allclose(sound.resample(torch.from_numpy(x), old, new), theirs, atol=1e-12)


def test_a_tone_keeps_its_pitch_and_what_is_too_high_is_filtered_out():
    seconds = torch.arange(44_100) / 44_100
    low, high = (torch.sin(2 * torch.pi * pitch * seconds) for pitch in (440, 7000))
    found = sound.resample(low, 44_100, 8000)
    expected = torch.sin(2 * torch.pi * 440 * torch.arange(8000) / 8000)
    assert (found - expected)[100:-100].abs().max() < 0.02
    assert sound.resample(high, 44_100, 8000)[100:-100].abs().max() < 0.01


def test_one_rate_and_nothing():
    x = torch.randn(5)
    assert sound.resample(x, 8000, 8000) is x
    assert sound.resample(x[:0], 8000, 4000).shape == (0,)


def test_mu_law_is_its_formula_and_comes_back():
    x = torch.linspace(-1, 1, 4001, dtype=torch.float64)
    expected = np.sign(x.numpy()) * np.log(1 + 255 * np.abs(x.numpy())) / np.log(256)
    np.testing.assert_allclose(sound.mu_law(x), expected, atol=1e-12)
    codes = sound.mu_law_encode(x)
    assert codes.min() == 0
    assert codes.max() == 255
    back = sound.mu_law_decode(codes)
    assert (back - x).abs().max() < 0.023  # half a step at the loudest
    assert sound.mu_law_encode(sound.mu_law_decode(torch.arange(256).double())).tolist() == list(range(256))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: sound.resample(torch.zeros(4), 8000, 0),
            "Resampling needs rates of at least 1, not 8000 to 0, at least one zero, and a rolloff in (0, 1].",
        ),
        (lambda: sound.mu_law(torch.zeros(4), 1), "Mu-law has at least 2 levels, not 1."),
    ],
)
def test_what_cannot_be_is_said(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
