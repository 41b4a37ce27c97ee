"""Outlines as masks: polygons and run-length codes painted on a canvas, or over one box."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from wonderland.core import WonderlandError
from wonderland.kinds.image.canvas import Fit, placed

FINER = 4  # polygons over one box are painted so many times finer


def painted(outlines: Sequence[Any], codes: np.ndarray, fit: Fit, canvas: tuple[int, int]) -> np.ndarray:
    """The class of each pixel of the canvas, 0 beside the outlines, uint8; the largest outlines are painted first."""
    layers = sorted(range(len(outlines)), key=lambda row: -_extent(outlines[row]))
    picture = Image.new("L", (canvas[1], canvas[0]), 0)
    draw = ImageDraw.Draw(picture)
    for row in layers:
        outline, code = outlines[row], int(codes[row])
        if isinstance(outline, dict):
            mask = placed(run_length(outline, fit.height, fit.width), canvas, nearest=True, outside=0)
            picture.paste(code, (0, 0), Image.fromarray(mask * 255))
            continue
        for ring in outline or ():
            draw.polygon([tuple(point) for point in (ring * fit.scale).tolist()], fill=code)
    padded = np.array(picture)
    padded[round(fit.height * fit.scale) :], padded[:, round(fit.width * fit.scale) :] = 255, 255
    return padded


def outline_mask(outline: Any, box: np.ndarray, side: int, fit: Fit) -> np.ndarray:
    """An outline over its box (in pixels of the image): uint8 (side, side), 0 or 1."""
    left, top, right, bottom = (float(value) for value in box)
    if isinstance(outline, dict):
        mask = Image.fromarray(run_length(outline, fit.height, fit.width) * 255)
        size = mask.resize(
            (side, side), Image.Resampling.BILINEAR, box=(left, top, min(right, fit.width), min(bottom, fit.height))
        )
        return (np.asarray(size) >= 128).astype(np.uint8)
    fine = side * FINER
    picture = Image.new("L", (fine, fine), 0)
    draw = ImageDraw.Draw(picture)
    scale = np.array([fine / max(right - left, 1e-6), fine / max(bottom - top, 1e-6)])
    for ring in outline or ():
        draw.polygon([tuple(point) for point in ((ring - [left, top]) * scale).tolist()], fill=255)
    return (np.asarray(picture.resize((side, side), Image.Resampling.BOX)) >= 128).astype(np.uint8)


def run_length(code: dict[str, Any], height: int, width: int) -> np.ndarray:
    """A run-length code of COCO as a mask, uint8 (height, width): alternating runs of zeros and ones, column by column.

    >>> run_length({"size": [2, 2], "counts": [1, 2, 1]}, 2, 2).tolist()
    [[0, 1], [1, 0]]
    """
    if list(code.get("size", [])) != [height, width]:
        raise WonderlandError(
            f"A run-length code is for {code.get('size')!r} pixels, and its image has {[height, width]}."
        )
    counts = code["counts"]
    try:
        runs = np.asarray(_unpacked(counts) if isinstance(counts, str) else counts, np.int64)
    except WonderlandError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise WonderlandError("A run-length code holds something else than whole numbers.") from error
    if runs.ndim != 1 or (runs < 0).any() or (runs > height * width).any() or runs.sum() != height * width:
        raise WonderlandError("A run-length code does not add up to the pixels of its image.")
    return np.repeat(np.arange(len(runs)) % 2, runs).astype(np.uint8).reshape(width, height).T


def _unpacked(text: str) -> list[int]:
    """The counts of a compressed code: groups of 5 bits, lowest first, as differences from the run before the last."""
    runs: list[int] = []
    value, shift = 0, 0
    for letter in text:
        bits = ord(letter) - 48
        if not 0 <= bits < 64 or shift > 40:
            raise WonderlandError("A run-length code holds letters that are no code.")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value, shift = 0, 0
    return runs


def _extent(outline: Any) -> float:
    if isinstance(outline, dict) or not outline:
        return float("inf")
    points = np.concatenate(list(outline))
    return float(np.prod(points.max(0) - points.min(0)))
