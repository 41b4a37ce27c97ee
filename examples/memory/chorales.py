"""Bach's chorales, chord by chord: the next chord from all chords before it, in nats for each chord."""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from scipy.io import loadmat
from torch import Tensor, nn

from wonderland.models import TemporalBlock
from wonderland.nn import Stack

NOTES, REACH = 88, 5  # REACH: semitones that training chorales are transposed by, at most


class ChordModel(nn.Module):
    """Logits of the 88 notes of the next chord: temporal blocks whose dilations double, over chords."""

    def __init__(self, dim: int = 150, depth: int = 4, width: int = 5, dropout: float = 0.25):
        super().__init__()
        self.first, self.last = nn.Linear(NOTES, dim), nn.Linear(dim, NOTES)
        self.stack = Stack(
            dim, depth, [TemporalBlock.spec(width=width, dilation=2**i, dropout=dropout) for i in range(depth)]
        )

    def forward(self, chords: Tensor, mask: Tensor) -> Tensor:
        return self.last(self.stack(self.first(chords), mask))


def read(path: Path) -> dict[str, list[Tensor]]:
    """The chorales of each part, each (chords, 88) of zeros and ones."""
    file = loadmat(path)
    return {
        part: [torch.from_numpy(np.array(each, np.float32)) for each in file[f"{part}data"][0]]
        for part in ("train", "valid", "test")
    }


def batch_of(chorales: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Chords, the chords after them, and which are real."""
    longest = max(map(len, chorales)) - 1
    x, y = torch.zeros(len(chorales), longest, NOTES), torch.zeros(len(chorales), longest, NOTES)
    mask = torch.zeros(len(chorales), longest, dtype=torch.bool)
    for row, chords in enumerate(chorales):
        x[row, : len(chords) - 1], y[row, : len(chords) - 1], mask[row, : len(chords) - 1] = (
            chords[:-1],
            chords[1:],
            True,
        )
    return x, y, mask


def nats(model: nn.Module, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """The negative log-likelihood of each chord, the mean over all."""
    return F.binary_cross_entropy_with_logits(model(x, mask), y, reduction="none").sum(-1)[mask].mean()


def transposed(chords: Tensor, semitones: int) -> Tensor:
    """A chorale in another key; notes do not leave the keyboard for so few semitones."""
    return chords.roll(semitones, 1)


def train(parts: dict[str, list[Tensor]], epochs: int = 150, seed: int = 0, size: int = 4) -> float:
    """The test loss of the weights that are best on the validation chorales."""
    torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(seed)
    model = ChordModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    steps = epochs * (len(parts["train"]) // size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps + 1)
    held = {part: batch_of(parts[part]) for part in ("valid", "test")}
    best, test = float("inf"), float("inf")
    for epoch in range(epochs):
        model.train()
        for rows in torch.randperm(len(parts["train"]), generator=draw).split(size)[: len(parts["train"]) // size]:
            moves = torch.randint(-REACH, REACH + 1, (len(rows),), generator=draw)
            chorales = [
                transposed(parts["train"][row], int(move)) for row, move in zip(rows.tolist(), moves, strict=True)
            ]
            optimizer.zero_grad()
            loss = nats(model, *batch_of(chorales))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
        if epoch % 4 == 3:
            model.eval()
            with torch.no_grad():
                valid = float(nats(model, *held["valid"]))
                if valid < best:
                    best, test = valid, float(nats(model, *held["test"]))
    return test
