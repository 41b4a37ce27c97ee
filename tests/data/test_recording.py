"""WAVE files of every width are read as scipy reads them; damaged ones are refused in sentences."""

import io
import struct

import numpy as np
import pytest
import soundfile
from scipy.io import wavfile

from wonderland.core import WonderlandError
from wonderland.core.limits import VARIABLE
from wonderland.data import recording
from wonderland.data.recording import read_recording, write_wave

WAVE = np.sin(np.arange(300) / 7) * 0.7


@pytest.mark.parametrize("rate", [8000, 44_100, 96_000])
@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("form", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_every_width_is_read(form, channels, rate):
    samples = np.stack([WAVE * (i + 1) / channels for i in range(channels)], 1)
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV" if channels < 3 else "WAVEX", subtype=form)
    read = read_recording(file.getvalue(), "a.wav")
    expected, _ = soundfile.read(io.BytesIO(file.getvalue()), dtype="float32", always_2d=True)
    assert read.rate == rate
    np.testing.assert_array_equal(read.samples, expected)


def test_16_bits_are_what_scipy_reads():
    file = write_wave(WAVE, 8000)
    rate, samples = wavfile.read(io.BytesIO(file))
    read = read_recording(file, "a.wav")
    assert (read.rate, read.seconds) == (rate, 300 / 8000)
    np.testing.assert_array_equal(read.samples[:, 0], samples / np.float32(2**15))
    np.testing.assert_allclose(read.mono(), WAVE, atol=2**-15)


@pytest.mark.parametrize("form", ["FLAC", "OGG"])
def test_other_formats_are_read_by_soundfile(form, monkeypatch):
    file = io.BytesIO()
    soundfile.write(file, WAVE, 8000, format=form)
    assert abs(read_recording(file.getvalue(), f"a.{form.lower()}").samples[:, 0] - WAVE).max() < 0.1
    monkeypatch.setattr(recording.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(WonderlandError) as refused:
        read_recording(file.getvalue(), "a.flac")
    assert str(refused.value) == (
        "a.flac is not a plain WAVE file, and other sounds need an extra: pip install 'wonderland[sound]'."
    )


def chunk(name: bytes, body: bytes, size: int | None = None) -> bytes:
    return name + struct.pack("<I", len(body) if size is None else size) + body


def riff(*chunks: bytes) -> bytes:
    body = b"".join(chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def described(form=1, channels=1, rate=8000, frame=2, bits=16) -> bytes:
    return chunk(b"fmt ", struct.pack("<HHIIHH", form, channels, rate, rate * frame, frame, bits))


BODY = np.arange(10, dtype="<i2").tobytes()


def test_chunks_before_the_samples_and_an_unknown_length_are_read():
    listed = riff(chunk(b"LIST", b"12345") + b"\0", described(), chunk(b"data", BODY))
    assert len(read_recording(listed, "a.wav").samples) == 10
    for size in (0, 0xFFFFFFFF):
        assert len(read_recording(riff(described(), chunk(b"data", BODY, size)), "a.wav").samples) == 10


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.wav is an empty file, not a recording. Remove it, or copy it again."),
        (b"hello", "a.wav is not a WAVE file: it does not begin as one. Remove it, or copy it again."),
        (riff(), "a.wav has a damaged header: it names no samples. Copy the file again."),
        (riff(chunk(b"data", BODY)), "a.wav has a damaged header: it does not say how its samples are written."),
        (riff(chunk(b"fmt ", b"ab")), "a.wav has a damaged header: its format has 2 bytes, and needs at least 16."),
        (riff(described(rate=0), chunk(b"data", BODY)), "a.wav has a damaged header: 1 channels at 0 samples a second. Copy the file again."),
        (riff(described(frame=5), chunk(b"data", BODY)), "a.wav has samples of 16 bits in 5 bytes for 1 channels, which is not read: convert it to 16-bit PCM."),
        (riff(described(), chunk(b"data", BODY, 4000)), "a.wav is cut short: its header names 4,000 bytes of sound, and 20 are there. Copy the file again."),
        (riff(described(), chunk(b"data", b"")), "a.wav has no samples: it is 0 seconds long. Remove it, or record it again."),
        (riff(described(3, frame=4, bits=32), chunk(b"data", np.full(3, np.nan, "<f4").tobytes())), "a.wav has samples that are not finite numbers. Write the file again."),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(data, message):
    with pytest.raises(WonderlandError) as refused:
        read_recording(data, "a.wav")
    assert str(refused.value) == message


def test_a_header_that_claims_too_much_is_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setenv(VARIABLE, "sound_samples=5")
    with pytest.raises(WonderlandError, match=r"a.wav has 10 samples; the limit is 5"):
        read_recording(riff(described(), chunk(b"data", BODY)), "a.wav")
