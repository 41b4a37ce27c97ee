"""The labs of recordings, memory and clips, at small sizes."""

import shutil
import sys
import zipfile
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.memory import chorales, tasks
from examples.moving_digits import __main__ as moving
from examples.recordings import __main__ as recordings
from tests.kinds.sound.made import tone
from wonderland.data.recording import write_wave


def test_adding_and_copying_are_what_they_say():
    x, y = tasks.adding(20, 5, 0)
    assert x[..., 1].sum(1).tolist() == [2.0] * 5
    torch.testing.assert_close((x[..., 0] * x[..., 1]).sum(1), y)
    x, y = tasks.copying(7, 3, 0)
    assert x.shape == (3, 27, 10)
    assert torch.equal(x.argmax(-1)[:, :10], y[:, -10:])
    assert (y[:, :-10] == 0).all()
    assert tasks.adding_error(20, 3) > 0
    assert tasks.copying_loss(5, 3) > 0
    assert 0 <= tasks.digits_accuracy(3) <= 1


def test_the_chord_model_reads_no_later_chord_and_no_padding():
    draw = torch.Generator().manual_seed(0)
    pieces = [(torch.rand(n, 88, generator=draw) < 0.05).float() for n in (12, 20)]
    x, y, mask = chorales.batch_of(pieces)
    assert torch.equal(x[0, 1:11], y[0, :10])
    model = chorales.ChordModel(dim=8, depth=2).eval()
    torch.testing.assert_close(model(x, mask)[0, :5], model(x[:1, :5], mask[:1, :5])[0])
    alone = chorales.nats(model, *chorales.batch_of(pieces[:1]))
    both = chorales.nats(model, x, y, mask)
    other = chorales.nats(model, *chorales.batch_of(pieces[1:]))
    torch.testing.assert_close(both, (11 * alone + 19 * other) / 30)
    assert torch.equal(chorales.transposed(pieces[0], 2)[:, 2:], pieces[0][:, :-2])
    parts = {"train": pieces * 4, "valid": pieces, "test": pieces}
    assert chorales.train(parts, epochs=4, size=4) > 0


def test_the_lab_of_recordings_reads_takes_and_learns_a_wave(tmp_path):
    with zipfile.ZipFile(tmp_path / "spoken_digits.zip", "w") as file:
        for take in range(14):
            for digit in range(2):
                name = f"recordings/{digit}_george_{take}.wav"
                file.writestr(name, write_wave(tone(2 * take + digit, digit == 1), 8000))
    (tmp_path / "copy").mkdir()
    known = recordings.recordings(tmp_path / "spoken_digits.zip", tmp_path / "copy")
    assert known["speaker"].unique().tolist() == ["george"]
    found = recordings.accuracy(known, known["take"].astype(int) < 5, tmp_path / "copy", steps=3)
    assert 0 <= found <= 1
    bits, histogram = recordings.second_of_sound(tmp_path / "spoken_digits.zip", steps=2, window=100)
    assert 0 < histogram < 8
    assert bits > 0


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_words_are_spoken(tmp_path):
    path = recordings.spoken_words("one two two three", tmp_path, 6, 2)
    assert path.read_text().splitlines()[1] == "0.wav,two,train"


def test_each_clip_moves_one_way(tmp_path, monkeypatch):
    monkeypatch.setattr(moving, "MODELS", moving.MODELS[:1])
    assert set(moving.accuracies(40, steps=2)) == {"ClipConvNet(dim=8)"}
