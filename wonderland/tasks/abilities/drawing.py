"""Drawing: the `generate` ability of generative models of tables and images."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from wonderland.core import WonderlandError, nearest, write_bytes, write_text

LARGEST = 100_000  # samples at once
CHUNK = 500
GAP = 2  # pixels between images of a sheet


class Drawing:
    """`run.ability("generate")(64)`: new examples, as images (n, h, w) or (n, h, w, 3), or as a frame.

    >>> run.ability("generate")(16, label="cat", seed=3)  # doctest: +SKIP
    """

    draws = True

    def __init__(self, run: Any):
        self.run = run

    def __call__(
        self, count: int = 16, *, label: str | None = None, guidance: float | None = None, seed: int = 0
    ) -> np.ndarray | pd.DataFrame:
        """So many new examples. Without a label, classes take turns; `guidance` above 1 makes examples more typical of theirs."""
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= LARGEST:
            raise WonderlandError(f"From 1 to {LARGEST:,} examples are drawn at once, not {count!r}.")
        if guidance is not None and not 0 <= guidance <= 100:
            raise WonderlandError(f"guidance is a number from 0 to 100, not {guidance!r}.")
        codes, model = self.codes(count, label), self.run.model.eval()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            pieces = [
                model.sample(
                    min(CHUNK, count - first),
                    None if codes is None else codes[first : first + CHUNK],
                    guidance=guidance,
                )
                for first in range(0, count, CHUNK)
            ]
            return self.run.encoder.decode(torch.cat(pieces))

    def codes(self, count: int, label: str | None) -> torch.Tensor | None:
        """The code of the class of each example."""
        names = self.run.task.labels
        if label is None:
            return None if names is None else torch.arange(count) % len(names) + 1
        if names is None:
            raise WonderlandError("This run was fitted without classes: leave the label (--label) out.")
        if str(label) not in names:
            raise WonderlandError(f"There is no class {str(label)[:80]!r}.{nearest(str(label), names)}")
        return torch.full((count,), names.index(str(label)) + 1)

    def write(self, samples: np.ndarray | pd.DataFrame, path: str | Path) -> None:
        """Images as a sheet in a .png file, as a .npy file or as a folder of .png files; rows as a .csv file."""
        path = Path(path)
        if isinstance(samples, pd.DataFrame):
            if path.suffix.lower() != ".csv":
                raise WonderlandError(f"Rows are written to a .csv file, not {path.name}.")
            write_text(path, samples.to_csv(index=False))
        elif path.suffix.lower() == ".png":
            write_bytes(path, png(sheet(samples)))
        elif path.suffix.lower() == ".npy":
            buffer = io.BytesIO()
            np.save(buffer, samples, allow_pickle=False)
            write_bytes(path, buffer.getvalue())
        elif not path.suffix:
            path.mkdir(parents=True, exist_ok=True)
            for place, image in enumerate(samples):
                write_bytes(path / f"{place:05d}.png", png(image))
        else:
            raise WonderlandError(f"Images are written to a .png or .npy file or a folder, not {path.name}.")

    @property
    def usual_name(self) -> str:
        """A file name where none is given."""
        return "samples.csv" if hasattr(self.run.encoder, "frame") else "samples.png"


def sheet(images: Sequence[np.ndarray] | np.ndarray, columns: int | None = None) -> np.ndarray:
    """Images of one size side by side, in a grid that is about square; 8 columns at least where there are so many."""
    count = len(images)
    columns = columns or min(count, max(8, round(count**0.5)))
    rows = -(-count // columns)
    height, width = images[0].shape[:2]
    canvas = np.full((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, *images[0].shape[2:]), 255, np.uint8)
    for place, image in enumerate(images):
        top, left = place // columns * (height + GAP), place % columns * (width + GAP)
        canvas[top : top + height, left : left + width] = image
    return canvas


def png(image: np.ndarray) -> bytes:
    """The bytes of a PNG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()
