"""Draw digits: flow matching, diffusion and DCGAN on the 8 x 8 digits of scikit-learn.

A random forest learns on half of the rows to tell samples from data, a classifier that was fitted to the data names the class of
samples that were asked of one, and samples without a label show how classes are spread.
"""

import base64
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import wonderland
from examples.lab import Claim, above, below, run, table
from wonderland.tasks.abilities.drawing import png, sheet

STEPS = {"FlowMatching": 5000, "Diffusion": 5000, "DCGAN": 3000}


def told_apart(real: np.ndarray, fake: np.ndarray, seed: int = 0) -> float:
    """The accuracy of a random forest that learns on half of real and made rows to tell them apart in the other half."""
    from sklearn.ensemble import RandomForestClassifier

    x = np.concatenate([real, fake])
    y = np.r_[np.zeros(len(real)), np.ones(len(fake))]
    order = np.random.default_rng(seed).permutation(len(x))
    half = len(x) // 2
    forest = RandomForestClassifier(300, random_state=seed).fit(x[order[:half]], y[order[:half]])
    return float(forest.score(x[order[half:]], y[order[half:]]))


def drawn(fitted: wonderland.Run, count: int, labelled: bool) -> np.ndarray:
    """Samples as bytes (count, 8, 8), with classes in turns or without a label."""
    if labelled:
        return fitted.ability("generate")(count, seed=1)  # pyright: ignore[reportReturnType]
    model: Any = fitted.model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        encoder: Any = fitted.encoder
        return encoder.decode(model.eval().sample(count))


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    from sklearn.datasets import load_digits

    real = np.round(load_digits().images * 255 / 16).reshape(-1, 64)
    classes = np.arange(1000) % 10
    rows, claims, pictures = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        known = wonderland.fit("digits", out=Path(folder) / "classifier")
        for name, steps in STEPS.items():
            fitted = wonderland.fit("digits", task="generate", model=name, steps=steps, out=Path(folder) / name)
            asked, free = drawn(fitted, 1000, True), drawn(fitted, len(real), False)
            recognised = float((known.predict(asked)["prediction"].astype(int).to_numpy() == classes).mean())
            counts = np.bincount(known.predict(free)["prediction"].astype(int), minlength=10)
            turns = fitted.ability("generate")(len(real), seed=2).reshape(-1, 64)
            apart = told_apart(real, turns.astype(np.float64))
            rows.append((name, f"{apart:.3f}", f"{recognised:.3f}", f"{counts.max() / max(1, counts.min()):.2f}"))
            if name == "FlowMatching":
                claims.append(below("a forest tells flow-matching samples from data", apart, 0.75))
            if name == "Diffusion":
                claims.append(above("diffusion samples that are recognised", recognised, 0.95))
                claims.append(
                    below(
                        "the most frequent class by the rarest, drawn without labels",
                        counts.max() / max(1, counts.min()),
                        2.0,
                    )
                )
            pictures[name] = picture(asked[:50])
    return claims, table(("model", "told apart", "recognised", "spread"), rows), pictures


def picture(images: np.ndarray) -> str:
    """A sheet of images, ten in a line, each pixel four times as large, as an SVG."""
    canvas = sheet(images.repeat(4, 1).repeat(4, 2), columns=10)
    height, width = canvas.shape
    link = base64.b64encode(png(canvas)).decode()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<image href="data:image/png;base64,{link}" width="{width}" height="{height}"/></svg>'
    )


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("generated_digits", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
