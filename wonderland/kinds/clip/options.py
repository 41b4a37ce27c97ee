"""Options of clips."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions


@dataclass(frozen=True)
class Options(KindOptions):
    """Short videos in class folders: a folder of frames for each clip, GIF files or videos."""

    frames: int | None = option(
        help="how many frames of a clip are read, evenly spaced (default: at most 16)", least=2, most=1024
    )
    size: int | None = option(help="side of the images (default: from the data)", metavar="PIXELS", least=8)
    skip_broken: bool = option(False, help="leave out clips that cannot be read, and list them")
