"""Views of digits that are cut and rotated at random, read together: by attention, by Deep Sets, by their mean alone (Alice 10, exercise 1)."""

import sys

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor

from examples.lab import Claim, above, lines, run, table
from wonderland import models, nn
from wonderland.data import PhotoAugment, several_views

MIXERS = {"attention": None, "deep sets": nn.DeepSets.spec(), "mean": False}
VIEWS = PhotoAugment(crop=0.7, rotate=25, shift=0.15, erase=0.4)
TESTED = (1, 2, 4, 8, 16)


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Digits of 16 x 16 pixels: 1,297 to learn from, 500 for the test."""
    bunch = load_digits()
    x = F.interpolate(torch.from_numpy(bunch.images)[:, None].float() * 15.9, 16, mode="bilinear")
    y = torch.from_numpy(bunch.target).long()
    return x[:-500], y[:-500], x[-500:], y[-500:]


def fitted(mixer: object, x: Tensor, y: Tensor, *, steps: int, seed: int = 0) -> models.MultiView:
    """A network that was shown 2 to 6 views of each digit."""
    torch.manual_seed(seed)
    trunk = models.ConvNet.spec(channels=1, classes=1, height=16, width=16, dim=16, depth=2)
    net = models.MultiView(trunk, 32, 10, mixer=mixer)  # pyright: ignore[reportArgumentType]
    optimizer = torch.optim.AdamW(net.parameters(), 4e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    draw = torch.Generator().manual_seed(seed)
    for step in range(steps):
        rows = torch.randint(len(x), (64,), generator=draw)
        views = several_views(x[rows], VIEWS, 2 + step % 5, seed=seed, epoch=step, rows=rows)
        optimizer.zero_grad()
        F.cross_entropy(net(views), y[rows]).backward()
        optimizer.step()
        schedule.step()
    return net.eval()


def accuracy(net: models.MultiView, x: Tensor, y: Tensor, views: int) -> float:
    """The share of digits that are named rightly from so many views."""
    with torch.no_grad():
        return (net(several_views(x, VIEWS, views, seed=1)).argmax(1) == y).float().mean().item()


def lab(steps: int = 400) -> tuple[list[Claim], str, dict[str, str]]:
    """Train each way to read views together, and count right answers by the number of views."""
    x, y, test_x, test_y = digits()
    found: dict[str, list[float]] = {}
    unmoved = 0.0
    for name, mixer in MIXERS.items():
        net = fitted(mixer, x, y, steps=steps)
        found[name] = [accuracy(net, test_x, test_y, count) for count in TESTED]
        views = several_views(test_x[:50], VIEWS, 6)
        with torch.no_grad():
            unmoved = max(unmoved, (net(views) - net(views.flip(1))).abs().max().item())
    rows = [(name, *(f"{value:.3f}" for value in values)) for name, values in found.items()]
    claims = [
        above("accuracy of attention, 16 views", found["attention"][-1], 0.93),
        above("gain of attention by 16 views over 1", found["attention"][-1] - found["attention"][0], 0.15),
        above("digits of agreement when the views change places", -torch.tensor(unmoved + 1e-9).log10().item(), 4),
    ]
    drawn = lines(
        {name: list(zip(map(float, TESTED), values, strict=True)) for name, values in found.items()},
        title="Digits by the number of views",
        x_label="views",
        y_label="accuracy",
    )
    return claims, table(("views are read by", *(f"{count} views" for count in TESTED)), rows), {"views": drawn}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("multi_view", __doc__, lab, given, {"--steps": {"type": int, "default": 400}})


if __name__ == "__main__":
    sys.exit(main())
