"""Options of sound."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions


@dataclass(frozen=True)
class Options(KindOptions):
    """Recordings in class folders, in a zip file, or in a table of paths; with a class, a number or a text each."""

    task: str | None = option(
        help="what is learned (default: inferred)",
        choices=("binary", "multiclass", "multilabel", "regression", "transcription"),
    )
    target: str | None = option(
        help="in a table of paths, or of --file-names, the column to learn (default: inferred), or several of 0 and 1: a,b,c",
        metavar="COLUMN",
    )
    file_names: str | None = option(
        help='what the names of files say, such as "{digit}_{speaker}_{take}": each field becomes a column',
        metavar="PATTERN",
    )
    group: str | None = option(help="recordings with the same value stay in one part of the split", metavar="COLUMN")
    split: str | None = option(
        help="a column that says train, validation, calibration or test for each row; rows with an empty cell take no part",
        metavar="COLUMN",
    )
    rate: int | None = option(
        help="samples a second that recordings are resampled to (default: the most common rate, at most 16,000)",
        least=1000,
        most=192_000,
    )
    seconds: float | None = option(
        help="longest piece that is read; longer recordings are cut to their middle (default: nearly all of them, at most 10)",
        above=0, most=600,
    )  # fmt: skip
    skip_broken: bool = option(False, help="leave out recordings that cannot be read, and list them")
    augment: str | None = option(
        help='how recordings are changed at random, such as "MelAugment(warp=0.1)"', metavar="CALL"
    )
