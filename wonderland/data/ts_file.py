"""Files of many series (.ts, the format of the UCR and UEA archives): one series a line, its channels separated by colons."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wonderland.core import WonderlandError
from wonderland.core.unpack import read_unpacked

_STAMPED = re.compile(r"\(([^()]*)\)")
_MISSING = {"", "?", "nan", "na", "none"}


@dataclass
class Series:
    """Many series: values (t, channels) each, an answer each (None where the file has none), and whether answers are numbers."""

    values: list[np.ndarray] = field(default_factory=list)
    answers: list[str] | None = None
    numbers: bool = False
    name: str = ""


def is_ts(start: bytes) -> bool:
    """Whether a file begins as one of series, and not as a program of the same ending."""
    head = start[:4096].lower()
    return b"@data" in head or b"@problemname" in head or b"@classlabel" in head or b"@targetlabel" in head


def read_ts(path: Path) -> Series:
    """Read a file of series; a line that cannot be read is named."""
    text = read_unpacked(path, "series_bytes").decode("utf-8", "replace").removeprefix("\ufeff")
    lines = iter(enumerate(text.splitlines(), 1))
    series, labelled = Series(name=path.name.split(".")[0]), False
    for number, line in lines:
        words = line.strip().split()
        if not words or line.startswith("#"):
            continue
        key = words[0].lower()
        if key == "@data":
            break
        if not key.startswith("@"):
            raise WonderlandError(
                f"{path} has {line.strip()[:40]!r} in line {number}, before @data: a header begins with @."
            )
        if key in ("@classlabel", "@targetlabel") and len(words) > 1 and words[1].lower() == "true":
            labelled, series.numbers = True, series.numbers or key == "@targetlabel"
    else:
        raise WonderlandError(
            f"{path} has no @data line, after which the series would come: it is damaged or cut short."
        )
    answers: list[str] = []
    for number, line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        channels = [piece.strip() for piece in line.strip().split(":")] if "(" not in line else _stamped(line)
        if labelled:
            answers.append(channels.pop())
        values = [_numbers(piece, path, number) for piece in channels]
        if not values or not max(map(len, values)):
            raise WonderlandError(f"{path} has a series without values in line {number}. Remove the line.")
        if series.values and series.values[0].shape[1] != len(values):
            raise WonderlandError(
                f"{path} has {len(values)} channels in line {number}, and {series.values[0].shape[1]} in the lines before."
            )
        longest = max(map(len, values))
        whole = np.full((longest, len(values)), np.nan, np.float32)
        for column, each in enumerate(values):
            whole[: len(each), column] = each
        series.values.append(whole)
    if not series.values:
        raise WonderlandError(f"{path} has no series after @data. Add some, or give another file.")
    series.answers = answers if labelled else None
    return series


def _stamped(line: str) -> list[str]:
    """Channels of pairs (time, value): values in the order of the line, and the answer at its end."""
    channels, rest = [], line.strip()
    for piece in re.split(r"\)\s*:\s*", rest):
        if "(" in piece:
            pairs = _STAMPED.findall(piece + ")")
            channels.append(",".join(pair.rpartition(",")[2] for pair in pairs))
        else:
            channels.append(piece.strip())
    return channels


def _numbers(piece: str, path: Path, number: int) -> np.ndarray:
    cells = [cell.strip() for cell in piece.split(",")]
    try:
        return np.array([np.nan if cell.lower() in _MISSING else float(cell) for cell in cells], np.float32)
    except ValueError as error:
        wrong = next(cell for cell in cells if not _is_number(cell))
        raise WonderlandError(f"{path} has {wrong[:40]!r} in line {number}, which is not a number.") from error


def _is_number(cell: str) -> bool:
    try:
        return cell.lower() in _MISSING or float(cell) is not None
    except ValueError:
        return False
