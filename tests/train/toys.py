"""A small training that uses every source of randomness, for tests of the loop."""

import random

import numpy as np
import torch
from torch import nn

from wonderland.data import Batches
from wonderland.train import State


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))


def state(lr: float = 0.01) -> State:
    net = model()
    return State(model=net, optimizer=torch.optim.AdamW(net.parameters(), lr=lr, fused=True), drawn=0.0)


def batches(size: int = 8, workers: int = 0) -> Batches:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(60, 4, generator=generator)
    return Batches(x, (x[:, 0] * x[:, 1] > 0).long(), size=size, seed=3, workers=workers)


def step(state: State, batch) -> dict[str, float]:
    x, y = batch
    state.model.train()
    loss = nn.functional.cross_entropy(state.model(x + 0.01 * torch.randn_like(x)), y)
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    state.drawn = state.drawn + random.random() + float(np.random.rand())  # noqa: NPY002
    return {"loss": loss.item(), "drawn": state.drawn}


def evaluate(state: State) -> dict[str, float]:
    state.model.eval()
    x, y = batches(size=60).batch(0, 0)
    with torch.no_grad():
        return {"validation/loss": nn.functional.cross_entropy(state.model(x), y).item()}
