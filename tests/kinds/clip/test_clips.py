"""Clips through the battery, and what is said about those that cannot be read."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import wonderland
from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from wonderland.core import WonderlandError
from wonderland.kinds import open as opened


def moving(row: int, frames: int = 6) -> list[Image.Image]:
    """A dot that runs right or left."""
    draw = np.random.default_rng(row)
    begin, height, pictures = draw.integers(0, 4), draw.integers(2, 14), []
    for t in range(frames):
        place = begin + 2 * t if row % 2 else 15 - begin - 2 * t
        pixels = draw.integers(0, 40, (16, 16), dtype=np.uint8)
        pixels[height - 2 : height + 2, max(0, place - 1) : place + 2] = 255
        pictures.append(Image.fromarray(pixels))
    return pictures


def write(folder: Path, rows: range, gif: bool = False) -> Path:
    for row in rows:
        clip = folder / ("right" if row % 2 else "left") / str(row)
        if gif:
            clip.parent.mkdir(parents=True, exist_ok=True)
            first, *more = moving(row)
            first.save(clip.with_suffix(".gif"), save_all=True, append_images=more)
        else:
            clip.mkdir(parents=True, exist_ok=True)
            for t, picture in enumerate(moving(row)):
                picture.save(clip / f"{t}.png")
    return folder


class TestFoldersOfFrames(Battery):
    kind = "clip"

    def make(self, folder):
        return write(folder / "clips", range(24)), write(folder / "new", range(100, 106))


def test_a_gif_holds_the_same_frames(tmp_path):
    framed, gifs = opened(write(tmp_path / "frames", range(6))), opened(write(tmp_path / "gifs", range(6), gif=True))
    assert (framed.shape, framed.classes) == (gifs.shape, gifs.classes)
    assert np.abs(framed.pixels.astype(int) - gifs.pixels.astype(int)).max() <= 8  # a palette of 256 greys
    assert framed.findings[-1].text == "6 clips have fewer than 16 frames, which are repeated."


def test_each_model_is_fitted_and_predicts_one_clip(tmp_path):
    source = write(tmp_path / "clips", range(60))
    for model in ("ClipConvNet(dim=8)", "ClipConvNet(dim=8, factored=True)", "ClipSequenceNet(dim=16)"):
        fitted = wonderland.fit(source, out=tmp_path / "run", model=model, steps=2, threads=1, overwrite=True)
        table = fitted.predict(tmp_path / "clips" / "left" / "0")
        assert len(table) == 1


def test_what_cannot_be_read_is_said(tmp_path):
    source = write(tmp_path / "clips", range(6))
    (source / "left" / "none").mkdir()
    with pytest.raises(WonderlandError) as refused:
        opened(source, kind="clip")
    assert str(refused.value) == (
        f"{source}/left/none is a clip without frames. Remove it, or leave out what cannot be read with skip_broken (--skip-broken)."
    )
    gifs = write(tmp_path / "gifs", range(6), gif=True)
    (gifs / "left" / "0.gif").write_bytes(b"GIF89a")
    with pytest.raises(
        WonderlandError, match=r"0.gif cannot be read as a GIF: it is damaged or cut short\. To leave out"
    ):
        opened(gifs)
    kept = opened(gifs, skip_broken=True)
    assert (len(kept), kept.findings[-1].text.startswith("6")) == (5, False)


def filmed(path: Path, pictures: list[Image.Image], audio: bool = False) -> None:
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as file:
        if audio:
            stream = file.add_stream("aac", rate=8000)
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            frame.sample_rate = 8000
        else:
            stream = file.add_stream("mpeg4", rate=10)
            stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 16, 16, "yuv420p", 4_000_000
        frames = [frame] if audio else [av.VideoFrame.from_image(picture.convert("RGB")) for picture in pictures]
        for each in [*frames, None]:
            file.mux(stream.encode(each))


def test_a_video_holds_the_same_frames(tmp_path):
    pytest.importorskip("av")
    for row in range(6):
        filmed(tmp_path / "videos" / ("right" if row % 2 else "left") / f"{row}.mp4", moving(row))
    videos, framed = opened(tmp_path / "videos"), opened(write(tmp_path / "frames", range(6)))
    assert (videos.shape[0], videos.classes) == (framed.shape[0], framed.classes)
    assert np.abs(videos.pixels.astype(int).mean(2) - framed.pixels[:, :, 0].astype(int)).mean() < 8
    filmed(tmp_path / "videos" / "left" / "silent.mp4", [], audio=True)
    with pytest.raises(
        WonderlandError, match=r"silent\.mp4 is a video without frames: it holds no pictures\. Remove it\."
    ):
        opened(tmp_path / "videos")
    whole = (tmp_path / "videos" / "left" / "0.mp4").read_bytes()
    for content in (b"", b"#EXTM3U\nfile:///etc/passwd\n", whole[:200], whole[: len(whole) // 2]):
        (tmp_path / "videos" / "left" / "silent.mp4").write_bytes(content)
        with pytest.raises(WonderlandError, match=r"silent\.mp4 (cannot be read as a video: it is damaged|is empty)"):
            opened(tmp_path / "videos")
    assert len(opened(tmp_path / "videos", skip_broken=True)) == 6
