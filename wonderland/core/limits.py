"""Limits on what files of unknown origin may hold, claim and unpack to: the one place that has them.

A reader checks before memory is taken: against a header, the size of the file, or a count while it reads. The environment variable
`WONDERLAND_LIMITS` raises them for data that the user trusts: `WONDERLAND_LIMITS=table_bytes=16GiB,table_columns=50000`.
"""

import functools
import os
import re
from dataclasses import dataclass
from typing import Any

from wonderland.core.errors import WonderlandError, nearest

VARIABLE = "WONDERLAND_LIMITS"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": 1, "k": 10**3, "kb": 10**3, "kib": KIB, "m": 10**6, "mb": 10**6, "mib": MIB, "g": 10**9, "gb": 10**9, "gib": GIB}  # fmt: skip
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


@dataclass(frozen=True)
class Limit:
    """The most that is read of something: a number of bytes, or of things called `unit`."""

    most: int
    meaning: str
    unit: str = "bytes"

    def amount(self, number: int) -> str:
        """A number of this limit in words: "4 GiB", "10,000 columns"."""
        return size(number) if self.unit == "bytes" else f"{number:,} {self.unit}"


LIMITS: dict[str, Limit] = {
    # Files of runs, checkpoints and tokenizers.
    "json_bytes": Limit(16 * MIB, "a JSON file: config.json, trust.json, an index of weights"),
    "json_values": Limit(500_000, "values of a JSON file, objects counted thrice", "values"),
    "encoder_bytes": Limit(128 * MIB, "preprocess.json of a run"),
    "encoder_values": Limit(5_000_000, "values of preprocess.json of a run, objects counted thrice", "values"),
    "header_bytes": Limit(8 * MIB, "the header of a safetensors file"),
    "header_values": Limit(500_000, "values of the header of a safetensors file, objects counted thrice", "values"),
    "sparse_bytes": Limit(64 * MIB, "a safetensors file of which the disk holds less than a quarter"),
    "encoder_tensor_bytes": Limit(2 * GIB, "preprocess.safetensors of a run"),
    "posterior_bytes": Limit(4 * GIB, "posterior.safetensors of a run"),
    "shards": Limit(1000, "files of weights that an index names", "files"),
    "companion_bytes": Limit(256 * MIB, "a file that is copied beside written weights"),
    "records_bytes": Limit(1 * GIB, "metrics.jsonl and times.jsonl of a run"),
    "record_lines": Limit(1_000_000, "lines of metrics.jsonl and times.jsonl of a run", "lines"),
    "run_files": Limit(10_000, "files of a run that is signed", "files"),
    "tokenizer_bytes": Limit(64 * MIB, "tokenizer.json"),
    "tokenizer_values": Limit(3_000_000, "values of tokenizer.json, objects counted thrice", "values"),
    "tokenizer_tokens": Limit(300_000, "tokens of a tokenizer", "tokens"),
    "tokenizer_added": Limit(10_000, "tokens that a tokenizer adds to its vocabulary", "added tokens"),
    # Tables.
    "table_bytes": Limit(4 * GIB, "a table: of text, once it is unpacked"),
    "table_columns": Limit(10_000, "columns of a table", "columns"),
    "empty_cells": Limit(8_000_000, "cells of a table of JSON, beyond 16 for each that is written", "cells"),
    "parquet_bytes": Limit(512 * MIB, "a Parquet file once it is decoded, beyond 100 times its size"),
    "workbook_bytes": Limit(1 * GIB, "a workbook once it is unpacked"),
    "table_cells": Limit(50_000_000, "cells of a workbook, or of rows from a database", "cells"),
    "query_seconds": Limit(300, "computing a view or a query of a SQLite file", "seconds"),
    "unpacked_bytes": Limit(64 * MIB, "what a compressed file unpacks to, beyond 100 times its size"),
    "archive_files": Limit(100_000, "files of an archive", "files"),
    # Texts, graphs, images.
    "line_bytes": Limit(64 * MIB, "a line of a text"),
    "texts_bytes": Limit(2 * GIB, "a folder of texts with classes"),
    "graph_bytes": Limit(1 * GIB, "a file of a graph"),
    "image_bytes": Limit(128 * MIB, "an image file"),
    "image_pixels": Limit(64_000_000, "pixels of an image", "pixels"),
    "decoded_bytes": Limit(256 * MIB, "an image once it is decoded"),
    "annotation_bytes": Limit(512 * MIB, "a JSON file of boxes and outlines"),
    "annotation_text_bytes": Limit(16 * MIB, "a text or XML file of boxes, or of names of classes"),
    # Recordings and clips.
    "series_bytes": Limit(1 * GIB, "a file of many series"),
    "sound_bytes": Limit(512 * MIB, "a file of sound"),
    "sound_samples": Limit(250_000_000, "samples of a recording, of all channels", "samples"),
    "video_bytes": Limit(512 * MIB, "a video"),
    "video_frames": Limit(100_000, "frames of a video", "frames"),
    "cost_bytes": Limit(1 * MIB, "a file of costs"),
}  # fmt: skip


def limit(name: str) -> int:
    """The limit of this name, as it is now: the default, or what the environment variable says."""
    return _raised(os.environ.get(VARIABLE, "")).get(name, LIMITS[name].most)


def check(name: str, seen: int, where: Any, allowed: int | None = None) -> None:
    """Refuse more than the limit. `allowed` is the limit where it depends on the file.

    >>> check("table_columns", 12_000, "wide.csv")
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: wide.csv has 12,000 columns; the limit is 10,000. If you trust it, raise the limit: WONDERLAND_LIMITS=table_columns=12000.
    """
    allowed = limit(name) if allowed is None else allowed
    if seen > allowed:
        raise beyond(name, where, seen, allowed)


def beyond(name: str, where: Any, seen: int | None = None, allowed: int | None = None) -> WonderlandError:
    """The error for more than a limit: what was seen (None: more, and no further was read), what is allowed, how to raise it."""
    entry, allowed = LIMITS[name], limit(name) if allowed is None else allowed
    shown = f"more than {entry.amount(allowed)}" if seen is None else entry.amount(seen)
    bound = entry.amount(allowed).removesuffix(f" {entry.unit}")
    if bound == shown:
        shown, bound = f"{seen:,} bytes", f"{allowed:,}"
    enough = 2 * allowed if seen is None else seen
    if entry.unit == "bytes":
        scale, unit = (GIB, "GiB") if enough >= GIB else (MIB, "MiB")
        value = f"{max(1, -(-enough // scale))}{unit}"
    else:
        value = str(enough)
    return WonderlandError(
        f"{where} has {shown}; the limit is {bound}. If you trust it, raise the limit: {VARIABLE}={name}={value}."
    )


def size(number: int) -> str:
    """Bytes in words.

    >>> size(4 << 30), size(784 << 10), size(100)
    ('4 GiB', '784 KiB', '100 bytes')
    """
    for scale, unit in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if number >= scale:
            return f"{round(number / scale, 1):g} {unit}"
    return f"{number:,} bytes"


@functools.lru_cache(8)
def _raised(text: str) -> dict[str, int]:
    """The limits that the environment variable sets."""
    limits: dict[str, int] = {}
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        name, _, amount = (piece.strip() for piece in entry.partition("="))
        if name not in LIMITS:
            known = ", ".join(LIMITS)
            raise WonderlandError(f"{VARIABLE} names {name!r}.{nearest(name, LIMITS) or f' Limits are {known}.'}")
        match = _AMOUNT.fullmatch(amount.lower())
        if match is None or match[2] not in _UNITS:
            raise WonderlandError(
                f"{VARIABLE} sets {name} to {amount!r}: give a number such as 50000, 512MiB or 16GiB."
            )
        limits[name] = int(float(match[1]) * _UNITS[match[2]])
    return limits
