"""Networks of images beside transformers' in one process: a training step, prediction, peak memory; suppression of boxes; the loader.

    python -m bench.vision --threads 1
    python -m bench.vision --only predict,nms

Outputs and, for training, gradients are compared first.
"""

import argparse
import functools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor

from bench.race import HEADER, forward, race, setting
from wonderland import checkpoints, models, optim
from wonderland.core import uniform
from wonderland.data import CropAugment, PhotoAugment
from wonderland.ops.vision import nms

RESNET = {
    "embedding_size": 64,
    "hidden_sizes": [64, 128, 256, 512],
    "depths": [2, 2, 2, 2],
    "layer_type": "basic",
    "num_labels": 10,
}
VIT = {
    "hidden_size": 192,
    "num_hidden_layers": 6,
    "num_attention_heads": 3,
    "intermediate_size": 768,
    "image_size": 64,
    "patch_size": 8,
    "num_labels": 10,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def pair(family: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """The network of transformers and ours with its weights."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**options)
    theirs = getattr(transformers, f"{family}ForImageClassification")(config)
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = checkpoints.load_pretrained(folder)
    return ours, theirs


def pixels(count: int) -> Tensor:
    return torch.randn(count, 3, 64, 64, generator=torch.Generator().manual_seed(1))


def step(net: Any, scores: Callable[[], Tensor], y: Tensor, optimizer: Any) -> Callable[[], None]:
    """One step of training."""
    net.train()

    def run() -> None:
        optimizer.zero_grad()
        F.cross_entropy(scores(), y).backward()
        optimizer.step()

    return run


def train(family: str, options: dict[str, Any], label: str, rounds: int) -> None:
    """A step at batch 32 with AdamW: ours with ours, theirs with torch's."""
    ours, theirs = pair(family, options)
    ours.train(), theirs.train()
    x, y = pixels(32), torch.arange(32) % 10
    with torch.no_grad():
        gap = (ours(x) - theirs(pixel_values=x).logits).abs().max().item()
    F.cross_entropy(ours(x), y).backward()
    F.cross_entropy(theirs(pixel_values=x).logits, y).backward()
    norms = [sum(p.grad.double().square().sum() for p in net.parameters()).item() ** 0.5 for net in (ours, theirs)]
    assert gap < 1e-4, gap
    assert abs(norms[0] / norms[1] - 1) < 1e-4, norms
    race(
        f"{label}, training step, batch 32",
        step(ours, lambda: ours(x), y, optim.FusedAdamW(ours.parameters(), lr=1e-4)),
        step(theirs, lambda: theirs(pixel_values=x).logits, y, torch.optim.AdamW(theirs.parameters(), lr=1e-4)),
        rounds,
    )
    for name, own in (("torch's AdamW for both", torch.optim.AdamW), ("torch's SGD for both", torch.optim.SGD)):
        race(
            f"{label}, {name}",
            step(ours, lambda: ours(x), y, own(ours.parameters(), lr=1e-4)),
            step(theirs, lambda: theirs(pixel_values=x).logits, y, own(theirs.parameters(), lr=1e-4)),
            rounds,
        )


def predict(rounds: int) -> None:
    """ResNet-18 in use, at batch 1 and 64."""
    ours, theirs = pair("ResNet", RESNET)
    ours.eval(), theirs.eval()
    for batch in (1, 64):
        x = pixels(batch)
        with torch.no_grad():
            gap = (ours(x) - theirs(pixel_values=x).logits).abs().max().item()
        assert gap < 1e-4, gap
        calls = forward(functools.partial(ours, x)), forward(functools.partial(theirs, pixel_values=x))
        race(f"ResNet-18, prediction, batch {batch}", *calls, rounds if batch > 1 else 5 * rounds)


MEMORY = """
import gc, sys, torch
from pathlib import Path
torch.set_num_threads(1)
from bench.vision import RESNET, pair, pixels, step
ours, theirs = pair("ResNet", RESNET)
x, which, what = pixels(64), sys.argv[1], sys.argv[2]
net = ours if which == "ours" else theirs
del ours, theirs
gc.collect()
scores = (lambda: net(x)) if which == "ours" else (lambda: net(pixel_values=x).logits)
if what == "training":
    run = step(net, scores, torch.arange(64) % 10, torch.optim.SGD(net.parameters(), lr=1e-4))
else:
    net.eval()
    run = torch.no_grad()(scores)
status = lambda key: int(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key)).split()[1])
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
for _ in range(3):
    run()
print((status("VmHWM") - before) / 1024)
"""


def memory() -> None:
    """What training and prediction add to the resident memory at its peak, each in a process of its own."""
    for what in ("training", "prediction"):
        found = []
        for which in ("ours", "theirs"):
            words = [sys.executable, "-W", "ignore", "-c", MEMORY, which, what]
            done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
            found.append(float(done.stdout.split()[-1]))
        print(f"{f'ResNet-18, peak of {what}, batch 64':44}{found[0]:8.0f} MB{found[1]:11.0f} MB", flush=True)


def suppression(rounds: int) -> None:
    """10,000 random boxes, a tenth of them beside another one."""
    draw = np.random.default_rng(0)
    corners = draw.uniform(0, 2000, (10_000, 2))
    corners[:1000] = corners[1000:2000] + draw.uniform(-4, 4, (1000, 2))
    boxes = torch.from_numpy(np.concatenate([corners, corners + draw.uniform(10, 30, (10_000, 2))], 1)).float()
    scores, times = torch.from_numpy(draw.random(10_000)).float(), []
    for _ in range(rounds):
        began = time.process_time()
        kept = nms(boxes, scores)
        times.append(time.process_time() - began)
    print(f"{'NMS of 10,000 boxes':44}{1e3 * min(times):8.1f} ms   ({len(kept):,} stay)", flush=True)


def loader(rounds: int) -> None:
    """What augmentation of 500 images of 32 x 32 takes, as a share of a training step of the default network."""
    x, y = torch.randint(0, 256, (500, 3, 32, 32), dtype=torch.uint8), torch.arange(500) % 10
    net = models.WhitenedConvNet(10, mean=[0.5] * 3, std=[0.25] * 3)
    own = optim.FilterMuon(optim.groups(net, weight_decay=0.01), lr=0.1)
    run, rows = step(net, lambda: net(x), y, own), np.arange(500)
    choices = {
        "CropAugment, the default": CropAugment(pixels=2, flip="alternating"),
        "PhotoAugment(shift, flip)": PhotoAugment(shift=0.1, flip=0.5),
    }
    best = min(clocked(run) for _ in range(max(3, rounds // 3)))
    for name, augment in choices.items():
        numbers = getattr(augment, "numbers", None)

        def change(augment: Any = augment, numbers: Any = numbers) -> None:
            augment(x, uniform(0, 0, rows, augment.draws) if numbers is None else numbers(0, 0, rows))

        share = min(clocked(change) for _ in range(rounds)) / best
        print(f"{f'loader, {name}':44}{100 * share:8.1f} % of a step of {1e3 * best:.0f} ms", flush=True)


def clocked(call: Callable[[], Any]) -> float:
    """CPU seconds of a call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="train,vit,predict,memory,nms,loader")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=12)
    given = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    print(setting(given.threads, True, given.rounds))
    print(HEADER)
    races: dict[str, Callable[[], None]] = {
        "train": lambda: train("ResNet", RESNET, "ResNet-18, 64 x 64", given.rounds),
        "vit": lambda: train("ViT", VIT, "ViT, 6 blocks of 192, 64 tokens", given.rounds),
        "predict": lambda: predict(given.rounds),
        "memory": memory,
        "nms": lambda: suppression(given.rounds),
        "loader": lambda: loader(given.rounds),
    }
    for name in given.only.split(","):
        races[name]()


if __name__ == "__main__":
    main()
