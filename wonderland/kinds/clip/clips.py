"""Clips: folders of frames, GIF files and videos, as uint8 pixels of one size and one number of frames."""

import base64
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageSequence

from wonderland.core import WonderlandError
from wonderland.core.limits import check
from wonderland.data.bundle import Bundle, Member, read_bundle
from wonderland.data.dataset import Dataset, Finding, counted
from wonderland.data.decode import SUFFIXES, conform, decode_bytes, guard_decompression
from wonderland.data.folders import natural
from wonderland.kinds.clip.videos import VIDEOS, read_video

GIF = ".gif"
FILES = frozenset({GIF}) | VIDEOS  # endings of files that hold a clip each
MOST_FRAMES, MOST_SIDE = 16, 64
MOST_IN_MEMORY = 1 << 31
SHOWN_FRAMES = 8


def clips_of(bundle: Bundle) -> dict[str, list[Member]]:
    """The files of each clip by its name: one GIF or video, or the frames of a folder in the order of their names."""
    clips: dict[str, list[Member]] = {}
    for member in bundle.members:
        name = member.name if is_whole(member.name) else member.name.rpartition("/")[0]
        clips.setdefault(name, []).append(member)
    return {name: sorted(members, key=lambda member: natural(member.name)) for name, members in clips.items()}


def is_whole(name: str) -> bool:
    """Whether one file is a whole clip."""
    return Path(name).suffix.casefold() in FILES


def read_clips(root: Path) -> Bundle:
    return read_bundle(root, SUFFIXES | VIDEOS)


def decoded(name: str, members: list[Member], count: int) -> list[np.ndarray]:
    """At most `count` frames of a clip, evenly spaced, each (h, w) or (h, w, 3)."""
    if len(members) == 1 and is_whole(members[0].name):
        return (
            _of_gif(members[0], count)
            if Path(members[0].name).suffix.casefold() == GIF
            else _of_video(members[0], count)
        )
    places = spaced(len(members), count)
    return [decode_bytes(members[place].read("image_bytes"), str(members[place])) for place in places]


def spaced(total: int, count: int) -> list[int]:
    """Places of `count` frames among `total`, evenly; a short clip repeats frames.

    >>> spaced(5, 3), spaced(2, 4)
    ([0, 2, 4], [0, 0, 1, 1])
    """
    if total >= count:
        return np.linspace(0, total - 1, count).round().astype(int).tolist()
    return (np.arange(count) * total // count).tolist()


def _of_gif(member: Member, count: int) -> list[np.ndarray]:
    return frames_of_gif(member.read("image_bytes"), member, count)


def frames_of_gif(data: bytes, member: Any, count: int) -> list[np.ndarray]:
    """At most `count` frames of a GIF file, evenly spaced; `member` is what errors call it."""
    try:
        with Image.open(io.BytesIO(data), formats=("GIF",)) as image:
            total = getattr(image, "n_frames", 1)
            check("image_pixels", image.width * image.height, member)
            check("decoded_bytes", 3 * image.width * image.height * min(total, 4 * count), member)
            wanted, frames = set(spaced(total, count)), {}
            for place, frame in enumerate(ImageSequence.Iterator(image)):
                if place in wanted:
                    frames[place] = np.array(frame.convert("RGB"))
            return [_grey_if_equal(frames[place]) for place in spaced(total, count)]
    except WonderlandError:
        raise
    except Exception as error:  # decoders raise all kinds of exceptions on damaged bytes
        raise WonderlandError(f"{member} cannot be read as a GIF: it is damaged or cut short.") from error


def _of_video(member: Member, count: int) -> list[np.ndarray]:
    return [
        _grey_if_equal(frame)
        for frame in read_video(member.read("video_bytes"), member, lambda total: spaced(total, count))
    ]


def _grey_if_equal(frame: np.ndarray) -> np.ndarray:
    same = (frame[..., 0] == frame[..., 1]).all() and (frame[..., 0] == frame[..., 2]).all()
    return frame[..., 0] if same else frame


class Clips(Dataset):
    """Clips as uint8 pixels (n, frames, channels, side, side), with a class each.

    >>> clips = Clips(np.zeros((2, 4, 1, 8, 8), np.uint8), ["a", "b"], name="two", origin={})
    >>> len(clips), clips.shape
    (2, (4, 1, 8, 8))
    """

    kind = "clip"
    noun = "clips"

    def __init__(
        self,
        pixels: np.ndarray,
        names: list[str],
        *,
        name: str,
        origin: dict[str, Any],
        findings: list[Finding] | None = None,
    ):
        self.pixels, self.names, self.name, self.origin = pixels, names, name, origin
        self.findings = findings or []
        self.task = self.classes = self.y = None
        total = hashlib.sha256(f"{pixels.shape}|".encode())
        for place in range(len(pixels)):
            total.update(names[place].encode("utf-8", "backslashreplace") + b"\0" + pixels[place].tobytes())
        self.fingerprint = total.hexdigest()

    @classmethod
    def read(
        cls,
        bundle: Bundle,
        clips: dict[str, list[Member]],
        *,
        frames: int | None,
        side: int | None,
        channels: int | None,
        skip_broken: bool,
    ) -> tuple["Clips", list[str]]:
        """Decode the clips of a listing; also the names of those that stay."""
        with guard_decompression():
            decodings = list(_each(clips, MOST_FRAMES if frames is None else frames, skip_broken))
        broken = [name for name, frames_of in decodings if isinstance(frames_of, WonderlandError)]
        read = [(name, frames_of) for name, frames_of in decodings if not isinstance(frames_of, WonderlandError)]
        if not read:
            raise WonderlandError(f"None of the {counted(len(clips), 'clip', 'clips')} of {bundle.root} can be read.")
        count = len(read[0][1])
        if side is None:
            middle = float(np.median([min(each.shape[:2]) for _, frames_of in read for each in frames_of[:1]]))
            side = min(max(8 * round(middle / 8), 8), MOST_SIDE)
        if channels is None:
            channels = 3 if any(each.ndim == 3 for _, frames_of in read for each in frames_of) else 1
        needed = len(read) * count * channels * side * side
        if needed > MOST_IN_MEMORY:
            raise WonderlandError(
                f"The clips of {bundle.root} take {needed / (1 << 30):.1f} GiB at {side} pixels and {count} frames: give a smaller size "
                "(--size) or fewer frames (--frames)."
            )
        pixels = np.empty((len(read), count, channels, side, side), np.uint8)
        for place, (_, frames_of) in enumerate(read):
            for t, frame in enumerate(frames_of):
                pixels[place, t] = conform(frame, channels, side, side)
        findings = bundle.findings("clip")
        if broken:
            shown = ", ".join(broken[:10]) + (f" and {len(broken) - 10} more" if len(broken) > 10 else "")
            text = f"{counted(len(broken), 'clip cannot be read and is', 'clips cannot be read and are')} left out: {shown}."
            findings.append(Finding("broken", str(bundle.root), len(broken), text))
        short = sum(len(clips[name]) < count for name, _ in read if not is_whole(name))
        if short:
            text = f"{counted(short, 'clip has', 'clips have')} fewer than {count} frames, which are repeated."
            findings.append(Finding("size", str(bundle.root), short, text))
        names = [name for name, _ in read]
        return cls(
            pixels, names, name=bundle.name, origin={"path": str(bundle.root.absolute())}, findings=findings
        ), names

    @property
    def shape(self) -> tuple[int, ...]:
        """Frames, channels, height and width of each clip."""
        return self.pixels.shape[1:]

    def __len__(self) -> int:
        return len(self.pixels)

    def labels(self) -> dict[str, list[Any]]:
        return {"clip": list(self.names)}

    def answer(self, i: int) -> str:
        assert self.y is not None
        assert self.classes is not None
        return self.classes[self.y[i]]

    def example(self, i: int) -> dict[str, Any]:
        return {"clip": self.names[i], "frames": self.shape[0]} | ({} if self.y is None else {"target": self.answer(i)})

    def shown(self, i: int) -> dict[str, Any]:
        """Frames of a clip, in two rows."""
        return {"image": film(self.pixels[i]), "path": self.names[i]}

    def summary(self) -> list[dict[str, Any]]:
        about = {
            "frames": self.shape[0],
            "pixels": f"{self.shape[2]} x {self.shape[3]}, {'grey' if self.shape[1] == 1 else 'colour'}",
        }
        if self.y is None or self.classes is None:
            return [{"clips": len(self)} | about]
        counts = np.bincount(self.y, minlength=len(self.classes))
        return [
            {"class": name, "clips": int(count), "share": f"{100 * count / len(self):.1f} %"} | about
            for name, count in zip(self.classes, counts, strict=True)
        ]


def _each(clips: dict[str, list[Member]], count: int, skip_broken: bool) -> Iterator[tuple[str, Any]]:
    for name, members in clips.items():
        try:
            yield name, decoded(name, members, count)
        except WonderlandError as error:
            if not skip_broken:
                raise WonderlandError(
                    f"{error} To leave out what cannot be read, give skip_broken (--skip-broken)."
                ) from error
            yield name, error


def film(pixels: np.ndarray, side: int = 48) -> str:
    """Some frames of a clip (t, c, h, w) side by side in two rows, as a PNG in a data URI."""
    places = spaced(len(pixels), SHOWN_FRAMES)
    frames = [pixels[place][0] if pixels.shape[1] == 1 else pixels[place].transpose(1, 2, 0) for place in places]
    pictures = [Image.fromarray(np.ascontiguousarray(frame)).resize((side, side)) for frame in frames]
    strip = Image.new("L" if pixels.shape[1] == 1 else "RGB", (side * 4, side * 2))
    for place, picture in enumerate(pictures):
        strip.paste(picture, (side * (place % 4), side * (place // 4)))
    buffer = io.BytesIO()
    strip.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
