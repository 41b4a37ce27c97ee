"""How recordings are opened, and what is said about those that cannot be."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch

import wonderland
from tests.kinds.sound.made import tone, write_folder
from wonderland.core import WonderlandError
from wonderland.data import Glimpse
from wonderland.data.recording import write_wave
from wonderland.kinds import KINDS
from wonderland.kinds import open as opened
from wonderland.kinds.choose import choose
from wonderland.kinds.sound.encoder import SoundEncoder
from wonderland.kinds.sound.sounds import Sounds


def archive(path, files):
    with zipfile.ZipFile(path, "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


def spoken(rows=12):
    return {
        f"takes/{row % 2}_{'ab'[row // 2 % 2]}_{row}.wav": write_wave(tone(row, row % 2 == 1), 8000)
        for row in range(rows)
    }


def test_names_of_files_become_columns(tmp_path):
    path = archive(tmp_path / "digits.zip", spoken())
    assert choose(Glimpse(path), None, {}, KINDS).name == "sound"
    data = opened(path, file_names="{digit}_{speaker}_{take}", target="digit", group="speaker")
    assert (data.classes, data.group_names, data.task) == (["0", "1"], ["a", "b"], "binary")
    assert data.texts_of("take").tolist() == [name.split("_")[-1][:-4] for name in sorted(spoken())]
    assert data.headline() == "digits: 12 recordings, binary, 2 classes"
    with pytest.raises(
        WonderlandError, match=r"does not fit the pattern '.digit.-.rest.'. Change the pattern, or the name."
    ):
        opened(path, file_names="{digit}-{rest}", target="digit")
    with pytest.raises(WonderlandError, match=r"There is no column 'digits' for target. Did you mean 'digit'\?"):
        opened(path, file_names="{digit}_{speaker}_{take}", target="digits")
    with pytest.raises(
        WonderlandError, match=r"has 12 recordings but no class folders. Make one folder for each class, or say"
    ):
        opened(path)


def test_notes_beside_recordings_do_not_make_them_texts(tmp_path):
    folder = write_folder(tmp_path / "takes", 4)
    (folder / "README.txt").write_text("Recorded in a quiet room. " * 20)
    assert choose(Glimpse(folder), None, {}, KINDS).name == "sound"


def test_a_table_names_recordings_in_a_zip_file(tmp_path):
    archive(tmp_path / "digits.zip", spoken())
    names = [f"digits.zip/{name}" for name in spoken()]
    frame = pd.DataFrame({"path": names, "digit": ["no", "yes"] * 6, "part": ["train"] * 8 + ["test"] * 4})
    frame.to_csv(tmp_path / "takes.csv", index=False)
    data = opened(tmp_path / "takes.csv", target="digit", split="part")
    assert data.classes == ["no", "yes"]
    assert (data.assigned == 3).sum() == 4
    frame.assign(path=["digits.zip/takes/x.wav", *names[1:]]).to_csv(tmp_path / "wrong.csv", index=False)
    with pytest.raises(
        WonderlandError, match=r"names digits.zip/takes/x.wav in row 1, and there is no such file beside it"
    ):
        opened(tmp_path / "wrong.csv", target="digit")


def test_what_cannot_be_read_is_named_or_left_out(tmp_path):
    folder = write_folder(tmp_path / "sounds", 8)
    (folder / "rising" / "empty.wav").write_bytes(b"")
    (folder / "rising" / "none.wav").write_bytes(write_wave(np.zeros(0), 8000))
    with pytest.raises(WonderlandError) as refused:
        opened(folder)
    assert str(refused.value) == (
        f"{folder}/rising/empty.wav is an empty file, not a recording. Remove it, or copy it again. "
        "To leave out what cannot be read, give skip_broken (--skip-broken)."
    )
    data = opened(folder, skip_broken=True)
    assert len(data) == 8
    assert data.findings[-1].text == "2 recordings cannot be read and are left out: rising/empty.wav, rising/none.wav."
    with pytest.raises(WonderlandError, match=r"Strict mode stops here. 2 recordings cannot be read"):
        opened(folder, skip_broken=True, strict=True)


def test_rates_channels_and_copies_are_reported(tmp_path):
    folder = write_folder(tmp_path / "sounds", 6)
    (folder / "rising" / "high.wav").write_bytes(write_wave(tone(50, True, 96_000), 96_000))
    stereo = np.stack([tone(51, True), tone(51, True)], 1)
    for name in ("first", "second"):
        (folder / "rising" / f"{name}.wav").write_bytes(write_wave(stereo, 8000))
    texts = [finding.text for finding in opened(folder).findings]
    assert texts == [
        "2 recordings have several channels; their mean is used.",
        "The recordings have 2 rates, 8,000 (8), 96,000 (1) a second; all are resampled to one.",
        "1 recording is a copy of another: scores may look better than they are.",
    ]


def test_a_folder_of_parts_or_of_one_class_is_refused(tmp_path):
    folder = write_folder(tmp_path / "sounds", 6)
    (folder / "rising").rename(folder / "train")
    (folder / "steady").rename(folder / "test")
    with pytest.raises(WonderlandError, match=r"holds the parts of a split .test, train., not classes"):
        opened(folder)
    (tmp_path / "alone").mkdir()
    (folder / "train").rename(tmp_path / "alone" / "bird")
    with pytest.raises(
        WonderlandError, match=r"holds recordings of one class only, 'bird': there is nothing to tell apart"
    ):
        opened(tmp_path / "alone")
    with pytest.raises(WonderlandError, match=r"is one recording, and there is nothing to compare it with"):
        opened(next((tmp_path / "alone" / "bird").iterdir()))


def test_encoding_resamples_cuts_and_pads():
    long, short = tone(0, False), tone(1, True)[:400]
    sounds = Sounds.of_arrays([long, short], 8000)
    sounds.y, sounds.classes, sounds.task = np.array([0, 1]), ["a", "b"], "binary"
    encoder = SoundEncoder.fit(sounds, np.array([0, 1]))
    x = encoder.encode(sounds)
    assert x.shape == (2, encoder.frames, 40)
    assert (~x[1, :, 0].isnan()).sum() == 6  # one frame each 10 ms of 50, and the one at the start
    assert not x[0].isnan().any()
    twice = Sounds.of_arrays([np.repeat(long, 2)], 16_000)
    assert encoder.encode(twice).shape == x[:1].shape
    louder = Sounds.of_arrays([0.1 * long], 8000)
    torch.testing.assert_close(encoder.encode(louder)[0], x[0], atol=1e-3, rtol=0)
    longest = Sounds.of_arrays([np.tile(long, 3)], 8000)
    assert encoder.encode(longest).shape == x[:1].shape
    assert encoder.noticed[0].text.startswith("1 recording is longer than")
    again = SoundEncoder.from_json(encoder.to_json())
    assert again == encoder


def test_arrays_and_bytes_are_predicted(tmp_path):
    folder = write_folder(tmp_path / "sounds", 40)
    run = wonderland.fit(folder, out=tmp_path / "run", steps=4, threads=1)
    waves = [tone(row, row % 2 == 1) for row in range(3)]
    table = run.predict((waves, 8000))
    files = [write_wave(wave, 8000) for wave in waves]
    collected = run.predict(run.encoder.collect([{"sound": file} for file in files]))
    assert table["prediction"].tolist() == collected["prediction"].tolist()
    page = (run.folder / "report.html").read_text()
    assert page.count("<audio controls") > 2
    with pytest.raises(
        WonderlandError, match=r"The recording is not a WAVE file|is not a plain WAVE file|cannot be read as"
    ):
        run.encoder.collect([{"sound": io.BytesIO(b"hello").getvalue()}])
