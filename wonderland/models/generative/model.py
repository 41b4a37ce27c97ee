"""What all generative models share: an objective of each row, samples, and a score of how unusual a row is."""

import math
from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.arguments import Checked

SCORE_DRAWS = 16
LARGEST = 1 << 22  # numbers in one sample


class GenerativeModel(Checked, nn.Module):
    """A model of a distribution: `objective` (b,) is what training makes small, `sample` draws new rows.

    Rows have the shape `shape`: (features,), or (channels, height, width) with pixels in -1..1. With `classes`, labels are codes
    from 1, and 0 stands for no label; labels are hidden from a share `hide` of the rows of a step, so that samples can be guided.
    """

    guidance: float = 1.0
    hide: float = 0.0

    def __init__(self, shape: Sequence[int], classes: int = 0):
        super().__init__()
        sizes = [int(size) for size in shape]
        if len(sizes) not in (1, 3) or min(sizes) < 1 or math.prod(sizes) > LARGEST:
            raise WonderlandError(
                f"{type(self).__name__} takes rows of (features,) or images of (channels, height, width), not {list(shape)}."
            )
        if classes < 0:
            raise WonderlandError(f"{type(self).__name__} has 0 or more classes, not {classes}.")
        self.shape, self.classes = tuple(sizes), classes

    @property
    def device(self) -> torch.device:
        """Where the weights are, and where samples are drawn."""
        return next((parameter.device for parameter in self.parameters()), torch.get_default_device())

    def draw(self, count: int) -> tuple[Tensor, ...]:
        """What is random in the losses of so many rows, as tensors of that length."""
        return ()

    @abstractmethod
    def losses(self, x: Tensor, labels: Tensor | None, *drawn: Tensor) -> Tensor:
        """The loss of each row (b,), given what was drawn."""

    @abstractmethod
    def sample(self, count: int, labels: Tensor | None = None, *, guidance: float | None = None) -> Tensor:
        """New rows: (count, *shape). `labels` (count,) are codes from 1; `guidance` above 1 makes samples more typical of them."""

    def objective(self, x: Tensor, labels: Tensor | None = None) -> Tensor:
        """What training makes small, of each row: (b,)."""
        if labels is not None and self.hide:
            labels = torch.where(torch.rand(len(x), device=x.device) < self.hide, 0, labels)
        return self.losses(x, labels, *self.draw(len(x)))

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Tensor:
        return self.objective(x, labels)

    @torch.no_grad()
    def score(self, x: Tensor, labels: Tensor | None = None) -> Tensor:
        """How unusual each row is, larger for stranger ones: the mean loss over draws that are the same for every row (b,)."""
        total = torch.zeros(len(x), device=x.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            count = SCORE_DRAWS if self.draw(1) else 1
            for _ in range(count):
                drawn = (each.expand(len(x), *each.shape[1:]) for each in self.draw(1))
                total += self.losses(x, labels, *drawn)
        return total / count

    def held_out(self, x: Tensor, labels: Tensor | None = None) -> float:
        """What training should make small, on rows that it does not see."""
        return float(self.score(x, labels).mean())
