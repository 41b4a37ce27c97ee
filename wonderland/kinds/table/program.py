"""The encoding of tables as a torch program: numbers with NaN, codes of categories, dates as seconds since 1970."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from wonderland.data.cells import MISSING
from wonderland.data.columns import Column
from wonderland.data.ports import Port, Preprocessing
from wonderland.kinds.table.column_encoding import CYCLES, LARGEST, ColumnEncoding
from wonderland.kinds.table.text_program import TextColumn, odd_texts_of, text_counts, text_port

NO_DATE = -(2**63)  # what numpy has for a missing date
DAY = 86_400
EARLIEST, LATEST = -(10**6), 10**7  # days; where cycles are clipped
FOUR_CENTURIES = 146_097  # days


class TableProgram(Preprocessing):
    """What `TableEncoder.encode` computes, on columns: p + q features in float32, (rows, p + q).

    A missing number is NaN, a missing category "", a missing date the smallest int64. Booleans are 0 and 1.
    """

    boolean: Tensor
    fill: Tensor
    date_fill: Tensor
    center: Tensor
    scale: Tensor
    scaled: Tensor
    largest: Tensor
    order: Tensor

    def __init__(self, encodings: list[ColumnEncoding], center: np.ndarray, scale: np.ndarray, double: bool = False):
        super().__init__(tuple(_port(encoding, double) for encoding in encodings))
        kinds = [encoding.kind for encoding in encodings]
        self.numbers = [i for i, kind in enumerate(kinds) if kind in ("number", "boolean")]
        self.dates = [i for i, kind in enumerate(kinds) if kind == "date"]
        self.categories = [i for i, kind in enumerate(kinds) if kind == "category"]
        self.parts = [encodings[i].parts for i in self.dates]
        self.texts = [i for i, kind in enumerate(kinds) if kind == "text"]
        self.text_columns = nn.ModuleList(TextColumn(encodings[i]) for i in self.texts)
        self._buffer("boolean", [kinds[i] == "boolean" for i in self.numbers])
        self._buffer("fill", [encodings[i].fill for i in self.numbers], torch.float64)
        self._buffer("date_fill", [encodings[i].fill for i in self.dates], torch.float64)
        self._buffer("center", center, torch.float64)
        self._buffer("scale", scale, torch.float64)
        self._buffer("scaled", [scaled for encoding in encodings for _, scaled in encoding.features()])
        self._buffer("largest", LARGEST, torch.float64)
        self._buffer("order", self._order(encodings))

    def _buffer(self, name: str, values: Any, dtype: torch.dtype | None = None) -> None:
        self.register_buffer(name, torch.as_tensor(np.asarray(values), dtype=dtype), persistent=False)

    def _order(self, encodings: list[ColumnEncoding]) -> list[int]:
        """Where each feature of the encoder is among those that `forward` computes: values, flags, then parts of dates."""
        produced: list[tuple[int, str]] = [(i, "value") for i in self.numbers] + [(i, "flag") for i in self.numbers]
        for i, parts in zip(self.dates, self.parts, strict=True):
            produced += [(i, part) for part in ("days", "flag")]
            produced += [(i, f"{part} {side}") for part in parts if part != "days" for side in ("sin", "cos")]
        for i in self.texts:
            produced += [(i, name) for name, _ in replace(encodings[i], flagged=False).features()] + [(i, "flag")]
        place = {key: index for index, key in enumerate(produced)}
        wanted: list[tuple[int, str]] = []
        for i, encoding in enumerate(encodings):
            if encoding.kind == "category":
                continue
            if encoding.kind == "text":
                wanted += [(i, name) for name, _ in replace(encoding, flagged=False).features()]
            elif encoding.kind == "date":
                wanted += [(i, part) for part in encoding.parts if part == "days"]
                wanted += [
                    (i, f"{part} {side}") for part in encoding.parts if part != "days" for side in ("sin", "cos")
                ]
            else:
                wanted.append((i, "value"))
            if encoding.flagged:
                wanted.append((i, "flag"))
        return [place[key] for key in wanted]

    def forward(self, *values: Tensor) -> Tensor:
        features: list[Tensor] = []
        if self.numbers:
            x = torch.stack([values[i] for i in self.numbers], 1).double()
            unread = self.boolean & (x != 0) & (x != 1)
            missing = torch.isnan(x) | unread
            features += [torch.where(missing, self.fill, x), missing.double()]
        for place, (i, parts) in enumerate(zip(self.dates, self.parts, strict=True)):
            features.append(self._date(values[i], self.date_fill[place], parts))
        features += [column(values[i]) for i, column in zip(self.texts, self.text_columns, strict=True)]
        encoded = []
        if len(self.order):
            joined = torch.cat(features, 1).index_select(1, self.order)
            z = self._clipped((self._clipped(joined) - self.center) / self.scale)
            squashed = 3 * (z / (9 + z * z).sqrt())
            encoded.append(torch.where(self.scaled, squashed, joined).float())
        encoded += [values[i].float()[:, None] for i in self.categories]
        return torch.cat(encoded, 1)

    def _clipped(self, x: Tensor) -> Tensor:
        """Within -LARGEST..LARGEST. (`clamp` is not used: the exporter writes its bounds in float32, where they are infinite.)"""
        return torch.maximum(torch.minimum(x, self.largest), -self.largest)

    def _date(self, seconds: Tensor, fill: Tensor, parts: tuple[str, ...]) -> Tensor:
        """The days, whether they are missing, and sine and cosine of each cycle: (rows, 2 + 2 cycles)."""
        missing = seconds == NO_DATE
        seconds = torch.where(missing, torch.zeros_like(seconds), seconds)
        days = torch.where(missing, fill, seconds.double() / DAY)
        features = [days, missing.double()]
        inside = seconds.clamp(EARLIEST * DAY, LATEST * DAY)
        time = inside.remainder(DAY)
        whole = (inside - time) // DAY
        position = {"weekday": (whole + 3).remainder(7), "hour": time.double() / 3600, "month": _month(whole)}
        for part in parts:
            if part != "days":
                angle = position[part].double() * (2 * np.pi / CYCLES[part])
                features += [angle.sin().masked_fill(missing, 0.0), angle.cos().masked_fill(missing, 0.0)]
        return torch.stack(features, 1)


def _month(days: Tensor) -> Tensor:
    """The month, 0 for January, of whole days since 1970 (int64), in the Gregorian calendar.

    Years are counted from March, so that the leap day is the last; ten times four centuries keep all numbers positive.

    >>> _month(torch.tensor([0, 31, 59, 60, -1])).tolist()
    [0, 1, 2, 2, 11]
    """
    day = (days + 719_468 + 10 * FOUR_CENTURIES).remainder(FOUR_CENTURIES)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day_of_year = day - (365 * year + year // 4 - year // 100)
    return ((5 * day_of_year + 2) // 153 + 2).remainder(12)


def _port(encoding: ColumnEncoding, double: bool) -> Port:
    number = "double" if double else "float"
    if encoding.kind == "number":
        return Port(encoding.name, number, about="a number, NaN if missing")
    if encoding.kind == "boolean":
        no, yes = encoding.pair or ("0", "1")
        return Port(encoding.name, number, about=f"0 for {no}, 1 for {yes}, NaN if missing")
    if encoding.kind == "date":
        return Port(encoding.name, "int64", about=f"seconds since 1970-01-01 UTC, {NO_DATE} if missing")
    if encoding.kind == "text":
        return text_port(encoding)
    codes: dict[str, int] = {}
    for code, level in enumerate(encoding.levels, start=1):
        codes |= {spelling: code for spelling in spellings(level) if spelling not in codes}
    codes |= {level: code for code, level in enumerate(encoding.levels, start=1) if level is not None}
    return Port(encoding.name, "string", codes=codes, about='a category, "" if missing')


def spellings(level: str | None) -> list[str]:
    """Texts that the reader of tables takes for this level; outer blanks are not among them.

    >>> spellings("3"), spellings("True")[:3]
    (['3', '3.0', '3.00'], ['True', 'true', 'TRUE'])
    """
    if level is None:
        return [
            "".join(letters)
            for word in sorted(MISSING)
            for letters in itertools.product(*(sorted({letter.lower(), letter.upper()}) for letter in word))
        ]
    if level in ("True", "False"):
        return [level, level.lower(), level.upper()]
    return [level, f"{level}.0", f"{level}.00"] if level.lstrip("+-").isdigit() else [level]


def feed(encodings: list[ColumnEncoding], columns: list[Column], double: bool = False) -> dict[str, np.ndarray]:
    """The arrays of the ports for columns that were read."""
    arrays: dict[str, np.ndarray] = {}
    for encoding, column in zip(encodings, columns, strict=True):
        if encoding.kind == "category":
            assert column.levels is not None
            arrays[encoding.name] = np.append(column.levels.astype(object), "")[column.values]
        elif encoding.kind == "text":
            arrays[encoding.name] = text_counts(encoding, column)
        elif encoding.kind == "date":
            seconds = np.rint(np.where(column.is_missing, 0, column.values) * DAY).astype(np.int64)
            arrays[encoding.name] = np.where(column.is_missing, NO_DATE, seconds)
        else:
            with np.errstate(over="ignore"):
                arrays[encoding.name] = column.values.astype(np.float64 if double else np.float32)
    return arrays


def odd_rows(
    encodings: list[ColumnEncoding], sizes: dict[str, tuple[float, float]], count: int, seed: int
) -> pd.DataFrame:
    """Rows made from the encodings: values as in training, and missing ones, new categories, extreme numbers and far dates.

    `sizes` has center and scale of numbers and dates (in days).
    """
    generator = np.random.default_rng(seed)
    frame: dict[str, Any] = {}
    for encoding in encodings:
        odd = generator.random(count) < 0.3
        center, scale = sizes.get(encoding.name, (encoding.fill, 1.0))
        if encoding.kind == "number":
            values = center + scale * generator.normal(size=count)
            extremes = np.array([np.nan, 0.0, -0.0, 1e300, -1e300, 1e38, -1e9, 1e-300, center + 1e4 * scale])
            frame[encoding.name] = np.where(odd, generator.choice(extremes, count), values)
        elif encoding.kind == "text":
            frame[encoding.name] = odd_texts_of(encoding, count, generator)
        elif encoding.kind == "boolean":
            frame[encoding.name] = np.where(odd, np.nan, generator.integers(0, 2, count).astype(float))
        elif encoding.kind == "date":
            days = np.clip(center + 3 * scale * generator.normal(size=count), -1e5, 1e5)
            far = generator.choice(np.array([-25_567.0, 0.0, -0.5, 47_481.99, 11_016.0]), count)
            seconds = np.rint(np.where(odd, far, days) * DAY).astype("datetime64[s]")
            frame[encoding.name] = pd.Series(seconds).mask(generator.random(count) < 0.1)
        else:
            known = [level for level in encoding.levels if level is not None] or ["a"]
            strange = ["", "never seen", "ünseen ☃", "NA", "0", known[0] + " x", known[0].swapcase()]
            cells = np.where(odd, generator.choice(strange, count), generator.choice(known, count))
            frame[encoding.name] = pd.Series(cells, dtype=object)
    return pd.DataFrame(frame)
