"""Spectrograms: as arrays for a model, and as small pictures for a page."""

import base64
import io

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from wonderland.data.recording import Recording
from wonderland.ops.sound import log_mel

WINDOW, HOP = 0.032, 0.01  # seconds
REACH = 80.0  # decibels below the loudest of a recording, where silence begins
COLOURS = np.array([(13, 8, 35), (87, 16, 110), (188, 55, 84), (249, 142, 9), (252, 255, 164)], np.float64)


def frame_sizes(rate: int) -> tuple[int, int]:
    """The samples of a window and of a step at this rate."""
    return max(16, 2 * round(WINDOW * rate / 2)), max(1, round(HOP * rate))


def mel_levels(wave: Tensor, rate: int, mels: int) -> Tensor:
    """Decibels of mel bands below the loudest of the recording, at most `REACH`. Shapes: (n,) -> (frames, mels).

    In double precision: 80 decibels below the loudest, single precision leaves an error of a hundredth of a decibel, and exported models
    compute the transform in another order.
    """
    window, hop = frame_sizes(rate)
    levels = log_mel(
        wave.double(), rate, n_fft=window, hop=hop, mels=mels, pad="constant", reach=REACH, scale="htk", norm=None
    )
    return (levels - levels.max()).float()


def spectrogram_picture(recording: Recording, side: int = 96) -> str:
    """The log-mel spectrogram as a PNG in a data URI, low pitches at the bottom."""
    levels = mel_levels(torch.from_numpy(np.ascontiguousarray(recording.mono())), recording.rate, 48)
    share = (1 + levels / REACH).clamp(0, 1).numpy().T[::-1]
    picture = Image.fromarray((share * 255).astype(np.uint8)).resize((side, side), Image.Resampling.BILINEAR)
    places = np.asarray(picture, np.float64) / 255 * (len(COLOURS) - 1)
    low = np.minimum(places.astype(int), len(COLOURS) - 2)
    coloured = COLOURS[low] + (COLOURS[low + 1] - COLOURS[low]) * (places - low)[..., None]
    buffer = io.BytesIO()
    Image.fromarray(coloured.astype(np.uint8)).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
