"""Options of images."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions


@dataclass(frozen=True)
class Options(KindOptions):
    """Pictures in class folders, or arrays of pixels."""

    task: str | None = option(
        help="what is learned (default: inferred)", choices=("binary", "multiclass", "regression")
    )
    size: int | None = option(help="side of the images (default: from the data)", metavar="PIXELS", least=8)
    workers: int | None = option(help="processes that load images", least=0)
