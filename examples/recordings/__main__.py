"""Spoken digits by spectra and by waves, for speakers that were heard and for one that was not; words by CTC; WaveNet on a second of sound.

Takes 0 to 4 of each digit and speaker are the test, as usual for these recordings. Words are synthesised by espeak-ng (Debian); voices,
speeds and pitches are drawn at random, and the test has other recordings of the same words.
"""

import random
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

import wonderland
from examples.lab import DATA, Claim, above, below, lines, run, table
from examples.lab.files import find
from wonderland.core import WonderlandError
from wonderland.data.recording import read_recording
from wonderland.models import WaveNet, generate_wave
from wonderland.ops.sound import mu_law_encode

SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
VOICES = ("en", "en-us", "en-gb-x-rp", "en-029", "en-gb-scotland")
VARIANTS = ("", "+f2", "+m3", "+f4", "+m1")


def recordings(archive: Path, folder: Path) -> pd.DataFrame:
    """A table of the recordings in the zip file, which is copied beside it: path, digit, speaker, take."""
    shutil.copy(archive, folder / archive.name)
    with zipfile.ZipFile(archive) as file:
        names = [name for name in file.namelist() if name.endswith(".wav")]
    rows = [Path(name).stem.split("_") for name in names]
    about = {"path": [f"{archive.name}/{name}" for name in names]}
    return pd.DataFrame(about | dict(zip(("digit", "speaker", "take"), zip(*rows, strict=True), strict=True)))


def accuracy(table: pd.DataFrame, test: pd.Series, folder: Path, **options) -> float:
    """Accuracy of a fit on the rows that `test` marks."""
    path = folder / "recordings.csv"
    table.assign(part=np.where(test, "test", "train")).to_csv(path, index=False)
    fitted = wonderland.fit(path, "digit", split="part", out=folder / "run", overwrite=True, threads=1, **options)
    return fitted.metrics["accuracy"]


def spoken_words(text: str, folder: Path, count: int, words: int, seed: int = 0) -> Path:
    """Recordings of the commonest words of a text, by espeak-ng, and a table of them."""
    if shutil.which("espeak-ng") is None:
        raise WonderlandError("Words are synthesised by espeak-ng: apt-get install espeak-ng.")
    known = Counter(word for word in re.findall(r"[a-z]+", text.lower()) if 3 <= len(word) <= 8)
    vocabulary, draw, rows = [word for word, _ in known.most_common(words)], random.Random(seed), []
    for place in range(count):
        word, name = vocabulary[place % len(vocabulary)], f"{place}.wav"
        voice = draw.choice(VOICES) + draw.choice(VARIANTS)
        how = ["-v", voice, "-s", str(draw.randint(120, 200)), "-p", str(draw.randint(30, 70))]
        subprocess.run(["espeak-ng", *how, "-w", str(folder / name), word], check=True, stderr=subprocess.DEVNULL)
        rows.append({"file": name, "text": word, "part": "test" if place >= 0.8 * count else "train"})
    pd.DataFrame(rows).to_csv(folder / "words.csv", index=False)
    return folder / "words.csv"


def words_error(text: str, count: int = 1500, words: int = 300, steps: int | None = None) -> float:
    """The character error rate on recordings that were held out."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source = spoken_words(text, folder, count, words)
        more = {} if steps is None else {"steps": steps}
        fitted = wonderland.fit(source, split="part", out=folder / "run", threads=1, **more)
        return fitted.metrics["character_error_rate"]


def second_of_sound(archive: Path, steps: int = 150, window: int = 1500) -> tuple[float, float]:
    """Bits for each sample of WaveNet on a second of speech that it learns, and the bits of its histogram."""
    with zipfile.ZipFile(archive) as file:
        names = sorted(name for name in file.namelist() if name.endswith("_george_0.wav"))
        waves = [read_recording(file.read(name), name).mono() for name in names]
    codes = mu_law_encode(torch.from_numpy(np.concatenate(waves)[:8000]))
    torch.manual_seed(0)
    model = WaveNet(dim=24, skip=48, depth=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    draw = torch.Generator().manual_seed(0)
    for _ in range(steps):
        begins = torch.randint(0, len(codes) - window, (4,), generator=draw)
        x = torch.stack([codes[begin : begin + window] for begin in begins])
        optimizer.zero_grad()
        F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten()).backward()
        optimizer.step()
    with torch.no_grad():
        loss = F.cross_entropy(model(codes[None, :-1])[0], codes[1:])
    shares = torch.bincount(codes, minlength=256) / len(codes)
    generate_wave(model.eval(), 1000, begin=codes[None, :256])
    return float(loss) / np.log(2), float(torch.special.entr(shares).sum()) / np.log(2)


def lab(data: str | None = None) -> tuple[list[Claim], str, dict[str, str]]:
    archive, text = find("spoken_digits.zip", data), find("timemachine.txt", data).read_text()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        known = recordings(archive, folder)
        early = known["take"].astype(int) < 5
        by_spectra = accuracy(known, early, folder)
        by_waves = accuracy(known, early, folder, model="WaveConvNet")
        unheard = {name: accuracy(known, known["speaker"] == name, folder) for name in SPEAKERS}
    error, (bits, histogram) = words_error(text), second_of_sound(archive)
    mean = sum(unheard.values()) / len(unheard)
    rows = [
        ("spoken digits, takes 0 to 4, spectra", f"{by_spectra:.4f}"),
        ("spoken digits, takes 0 to 4, waves", f"{by_waves:.4f}"),
        *((f"spoken digits, all of {name} held out", f"{value:.4f}") for name, value in unheard.items()),
        ("words of espeak-ng: character error rate", f"{error:.4f}"),
        ("WaveNet on a second of speech, bits for each sample", f"{bits:.2f} (histogram {histogram:.2f})"),
    ]
    claims = [
        above("spoken digits by spectra", by_spectra, 0.98),
        above("spoken digits, speakers held out, the mean", mean, 0.85),
        below("words: character error rate", error, 0.05),
        below("WaveNet: bits over those of the histogram", bits / histogram, 0.7),
    ]
    points = [(float(i), value) for i, value in enumerate(unheard.values())]
    return (
        claims,
        table(("recordings", "measured"), rows, left=2),
        {"speakers": lines({"accuracy": points}, title="Speakers held out", x_label="speaker", y_label="accuracy")},
    )


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("recordings", __doc__, lab, given, DATA)


if __name__ == "__main__":
    sys.exit(main())
