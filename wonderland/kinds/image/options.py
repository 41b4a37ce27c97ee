"""Options of images."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions


@dataclass(frozen=True)
class Options(KindOptions):
    """Pictures in class folders, in a table of paths, or as arrays of pixels."""

    task: str | None = option(
        help="what is learned (default: inferred)",
        choices=("binary", "multiclass", "multilabel", "regression", "detection", "segmentation", "generate"),
    )
    target: str | None = option(
        help="in a table of paths, the column to learn (default: inferred), or several of 0 and 1: a,b,c",
        metavar="COLUMN",
    )
    skip_broken: bool = option(False, help="leave out images that cannot be read, and list them")
    size: int | None = option(help="side of the images (default: from the data)", metavar="PIXELS", least=8)
    start: str | None = option(
        help="begin with the checkpoint in this folder of the transformers library", metavar="CHECKPOINT", flag="--from"
    )
    method: str | None = option(
        help="what of a checkpoint learns (default full): everything, its head, or an adapter that is merged at the end",
        choices=("full", "head", "lora"),
    )
    depth_decay: float | None = option(
        help="with a checkpoint: each block learns at this share of the rate of the block after it, such as 0.8",
        above=0, most=1, metavar="SHARE",
    )  # fmt: skip
    unfreeze: float | None = option(
        help="with a checkpoint: the head learns first, and blocks join one by one until this share of the steps, such as 0.5",
        above=0, most=1, metavar="SHARE",
    )  # fmt: skip
    augment: str | None = option(
        help='how images are changed at random, such as "PhotoAugment(crop=0.5, flip=0.5, policy=2)"', metavar="CALL"
    )
    workers: int | None = option(help="processes that load images", least=0)


@dataclass(frozen=True)
class PredictOptions:
    """What can be said to predict for a run that finds boxes or masks."""

    draw: str | None = option(None, help="a folder for pictures of what was found, boxes or masks", metavar="FOLDER")
    json: str | None = option(None, help="a .json file for boxes or masks in the form of COCO", metavar="FILE")
