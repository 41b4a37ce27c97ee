"""Digits on a canvas: AP of the default detector and of TinySSD from a COCO file, mean IoU of the default from a folder of masks."""

import sys
import tempfile
from pathlib import Path

import wonderland
from examples.lab import Claim, above, run, table
from examples.scattered_digits.scenes import write

STATED = {"default": 0.95, "RetinaNet": 0.9, "TinySSD": 0.9, "FasterRCNN": 0.9}
MASKS = {"default": 0.9}


def lab(
    images: int = 600, side: int = 64, models: str = "default,TinySSD", masks: str = "default"
) -> tuple[list[Claim], str, dict[str, str]]:
    """Fit each model on a folder of files; `models` and `masks` are names with commas, or nothing for none."""
    claims, rows = [], []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        for task, chosen, stated in (("coco", models, STATED), ("masks", masks, MASKS)):
            folder = write(home / task, task, images, side)
            for model in filter(None, chosen.split(",")):
                named = {} if model == "default" else {"model": model}
                result = wonderland.fit(folder, out=home / f"{task}-{model}", progress=True, **named)
                key, words = ("ap50", "average precision at IoU 0.5") if task == "coco" else ("mean_iou", "mean IoU")
                rows.append((model, words, f"{result.metrics[key]:.4f}"))
                claims.append(above(f"{words}, {model}", result.metrics[key], stated.get(model, 0.9)))
    return claims, table(("model", "measure", "test"), rows), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    options = {
        "--images": {"type": int, "default": 600},
        "--side": {"type": int, "default": 64},
        "--models": {"default": "default,TinySSD"},
        "--masks": {"default": "default", "help": "networks for masks: default, UNet, FCN"},
    }
    return run("scattered_digits", __doc__, lab, given, options)


if __name__ == "__main__":
    sys.exit(main())
