"""Video files (MP4, MOV, MKV, WebM, AVI) by PyAV, an extra: some of their frames, evenly spaced."""

import importlib.util
import io
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import numpy as np

from wonderland.core import WonderlandError
from wonderland.core.limits import check

# The demuxer of each ending is fixed: one that is guessed from the content may be a playlist that opens other files.
DEMUXERS = {
    ".mp4": "mov",
    ".m4v": "mov",
    ".mov": "mov",
    ".mkv": "matroska",
    ".webm": "matroska",
    ".avi": "avi",
}
VIDEOS = frozenset(DEMUXERS)
HINT = "pip install 'wonderland[video]'"


def read_video(data: bytes, where: object, spaced: Callable[[int], list[int]]) -> list[np.ndarray]:
    """The frames (h, w, 3) of a video at the places `spaced(count)`; pictures are counted first, without decoding them."""
    if importlib.util.find_spec("av") is None:
        raise WonderlandError(
            f"{where} is a video, and videos need an extra: {HINT}. Or write its frames into a folder."
        )
    import av

    demuxer = DEMUXERS[PurePath(str(where)).suffix.casefold()]
    try:
        with _opened(av, data, demuxer) as file:
            if not file.streams.video:
                raise WonderlandError(f"{where} is a video without frames: it holds no pictures. Remove it.")
            stream = file.streams.video[0]
            check("image_pixels", stream.codec_context.width * stream.codec_context.height, where)
            total = sum(packet.size > 0 for packet in file.demux(stream))
            check("video_frames", total, where)
        places = spaced(total) if total else []
        kept, last, wanted = {}, None, set(places)
        if wanted:
            with _opened(av, data, demuxer) as file:
                for place, frame in enumerate(file.decode(file.streams.video[0])):
                    last = frame
                    if place in wanted:
                        kept[place] = frame.to_ndarray(format="rgb24")
                    if place == places[-1]:
                        break
    except WonderlandError:
        raise
    except Exception as error:  # decoders raise all kinds of exceptions on damaged bytes
        raise WonderlandError(
            f"{where} cannot be read as a video: it is damaged, cut short, or of an unknown format."
        ) from error
    if last is None:
        raise WonderlandError(f"{where} is a video without frames: it holds no pictures. Remove it.")
    ending = last.to_ndarray(format="rgb24")  # some packets hold no picture, so the last places may be missing
    return [kept.get(place, ending) for place in places]


def _opened(av: Any, data: bytes, demuxer: str) -> Any:
    return av.open(io.BytesIO(data), format=demuxer, metadata_errors="ignore")
