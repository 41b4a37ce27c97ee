"""What the tests run in several processes: small trainings through the loop, whose losses go to a file."""

import json
import sys
from pathlib import Path

import torch
from torch import nn

from tests.train import toys
from wonderland.optim import FusedAdamW
from wonderland.tasks import Classification
from wonderland.train import State, Supervised, run
from wonderland.train.parallel import Sharded, joined


def model(dtype: torch.dtype, norm: bool) -> nn.Module:
    torch.manual_seed(1)
    middle = [nn.BatchNorm1d(16)] if norm else []
    blocks = nn.ModuleList([nn.Linear(16, 16), nn.Linear(16, 16)])
    return Net(nn.Sequential(nn.Linear(4, 16), *middle, nn.ReLU()), blocks, nn.Linear(16, 2)).to(dtype)


class Net(nn.Module):
    def __init__(self, stem: nn.Module, blocks: nn.ModuleList, head: nn.Module):
        super().__init__()
        self.stem, self.blocks, self.head = stem, blocks, head
        self.unused = nn.Parameter(torch.ones(3, dtype=next(head.parameters()).dtype))

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return self.head(x)


def losses(folder: Path | None, dtype: torch.dtype, *, norm: bool, sharded: bool, accumulate: int, steps: int = 20):
    net = model(dtype, norm)
    state = State(model=net, optimizer=FusedAdamW(net.parameters(), lr=0.01), average=model(dtype, norm))
    if sharded:
        state = Sharded.of(state)
    step = Supervised(Classification(["a", "b"]).loss, steps, 0.01, accumulate=accumulate, average=0.9)
    batches = toys.batches(size=12)
    batches.x = batches.x.to(dtype)
    seen = []

    def recorded(state, batch):
        scalars = step(state, batch)
        seen.append(scalars["loss"])
        return scalars

    def evaluate(state):
        state.average.eval()
        with torch.no_grad():
            loss = nn.functional.cross_entropy(state.average(batches.x), batches.y)
        return {"validation/loss": float(loss)}

    run(
        recorded,
        state,
        batches,
        steps=steps,
        folder=folder,
        evaluate=evaluate,
        evaluate_every=5,
        checkpoint_seconds=0.0,
    )
    return seen


CASES = {
    "float64": (torch.float64, {"norm": True, "sharded": False, "accumulate": 1}),
    "float32": (torch.float32, {"norm": True, "sharded": False, "accumulate": 1}),
    "accumulated": (torch.float64, {"norm": False, "sharded": False, "accumulate": 3}),
    "sharded": (torch.float64, {"norm": False, "sharded": True, "accumulate": 1}),
}


if __name__ == "__main__":
    out = Path(sys.argv[1])
    with joined() as group:
        for name, (dtype, options) in CASES.items():
            seen = losses(out / name, dtype, **options)
            if group.first:
                (out / f"{name}.json").write_text(json.dumps(seen))
