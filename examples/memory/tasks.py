"""Made-up tasks of memory: the adding problem, copying, and digits as a sequence of 64 pixels."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from wonderland.core import Spec
from wonderland.models import TemporalBlock
from wonderland.nn import Stack

ALPHABET, COPIED = 8, 10  # letters that are copied, and how many


def tcn(dim: int, depth: int, width: int) -> list[Spec]:
    """Temporal blocks whose dilations double."""
    return [TemporalBlock.spec(width=width, dilation=2**i) for i in range(depth)]


class Reader(nn.Module):
    """A linear map, a stack of mixers, and a linear map of each step or of the last."""

    def __init__(self, inputs: int, outputs: int, dim: int, mixers: list[Spec] | Spec, depth: int, *, last: bool):
        super().__init__()
        self.first, self.out, self.last = nn.Linear(inputs, dim), nn.Linear(dim, outputs), last
        self.stack = Stack(dim, depth, mixers)

    def forward(self, x: Tensor) -> Tensor:
        h = self.stack(self.first(x))
        return self.out(h[:, -1] if self.last else h)


def fit(model: nn.Module, batch_of, loss_of, steps: int, lr: float) -> None:
    """Adam on batches that are drawn anew for each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps + 1)
    for step in range(steps):
        x, y = batch_of(step)
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def adding(steps: int, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Numbers in 0..1 and two marks; the answer is the sum of the marked ones. Always to say 1 has an error of 1/6."""
    draw = torch.Generator().manual_seed(seed)
    numbers, marks = torch.rand(count, steps, generator=draw), torch.zeros(count, steps)
    places = torch.stack(
        [
            torch.randint(0, steps // 2, (count,), generator=draw),
            torch.randint(steps // 2, steps, (count,), generator=draw),
        ],
        1,
    )
    marks.scatter_(1, places, 1.0)
    return torch.stack([numbers, marks], -1), (numbers * marks).sum(1)


def adding_error(steps: int = 50, updates: int = 1200, seed: int = 0) -> float:
    """Squared error of a temporal convolutional network on new sequences."""
    torch.manual_seed(seed)
    model = Reader(2, 1, 24, tcn(24, 4, 6), 4, last=True)

    def squared(out: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(out[:, 0], y)

    fit(model, lambda step: adding(steps, 32, step + 1), squared, updates, 4e-3)
    x, y = adding(steps, 1000, 0)
    with torch.no_grad():
        return float(squared(model(x), y))


def copying(gap: int, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Ten letters, a gap of blanks, a signal, and room in which the letters are to be said again."""
    draw = torch.Generator().manual_seed(seed)
    letters = torch.randint(1, ALPHABET + 1, (count, COPIED), generator=draw)
    x, y = (
        torch.zeros(count, gap + 2 * COPIED, dtype=torch.int64),
        torch.zeros(count, gap + 2 * COPIED, dtype=torch.int64),
    )
    x[:, :COPIED], y[:, -COPIED:] = letters, letters
    x[:, -COPIED - 1] = ALPHABET + 1
    return F.one_hot(x, ALPHABET + 2).float(), y


def copying_loss(gap: int = 100, updates: int = 700, seed: int = 0) -> float:
    """Nats for each step of a temporal convolutional network on new sequences."""
    torch.manual_seed(seed)
    model = Reader(ALPHABET + 2, ALPHABET + 2, 16, tcn(16, 6, 8), 6, last=False)

    def nats(out: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(out.flatten(0, 1), y.flatten())

    fit(model, lambda step: copying(gap, 32, step + 1), nats, updates, 4e-3)
    x, y = copying(gap, 500, 0)
    with torch.no_grad():
        return float(nats(model(x), y))


def digits_accuracy(updates: int = 900, seed: int = 0) -> float:
    """Digits of 8 x 8 pixels, read pixel by pixel by a temporal convolutional network: accuracy on the last 400."""
    torch.manual_seed(seed)
    x, y = (torch.as_tensor(array) for array in load_digits(return_X_y=True))
    x = (x.float() / 16)[..., None]
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    train, test = order[:-400], order[-400:]
    model = Reader(1, 10, 32, tcn(32, 5, 5), 5, last=True)

    def batch(step: int) -> tuple[Tensor, Tensor]:
        rows = train[torch.randint(0, len(train), (64,), generator=torch.Generator().manual_seed(step))]
        return x[rows], y[rows]

    fit(model, batch, F.cross_entropy, updates, 4e-3)
    with torch.no_grad():
        return float((model(x[test]).argmax(-1) == y[test]).float().mean())
