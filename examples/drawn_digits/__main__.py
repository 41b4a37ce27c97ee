"""Digits drawn by a Decoder, pixel by pixel or patch by patch, named by a classifier that never saw it (Alice 11.2)."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from torch import Tensor

from examples.lab import Claim, above, run, table
from wonderland.data import ImageTokens
from wonderland.generation import sample
from wonderland.models import Decoder
from wonderland.nn import Learned

EACH = 20  # digits that are drawn of each class


def tokenizers(images: Tensor) -> dict[str, ImageTokens]:
    """Three ways to write a digit of 8 x 8 pixels down as tokens."""
    return {
        "pixels by rows": ImageTokens.pixels(6, height=8, width=8),
        "pixels by columns": ImageTokens.pixels(6, height=8, width=8, order="columns"),
        "patches of 2 x 2": ImageTokens.fitted(images, 96, patch=2),
    }


def fitted(tokens: ImageTokens, images: Tensor, y: Tensor, *, steps: int) -> tuple[Decoder, float]:
    """A decoder that continues a class with the tokens of a digit, and its last loss in bits for each pixel."""
    torch.manual_seed(0)
    model = Decoder(tokens.vocab + 10, 64, 3, position=Learned.spec(length=tokens.length + 1), tie=False)
    rows = torch.cat([tokens.vocab + y[:, None], tokens.encode(images)], 1)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps)
    draw, losses = torch.Generator().manual_seed(0), []
    for _ in range(steps):
        batch = rows[torch.randint(len(rows), (64,), generator=draw)]
        loss = F.cross_entropy(model(batch[:, :-1]).mT, batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return model.eval(), float(np.mean(losses[-20:])) * tokens.length / 64 / np.log(2)


def drawn(model: Decoder, tokens: ImageTokens, each: int = EACH) -> tuple[Tensor, Tensor]:
    """Digits of each class, and their classes."""
    classes = torch.arange(10).repeat_interleave(each)
    codes = sample(model, tokens.vocab + classes[:, None], tokens.length, generator=torch.Generator().manual_seed(0))
    return tokens.decode(codes.clamp_max(tokens.vocab - 1)), classes


def sheet(images: Tensor) -> str:
    """The digits as an SVG, one class a row."""
    squares = []
    for index, image in enumerate(images[:, 0].round().int().tolist()):
        top, left = 40 * (index // EACH), 36 * (index % EACH)
        squares += [
            f'<rect x="{left + 4 * x}" y="{top + 4 * y}" width="4.2" height="4.2" fill="rgb({value},{value},{value})"/>'
            for y, line in enumerate(image)
            for x, value in enumerate(line)
        ]
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {36 * EACH} 400">{"".join(squares)}</svg>'


def lab(steps: int = 700) -> tuple[list[Claim], str, dict[str, str]]:
    """Learn to draw in three ways; a support vector machine trained on real digits names what was drawn."""
    bunch = load_digits()
    images, y = torch.from_numpy(bunch.images)[:, None].float() * 255 / 16, torch.from_numpy(bunch.target).long()
    judge = SVC(gamma=0.001).fit(bunch.images[:-500].reshape(-1, 64), bunch.target[:-500])
    rows, claims, pictures = [], [], {}
    for name, tokens in tokenizers(images).items():
        model, bits = fitted(tokens, images, y, steps=steps)
        made, classes = drawn(model, tokens)
        flat = made.flatten(1) * 16 / 255
        right = float((judge.predict(flat.numpy()) == classes.numpy()).mean())
        again = tokens.decode(tokens.encode(images)).flatten(1) * 16 / 255
        nearest = torch.cdist(flat, again).amin(1)
        copies = float((nearest < 1e-3).float().mean())
        rows.append((name, tokens.length, tokens.vocab, f"{bits:.3f}", f"{right:.3f}", f"{copies:.3f}"))
        claims.append(above(f"share named rightly, {name}", right, 0.8))
        pictures[name.replace(" ", "_")] = sheet(made)
    head = ("tokens", "an image", "kinds", "bits a pixel", "named rightly", "copies of training images")
    return claims, table(head, rows), pictures


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("drawn_digits", __doc__, lab, given, {"--steps": {"type": int, "default": 700}})


if __name__ == "__main__":
    sys.exit(main())
