"""Recordings of sound: WAVE files are read here, without any package; FLAC and Ogg by soundfile, an extra."""

import importlib.util
import io
import struct
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from wonderland.core import WonderlandError
from wonderland.core.limits import check

WAVE = frozenset({".wav", ".wave"})
SUFFIXES = WAVE | {".flac", ".ogg", ".oga", ".opus"}
HINT = "pip install 'wonderland[sound]'"
MOST_CHANNELS, LEAST_RATE, MOST_RATE = 64, 100, 768_000
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_UNKNOWN_SIZE = (0, 0xFFFFFFFF)  # written by programs that do not know the length before the end of a stream


@dataclass(frozen=True)
class Recording:
    """Samples (n, channels) in -1..1 as float32, and how many there are in a second."""

    samples: np.ndarray
    rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    def mono(self) -> np.ndarray:
        """The mean of the channels (n,)."""
        return self.samples[:, 0] if self.samples.shape[1] == 1 else self.samples.mean(1, dtype=np.float32)


@dataclass(frozen=True)
class _Header:
    form: int
    channels: int
    rate: int
    frame: int  # bytes of one sample of all channels
    start: int
    size: int


def read_recording(data: bytes, where: object) -> Recording:
    """The samples of a file in memory; anything that is not whole is refused in a sentence.

    >>> read_recording(write_wave(np.zeros(80), 8000), "silence.wav").seconds
    0.01
    """
    if not data:
        raise WonderlandError(f"{where} is an empty file, not a recording. Remove it, or copy it again.")
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        if PurePath(str(where)).suffix.casefold() in WAVE and data[:4] not in (b"RF64", b"fLaC", b"OggS"):
            raise WonderlandError(f"{where} is not a WAVE file: it does not begin as one. Remove it, or copy it again.")
        return _checked(_read_by_soundfile(data, where), where)
    header = _header(data, where)
    if header.form not in (_PCM, _FLOAT):
        return _checked(_read_by_soundfile(data, where), where)
    return _checked(_read_samples(data, header, where), where)


def _header(data: bytes, where: object) -> _Header:
    """What the chunks of a WAVE file say; the sizes they claim are compared with the file."""
    place, described = 12, None
    while place + 8 <= len(data):
        name, size = data[place : place + 4], struct.unpack_from("<I", data, place + 4)[0]
        place += 8
        if name == b"fmt ":
            if size < 16 or place + 16 > len(data):
                raise WonderlandError(
                    f"{where} has a damaged header: its format has {size} bytes, and needs at least 16."
                )
            described = struct.unpack_from("<HHIIHH", data, place)
            if described[0] == _EXTENSIBLE and size >= 26 and place + 26 <= len(data):
                described = (struct.unpack_from("<H", data, place + 24)[0], *described[1:])
        elif name == b"data":
            if described is None:
                raise WonderlandError(f"{where} has a damaged header: it does not say how its samples are written.")
            return _sized(described, place, size, len(data), where)
        place += size + size % 2
    raise WonderlandError(f"{where} has a damaged header: it names no samples. Copy the file again.")


def _sized(described: tuple[int, ...], start: int, size: int, total: int, where: object) -> _Header:
    form, channels, rate, _, frame, bits = described
    if not 1 <= channels <= MOST_CHANNELS or not LEAST_RATE <= rate <= MOST_RATE:
        raise WonderlandError(
            f"{where} has a damaged header: {channels} channels at {rate:,} samples a second. Copy the file again."
        )
    if form in (_PCM, _FLOAT):
        width = frame // channels
        known = (1, 2, 3, 4) if form == _PCM else (4, 8)
        if frame % channels or width not in known or not 0 < bits <= 8 * width:
            raise WonderlandError(
                f"{where} has samples of {bits} bits in {frame} bytes for {channels} channels, which is not read: convert it to "
                "16-bit PCM."
            )
    held = total - start
    if size in _UNKNOWN_SIZE and held >= max(frame, 1):
        size = held
    if size > held:
        raise WonderlandError(
            f"{where} is cut short: its header names {size:,} bytes of sound, and {held:,} are there. Copy the file again."
        )
    return _Header(form, channels, rate, max(frame, 1), start, size)


def _read_samples(data: bytes, header: _Header, where: object) -> Recording:
    """PCM of 8 (unsigned), 16, 24 and 32 bits, or floats of 32 and 64 bits, as float32 in -1..1."""
    frames = header.size // header.frame
    check("sound_samples", frames * header.channels, where)
    width, count = header.frame // header.channels, frames * header.channels
    body = memoryview(data)[header.start : header.start + frames * header.frame]
    if header.form == _FLOAT:
        values = np.frombuffer(body, "<f4" if width == 4 else "<f8", count).astype(np.float32)
    elif width == 1:
        values = (np.frombuffer(body, np.uint8, count).astype(np.float32) - 128) / 128
    elif width == 3:
        parts = np.frombuffer(body, np.uint8, 3 * count).reshape(-1, 3)
        whole = np.zeros((count, 4), np.uint8)
        whole[:, 1:] = parts  # the three bytes as the upper ones of four, which keeps the sign
        values = whole.view("<i4")[:, 0].astype(np.float32) / 2**31
    else:
        values = np.frombuffer(body, f"<i{width}", count).astype(np.float32) / 2 ** (8 * width - 1)
    return Recording(values.reshape(frames, header.channels), header.rate)


def _read_by_soundfile(data: bytes, where: object) -> Recording:
    """Formats other than plain WAVE; the length is read from the header first."""
    if importlib.util.find_spec("soundfile") is None:
        raise WonderlandError(f"{where} is not a plain WAVE file, and other sounds need an extra: {HINT}.")
    import soundfile

    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            check("sound_samples", file.frames * file.channels, where)
            samples = file.read(file.frames, dtype="float32", always_2d=True)
            return Recording(np.ascontiguousarray(samples), int(file.samplerate))
    except (RuntimeError, OSError, ValueError) as error:
        if isinstance(error, WonderlandError):
            raise
        raise WonderlandError(
            f"{where} cannot be read as a recording: it is damaged, or of an unknown format."
        ) from error


def _checked(recording: Recording, where: object) -> Recording:
    if not len(recording.samples):
        raise WonderlandError(f"{where} has no samples: it is 0 seconds long. Remove it, or record it again.")
    if not np.isfinite(recording.samples).all():
        raise WonderlandError(f"{where} has samples that are not finite numbers. Write the file again.")
    return recording


def write_wave(samples: np.ndarray, rate: int) -> bytes:
    """A WAVE file of 16 bits from samples (n,) or (n, channels) in -1..1; louder ones are clipped."""
    samples = np.asarray(samples)
    samples = samples[:, None] if samples.ndim == 1 else samples
    body = np.clip(np.rint(samples * 2**15), -(2**15), 2**15 - 1).astype("<i2").tobytes()
    channels = samples.shape[1]
    described = struct.pack("<HHIIHH", _PCM, channels, rate, rate * 2 * channels, 2 * channels, 16)
    chunks = b"fmt " + struct.pack("<I", 16) + described + b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks
