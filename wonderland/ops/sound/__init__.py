"""Sound as arrays: spectra and their inverses, mel scales, companding, resampling."""

from wonderland.ops.sound.companding import mu_law, mu_law_decode, mu_law_encode
from wonderland.ops.sound.mel import decibels, from_mel, log_mel, mel_filters, mel_spectrogram, mfcc, power_of
from wonderland.ops.sound.phase import griffin_lim
from wonderland.ops.sound.resample import resample
from wonderland.ops.sound.spectrum import hann, istft, power_spectrum, stft

__all__ = [
    "decibels",
    "from_mel",
    "griffin_lim",
    "hann",
    "istft",
    "log_mel",
    "mel_filters",
    "mel_spectrogram",
    "mfcc",
    "mu_law",
    "mu_law_decode",
    "mu_law_encode",
    "power_of",
    "power_spectrum",
    "resample",
    "stft",
]
