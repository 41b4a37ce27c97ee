"""Spectra against their equation, scipy and torch, and the way back."""

import re

import pytest
import torch
from scipy import signal

from tests.ops.compare import agree
from wonderland.core import WonderlandError
from wonderland.ops import sound
from wonderland.ops.sound import spectrum


def tone(samples: int = 997, rows: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, samples, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("n_fft", "hop", "pad"), [(64, 16, "reflect"), (51, 13, "constant"), (50, 50, None)])
def test_fast_and_reference_are_equal_in_values_and_gradients(n_fft, hop, pad):
    x = tone(211).requires_grad_()

    def form(function):
        return lambda: (torch.view_as_real(function(x, n_fft, hop, pad=pad)),)

    agree([form(spectrum.reference), form(sound.stft)], [x], 1e-10)


@pytest.mark.parametrize("pad", ["reflect", "constant"])
def test_it_is_that_of_torch(pad):
    window = torch.hamming_window(40, dtype=torch.float64)
    theirs = torch.stft(tone(), 64, 16, 40, window, pad_mode=pad, return_complex=True)
    torch.testing.assert_close(sound.stft(tone(), 64, 16, window=window, pad=pad), theirs.mT)


def test_it_is_that_of_scipy():
    _, _, theirs = signal.stft(tone().numpy(), nperseg=64, noverlap=48, boundary=None, padded=False)
    ours = sound.stft(tone(), 64, 16, pad=None) / sound.hann(64).sum()
    torch.testing.assert_close(ours, torch.from_numpy(theirs).mT)


@pytest.mark.parametrize("pad", ["reflect", "constant", None])
def test_back_again(pad):
    window = None if pad else torch.hamming_window(64, dtype=torch.float64)  # a Hann window is 0 at the first sample
    x = tone(1000)
    back = sound.istft(sound.stft(x, 64, 16, pad=pad, window=window), 64, 16, pad=pad, window=window, length=1000)
    covered = 1000 if pad else 1000 - (1000 - 64) % 16
    torch.testing.assert_close(back[:, :covered], x[:, :covered])
    assert not back[:, covered:].any()


def test_griffin_lim_is_its_recursion():
    x = tone(400, 1)[0].cumsum(0) / 10
    magnitude = sound.stft(x, 64, 16).abs()
    phase = torch.ones_like(magnitude).to(torch.complex128)
    found = sound.griffin_lim(magnitude, 64, 16, iterations=5, momentum=0.5, phase=phase, length=400)
    window, before = torch.hann_window(64, dtype=torch.float64), 0
    for _ in range(5):
        back = torch.istft((magnitude * phase).mT, 64, 16, window=window, length=400)
        now = torch.stft(back, 64, 16, window=window, return_complex=True).mT
        phase = now - before / 3
        phase, before = phase / phase.abs(), now
    torch.testing.assert_close(found, torch.istft((magnitude * phase).mT, 64, 16, window=window, length=400))


def test_griffin_lim_comes_near_the_magnitudes():
    x = torch.sin(torch.arange(2000) / 5) + torch.sin(torch.arange(2000) / 17)
    magnitude = sound.stft(x, 128, 32).abs()
    errors = []
    for iterations in (0, 32):
        again = sound.stft(sound.griffin_lim(magnitude, 128, 32, iterations=iterations, length=2000), 128, 32).abs()
        errors.append(float((again - magnitude).norm() / magnitude.norm()))
    assert errors[1] < errors[0] / 2


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda x: sound.stft(x, 4, 5),
            "A spectrum needs n_fft of at least 2 and a hop from 1 to n_fft, not n_fft=4, hop=5.",
        ),
        (
            lambda x: sound.stft(x, 64, 16),
            "A signal of 20 samples cannot be reflected by 32: pad it with zeros (pad='constant').",
        ),
        (lambda x: sound.stft(x, 64, 16, pad=None), "A signal of 20 samples is shorter than one frame of 64."),
        (
            lambda x: sound.stft(x, 8, 4, pad="wrap"),
            "A signal is padded by reflect or constant, or not at all (None), not 'wrap'.",
        ),
        (
            lambda x: sound.stft(x, 8, 4, window=torch.ones(9)),
            "A window of shape (9,) does not fit into 8 samples.",
        ),
        (
            lambda x: sound.istft(sound.stft(x, 8, 4), 16, 4),
            "A spectrum with n_fft=16 has 9 bins, not 5.",
        ),
        (
            lambda x: sound.griffin_lim(x, 8, 4, momentum=1.0),
            "Griffin-Lim needs 0 or more iterations and a momentum in [0, 1), not 32 and 1.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call(torch.zeros(20))
