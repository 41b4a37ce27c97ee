"""Design spaces AnyNet A to E: distributions of the errors of 60 networks each, at a small budget.

python -m bench.design_spaces MNIST_FOLDER [--models 60] [--spaces ABCDE] [--out design_spaces.csv]

1,000 of MNIST's test images, halved to 14 x 14, to learn from and 1,000 to measure on; three stages of 1 to 4 blocks, 0.3 to 0.6 million operations
an image; 4 epochs of AdamW at one rate. Networks that are in the
file already are not trained again. Then: the median error of each space, and each space beside the one before it.
"""

import argparse
import csv
import gzip
from pathlib import Path

import numpy as np
import torch
from torch import nn

from wonderland.core import mix
from wonderland.models import AnyNet
from wonderland.search import anynet_design, compare_spaces, distribution, distribution_band

SIZE, STEM, STAGES, DEPTHS, ROWS, EPOCHS, BATCH, RATE = 14, 8, 3, (1, 4), 1000, 4, 50, 1e-2
LEAST, MOST = 0.3e6, 0.6e6


def images(folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    with gzip.open(folder / "mnist-t10k-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(folder / "mnist-t10k-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return nn.functional.avg_pool2d(torch.tensor(pixels / 255.0, dtype=torch.float32), 2), torch.tensor(
        labels.astype(np.int64)
    )


def error(space: str, number: int, data: tuple[torch.Tensor, torch.Tensor]) -> float:
    """The error on held-out images of a network after its short training."""
    design = anynet_design(
        space,
        number,
        stages=STAGES,
        depths=DEPTHS,
        widest=64,
        accept=lambda d: LEAST <= d.operations(size=SIZE, stem=STEM, channels=1) <= MOST,
    )
    torch.manual_seed(mix(1, number))
    net = AnyNet(10, 1, depths=design.depths, dims=design.dims, group_widths=design.group_widths,
                 bottlenecks=design.bottlenecks, dim=STEM)  # fmt: skip
    x, y = data
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-2)
    steps, step = EPOCHS * ROWS // BATCH, 0
    for epoch in range(EPOCHS):
        order = np.random.Generator(np.random.Philox(mix(number, epoch))).permutation(ROWS)
        for start in range(0, ROWS, BATCH):
            rows = order[start : start + BATCH]
            for group in optimizer.param_groups:
                group["lr"] = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
    net.eval()
    with torch.no_grad():
        return float((net(x[ROWS : 2 * ROWS]).argmax(1) != y[ROWS : 2 * ROWS]).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--spaces", default="ABCDE")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("design_spaces.csv"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    known: dict[tuple[str, int], float] = {}
    if args.out.exists():
        with args.out.open(newline="") as file:
            known = {(row["space"], int(row["number"])): float(row["error"]) for row in csv.DictReader(file)}
    data = images(args.folder)
    for number in range(args.models):
        for space in args.spaces:
            if (space, number) not in known:
                known[space, number] = error(space, number, data)
                with args.out.open("w", newline="") as file:
                    writer = csv.writer(file)
                    writer.writerow(["space", "number", "error"])
                    writer.writerows([*key, value] for key, value in sorted(known.items()))
    errors = {s: [known[s, n] for n in range(args.models)] for s in args.spaces}
    places = np.quantile([e for values in errors.values() for e in values], [0.1, 0.25, 0.5, 0.75])
    print("share of networks with at most this error, and its 90 % band")
    print(f"{'':8}{'median':>8}" + "".join(f"{place:>20.3f}" for place in places))
    for space, values in errors.items():
        low, high = distribution_band(values, places.tolist())
        cells = [
            f"{f:.2f} ({a:.2f}-{b:.2f})"
            for f, a, b in zip(distribution(values, places.tolist()), low, high, strict=True)
        ]
        print(f"{space:8}{np.median(values):8.3f}" + "".join(f"{cell:>20}" for cell in cells))
    for before, space in zip(args.spaces, args.spaces[1:], strict=False):
        found = compare_spaces(errors[space], errors[before])
        print(
            f"a network of {space} beats one of {before} in {found.share:.0%} ({found.interval[0]:.0%} to {found.interval[1]:.0%}): {found.verdict}"
        )


if __name__ == "__main__":
    main()
