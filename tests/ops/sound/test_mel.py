"""Mel filters, log-mel and MFCC against their formulas in plain numpy and against transformers; both mel scales."""

import re

import numpy as np
import pytest
import torch
from scipy import fft
from transformers import audio_utils

from wonderland.core import WonderlandError
from wonderland.ops import sound
from wonderland.ops.sound.mel import hertz_to_mel, mel_to_hertz

SETTINGS = {"n_fft": 400, "hop": 160, "mels": 40}


def tone() -> torch.Tensor:
    draw = np.random.default_rng(0)
    return torch.from_numpy(np.sin(np.arange(8000) / 9) + draw.normal(size=8000) / 10)


@pytest.mark.parametrize("scale", ["htk", "slaney"])
@pytest.mark.parametrize("norm", [None, "slaney"])
def test_filters_are_those_of_transformers(scale, norm):
    theirs = audio_utils.mel_filter_bank(201, 40, 20.0, 7600.0, 16_000, norm=norm, mel_scale=scale)
    ours = sound.mel_filters(40, 400, 16_000, low=20, high=7600, scale=scale, norm=norm)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("scale", ["htk", "slaney"])
def test_a_scale_has_its_inverse(scale):
    hertz = torch.linspace(0, 8000, 99, dtype=torch.float64)
    torch.testing.assert_close(mel_to_hertz(hertz_to_mel(hertz, scale), scale), hertz)


def in_numpy(x: np.ndarray) -> np.ndarray:
    """Log-mel and MFCC written out: reflected ends, a loop over frames, filters as drawn."""
    longer = np.pad(x, 200, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    frames = [np.fft.rfft(longer[i : i + 400] * window) for i in range(0, len(longer) - 399, 160)]
    power = np.abs(np.array(frames)) ** 2
    ends = [0, 15 + 27 * np.log(8000 / 1000) / np.log(6.4)]
    mels = np.linspace(*ends, 42)
    corners = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))
    filters = np.stack(
        [
            np.interp(np.arange(201) * 40, corners[i : i + 3], [0, 2 / (corners[i + 2] - corners[i]), 0])
            for i in range(40)
        ]
    )
    return 10 * np.log10(np.maximum(power @ filters.T, 1e-10))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_log_mel_and_mfcc_are_their_formulas(dtype, tolerance):
    expected = in_numpy(tone().numpy())
    np.testing.assert_allclose(sound.log_mel(tone().to(dtype), 16_000, **SETTINGS), expected, atol=tolerance)
    clipped = np.maximum(expected, expected.max() - 80)
    coefficients = fft.dct(clipped, norm="ortho")[:, :13]
    found = sound.mfcc(tone().to(dtype), 16_000, count=13, **SETTINGS)
    np.testing.assert_allclose(found, coefficients, atol=10 * tolerance)


def test_whispers_spectrogram_is_ours_with_its_scale():
    """Whisper: log10, at most 8 below the largest, moved and scaled; as transformers has it."""
    extractor = pytest.importorskip("transformers").WhisperFeatureExtractor(feature_size=80)
    x = tone().float()
    theirs = extractor(x.numpy(), sampling_rate=16_000, padding="do_not_pad", return_tensors="np")["input_features"][0]
    ours = sound.log_mel(x, 16_000, n_fft=400, hop=160, mels=80)[:-1] / 10
    ours = (torch.maximum(ours, ours.max() - 8) + 4) / 4
    np.testing.assert_allclose(ours.T, theirs, atol=1e-5)


def test_a_spectrogram_becomes_sound_again():
    x = tone()[:4000].float()
    mel = sound.mel_spectrogram(x, 16_000, **SETTINGS)
    back = sound.from_mel(mel, 16_000, n_fft=400, hop=160, length=4000)
    again = sound.mel_spectrogram(back, 16_000, **SETTINGS)
    assert back.shape == (4000,)
    assert float((again - mel).norm() / mel.norm()) < 0.2


def test_decibels_and_power():
    power = torch.tensor([1.0, 1e-3, 0.0])
    torch.testing.assert_close(sound.power_of(sound.decibels(power))[:2], power[:2])


def test_gradients_reach_the_samples():
    x = tone()[:500].requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: sound.mfcc(x, 8000, count=3, n_fft=64, hop=32, mels=6), (x,), fast_mode=True
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: sound.mel_filters(4, 64, 8000, high=5000),
            "Mel filters need at least one mel and 0 <= low < high <= rate / 2, not mels=4, low=0, high=5000 at a rate of 8000.",
        ),
        (lambda: sound.mel_filters(4, 64, 8000, norm="area"), "Mel filters are normed by 'slaney' or not (None), not 'area'."),
        (lambda: sound.mel_filters(4, 64, 8000, scale="bark"), "A mel scale is slaney or htk, not 'bark'."),
        (
            lambda: sound.mfcc(torch.zeros(400), 8000, count=9, n_fft=64, hop=32, mels=8),
            "From 8 mels come 1 to 8 coefficients, not 9.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
