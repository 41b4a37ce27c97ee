"""Features of sound beside librosa, whose first calls, which compile, are left out.

    python -m bench.sound

Sixty seconds at 16 kHz. Needs librosa, which is no dependency of this repository.
"""

import librosa
import numpy as np
import torch

from bench.race import HEADER, race, setting
from wonderland.ops import sound

RATE, SECONDS, ROUNDS = 16_000, 60, 15


def main() -> None:
    print(setting(1, True, ROUNDS))
    print(HEADER)
    wave = np.random.default_rng(0).normal(size=RATE * SECONDS).astype(np.float32)
    for n_fft, hop in ((400, 160), (2048, 512)):
        compare(wave, n_fft, hop)


def compare(wave: np.ndarray, n_fft: int, hop: int) -> None:
    """Race the three features at one size, after a check that they are equal."""
    x, sizes = torch.from_numpy(wave), {"n_fft": n_fft, "hop_length": hop}
    own = {"n_fft": n_fft, "hop": hop, "mels": 80, "pad": "constant"}
    pairs = {
        "STFT": (lambda: sound.stft(x, n_fft, hop).mT, lambda: librosa.stft(wave, pad_mode="reflect", **sizes)),
        "log-mel": (
            lambda: sound.log_mel(x, RATE, reach=80, **own).mT,
            lambda: librosa.power_to_db(librosa.feature.melspectrogram(y=wave, sr=RATE, n_mels=80, **sizes)),
        ),
        "MFCC": (
            lambda: sound.mfcc(x, RATE, **own).mT,
            lambda: librosa.feature.mfcc(y=wave, sr=RATE, n_mels=80, **sizes),
        ),
    }
    for name, (ours, theirs) in pairs.items():
        found, expected = ours().numpy(), theirs()
        assert found.shape == expected.shape
        error = np.abs(found - expected).max() / np.abs(expected).max()
        assert error < 1e-5, f"{name} differs by {error:.2g}"
        race(f"{name}, n_fft {n_fft}", ours, theirs, ROUNDS, peer=f"error {error:.1g}")


if __name__ == "__main__":
    main()
