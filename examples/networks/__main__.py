"""VGG, NiN, GoogLeNet, ResNet-18 and DenseNet as D2L trains them, on Fashion-MNIST at 32 x 32 pixels, in one table.

D2L enlarges images to 96 or 224 pixels; here they are 32 x 32, stems do not halve them, and widths are a quarter of the book's where the
network would be slow otherwise. The rates are those of the book. Batches have 32 images in place of 128, so that 8,000 images and four
epochs make 1,000 steps; `--images 60000 --epochs 10 --batch 128` are the settings of the book.
"""

import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from examples.fashion.__main__ import xavier
from examples.fashion.training import load, train
from examples.lab import DATA, Claim, above, run, table
from wonderland import models, understand

RATES = {"VGG-11": 0.01, "NiN": 0.05, "GoogLeNet": 0.01, "ResNet-18": 0.01, "DenseNet": 0.1}
# What the networks with batch norm reach at least at the settings of the book (`--images 60000 --epochs 10 --batch 128`); the others may
# need all of its steps to leave chance, so they are in the table without a stated number.
STATED = {"ResNet-18": 0.85, "DenseNet": 0.85}


def build(name: str) -> nn.Module:
    """One of the networks, in a size for 32 x 32 pixels."""
    form = {"classes": 10, "channels": 1}
    quarter = {"dims": [16, 32, 64, 128], "stem": "small"}
    if name == "VGG-11":
        return models.VGG(depths=[1, 1, 2, 2, 2], dims=[16, 32, 64, 128, 128], grid=1, hidden=512, **form)
    if name == "NiN":
        return models.NiN(dims=[24, 64, 96], stem="small", **form)
    if name == "GoogLeNet":
        return models.GoogLeNet.d2l()
    if name == "ResNet-18":
        return models.ResNet.resnet18(**quarter, **form)
    return models.DenseNet.d2l(growth=8, dim=16, stem="small")


def lab(
    data: str | None = None, only: str = ",".join(RATES), epochs: int = 4, images: int = 8_000, batch: int = 32
) -> tuple[list[Claim], str, dict[str, str]]:
    """Train each network and compare parameters, cost, accuracy and time."""
    x, y, test_x, test_y = load(data)
    enlarged = [F.interpolate(part, 32, mode="bilinear", align_corners=False) for part in (x[:images], test_x)]
    claims, rows = [], []
    for name in filter(None, only.split(",")):
        torch.manual_seed(0)
        net, began = xavier(build(name)), time.process_time()
        cost = understand.cost(net, enlarged[0][:2])
        parts = (enlarged[0], y[:images], enlarged[1], test_y)
        curve = train(net, parts, epochs=epochs, batch=batch, lr=RATES[name], most_shown=2000, show=name)
        seconds = time.process_time() - began
        rows.append((name, f"{cost.parameters:,}", f"{cost.flops / 1e6:.1f}", f"{curve[-1]:.4f}", f"{seconds:.0f}"))
        if name in STATED:
            claims.append(above(f"test accuracy, {name}", curve[-1], STATED[name]))
    return claims, table(("network", "parameters", "million FLOPs", "test accuracy", "CPU seconds"), rows), {}


OPTIONS = DATA | {
    "--only": {"default": ",".join(RATES), "help": "networks, with commas"},
    "--epochs": {"type": int, "default": 4},
    "--images": {"type": int, "default": 8_000, "help": "training images"},
    "--batch": {"type": int, "default": 32},
}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("networks", __doc__, lab, given, OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
