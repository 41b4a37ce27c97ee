"""A series as a small picture: a line for each channel."""

import base64
import io

import numpy as np
from PIL import Image, ImageDraw

COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2")


def drawn(values: np.ndarray, side: int = 96, most: int = 400) -> str:
    """A PNG in a data URI; all channels share one scale."""
    chosen = values[np.linspace(0, len(values) - 1, min(len(values), most)).astype(int)][:, : len(COLOURS)]
    low, high = float(chosen.min()), float(chosen.max())
    height = (chosen - low) / (high - low) if high > low else np.full(chosen.shape, 0.5)
    across = np.linspace(4, 2 * side - 4, len(chosen))
    picture = Image.new("RGB", (2 * side, 2 * side), "white")
    pen = ImageDraw.Draw(picture)
    for column in range(chosen.shape[1]):
        down = (1 - height[:, column]) * (2 * side - 16) + 8
        points = [(float(x), float(y)) for x, y in zip(across, down, strict=True)]
        pen.line(points if len(points) > 1 else points * 2, fill=COLOURS[column], width=3)
    buffer = io.BytesIO()
    picture.resize((side, side), Image.Resampling.LANCZOS).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
