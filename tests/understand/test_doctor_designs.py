"""Sick and healthy trainings of other designs: encoders, U-Nets, recurrent cells, tables with embeddings, own training steps."""

import copy

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from wonderland.understand import doctor

CE = nn.CrossEntropyLoss()


def adam(lr=1e-3):
    return lambda model: torch.optim.Adam(model.parameters(), lr)


def token_loss(out, y):
    return F.cross_entropy(out.flatten(0, 1), y.flatten())


class Encoder(nn.Module):
    def __init__(self, batch_first=True, dropout=0.0):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout, batch_first=batch_first)
        self.embed, self.place = nn.Embedding(30, 32), nn.Parameter(torch.randn(12, 32) * 0.02)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.body(self.embed(x) + self.place).mean(1))


class Recurrent(nn.Module):
    """A language model of one GRU; `change` is what happens to the sequence before it."""

    def __init__(self, change=lambda h: h):
        super().__init__()
        self.embed, self.gru, self.head, self.change = (
            nn.Embedding(30, 32),
            nn.GRU(32, 32, batch_first=True),
            nn.Linear(32, 30),
            change,
        )

    def forward(self, x):
        return self.head(self.gru(self.change(self.embed(x)))[0])


class Backwards(nn.Module):
    """Attention whose mask is the wrong way round."""

    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.head = nn.Embedding(30, 32), nn.Linear(32, 96), nn.Linear(32, 30)

    def forward(self, x):
        q, k, v = self.qkv(self.embed(x)).chunk(3, -1)
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
        return self.head(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


class UNet(nn.Module):
    def __init__(self, softmax=None):
        super().__init__()
        self.first, self.down, self.up = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.Conv2d(8, 16, 3, 2, 1),
            nn.ConvTranspose2d(16, 8, 2, 2),
        )
        self.last, self.softmax = nn.Conv2d(16, 3, 1), softmax

    def forward(self, x):
        wide = F.relu(self.first(x))
        out = self.last(torch.cat([wide, F.relu(self.up(F.relu(self.down(wide))))], 1))
        return out if self.softmax is None else out.softmax(self.softmax)


class Table(nn.Module):
    """Numbers beside embeddings of categories."""

    def __init__(self, last=None):
        super().__init__()
        self.embed = nn.ModuleList(nn.Embedding(9, 4) for _ in range(3))
        self.body, self.last = nn.Sequential(nn.Linear(18, 48), nn.LayerNorm(48), nn.SiLU(), nn.Linear(48, 1)), last

    def forward(self, x, c):
        out = self.body(torch.cat([x, *[embed(c[:, i]) for i, embed in enumerate(self.embed)]], 1))
        return out if self.last is None else self.last(out)


class Cells(nn.Module):
    def __init__(self, detach=False):
        super().__init__()
        self.cell, self.head, self.detach = nn.GRUCell(5, 24), nn.Linear(24, 1), detach

    def forward(self, x):
        h = torch.zeros(len(x), 24)
        for i in range(x.shape[1]):
            h = self.cell(x[:, i], h)
        return self.head(h.detach() if self.detach else h)


class Mixed(nn.Module):
    """A classifier of sequences; `change` may let examples see each other."""

    def __init__(self, change):
        super().__init__()
        self.first, self.gru, self.head, self.change = (
            nn.Linear(6, 24),
            nn.GRU(24, 24, batch_first=True),
            nn.Linear(24, 3),
            change,
        )

    def forward(self, x):
        return self.head(self.gru(self.change(F.relu(self.first(x))))[0][:, -1])


def over_batch(h):
    flat = h.flatten(0, 1)
    return (torch.softmax(flat @ flat.T / 5, -1) @ flat).view(h.shape)


def convolutions(*last, norm=True):
    layers = [
        nn.Conv2d(3, 12, 3, padding=1),
        *([nn.BatchNorm2d(12)] if norm else []),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
    ]
    return nn.Sequential(*layers, nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 5), *last)


def new_head(model):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    model[-1] = nn.Linear(24, 5)
    return optimizer


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(2))

    def forward(self, x, y):
        scores = F.normalize(self.a(x), dim=1) @ F.normalize(self.b(y), dim=1).T / 0.1
        places = torch.arange(len(x))
        return (F.cross_entropy(scores, places) + F.cross_entropy(scores.T, places)) / 2


class Values(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.target = copy.deepcopy(self.q).requires_grad_(False)

    def forward(self, state, action, reward, later):
        with torch.no_grad():
            wanted = reward + 0.99 * self.target(later).max(1).values
        return F.smooth_l1_loss(self.q(state).gather(1, action[:, None])[:, 0], wanted)


class Variational(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = (
            nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 8)),
            nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 20)),
        )

    def forward(self, x):
        mean, log = self.down(x).chunk(2, 1)
        made = self.up(mean + torch.randn_like(mean) * (log / 2).exp())
        return (made - x).square().sum(1).mean() - 0.5 * (1 + log - mean**2 - log.exp()).sum(1).mean()


def tokens():
    return torch.randint(30, (8, 12)), torch.randint(4, (8,))


def text(shift=1):
    drawn = torch.randint(30, (6, 17))
    return drawn[:, :-1], drawn[:, 1:] if shift else drawn[:, :-1]


def sequences():
    return torch.randn(12, 7, 6), torch.randint(3, (12,))


def images():
    return torch.randn(12, 3, 14, 14), torch.randint(5, (12,))


def scenes():
    return torch.randn(4, 3, 16, 16), torch.randint(3, (4, 16, 16))


def cells(rows=40, scale=1.0):
    return torch.randn(rows, 6) * scale, torch.randint(9, (rows, 3)), torch.randn(rows, 1)


def copied():
    x = torch.randn(32, 7, 5)
    return x, x[:, -1, 2:3].clone()


def clipped(model, batch, optimizer):
    optimizer.zero_grad()
    F.cross_entropy(model(batch[0]), batch[1]).backward()
    nn.utils.clip_grad_value_(model.parameters(), 1e-9)
    optimizer.step()


def erased(model, batch, optimizer):
    F.cross_entropy(model(batch[0]), batch[1]).backward()
    model.zero_grad()
    optimizer.step()


def in_parts(model, batch, optimizer):
    optimizer.zero_grad()
    for i in range(4):
        (F.cross_entropy(model(batch[0][i::4]), batch[1][i::4]) / 4).backward()
    optimizer.step()


def small_images():
    layers = [nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128, 10))


def digits():
    data = load_digits()
    rows = torch.randperm(len(data.target))[:64]
    return torch.tensor(data.images, dtype=torch.float32)[rows].unsqueeze(1) / 16, torch.tensor(data.target)[rows]


def cut(model, batch, optimizer):
    optimizer.zero_grad()
    F.cross_entropy(model(batch[0]).detach().requires_grad_(), batch[1]).backward()
    optimizer.step()


class Listed(nn.Module):
    """Outputs of the first layer become Python numbers."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(20, 16), nn.Linear(16, 5)

    def forward(self, x):
        return self.last(torch.relu(torch.tensor(self.first(x).tolist())))


class Ends(nn.Module):
    """A bidirectional LSTM of two layers of which the last position is read: early ones get small gradients."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.LSTM(1, 24, 2, batch_first=True, bidirectional=True), nn.Linear(48, 1)

    def forward(self, x):
        return self.head(self.body(x)[0][:, -1])


# name: (factory of (model, batch, loss, optimizer, step), problem, module)
SICK = {
    "encoder that gets the batch first": (lambda: (Encoder(batch_first=False), tokens(), CE, adam()), "batch axis read as time", "body.layers.0.self_attn"),
    "reshape for transpose": (lambda: (Mixed(lambda h: h.transpose(0, 1).reshape(h.shape)), sequences(), CE, adam()), "examples mixed", ""),
    "attention over all examples": (lambda: (Mixed(over_batch), sequences(), CE, adam()), "examples mixed", ""),
    "running sum over axis 0": (lambda: (Mixed(lambda h: h.cumsum(0)), sequences(), CE, adam()), "examples mixed", ""),
    "softmax before cross-entropy": (lambda: (convolutions(nn.Softmax(1)), images(), CE, adam()), "softmax before cross-entropy", ""),
    "embeddings without optimizer": (lambda: (Table(), cells(), nn.MSELoss(), lambda m: torch.optim.Adam(m.body.parameters())), "optimizer lacks parameters", "embed"),
    "head changed after the optimizer": (lambda: (convolutions(), images(), CE, new_head), "optimizer lacks parameters", "8"),
    "centred over time": (lambda: (Recurrent(lambda h: h - h.mean(1, keepdim=True)), text(), token_loss, adam()), "future leak", ""),
    "read from the end": (lambda: (Recurrent(lambda h: h.flip(1)), text(), token_loss, adam()), "future leak", ""),
    "mask the wrong way round": (lambda: (Backwards(), text(), token_loss, adam()), "future leak", ""),
    "GRU that copies": (lambda: (Recurrent(), text(0), token_loss, adam()), "labels not shifted", ""),
    "softmax over scenes": (lambda: (UNet(0), scenes(), lambda o, y: F.nll_loss((o + 1e-6).log(), y), adam()), "softmax over the batch", ""),
    "tiny rate of an encoder": (lambda: (Encoder(), tokens(), CE, adam(1e-9)), "learning rate too small", ""),
    "norms in evaluation mode": (lambda: (convolutions().eval(), images(), CE, adam()), "evaluation mode while training", ""),
    "columns of very different scale beside embeddings": (lambda: (Table(), cells(scale=torch.tensor([1, 1, 1e5, 1, 1e-4, 1])), nn.MSELoss(), adam()), "inputs of very different scale", "body.0"),
    "target at the last step": (lambda: (Cells(), copied(), nn.MSELoss(), adam()), "target among the inputs", ""),
    "only dropout between": (lambda: (nn.Sequential(nn.Flatten(), nn.Linear(588, 64), nn.Dropout(0.1), nn.Linear(64, 5)), images(), CE, adam()), "missing activation", "3"),
    "nothing left to learn": (lambda: (Recurrent(), (text()[0], torch.full((6, 16), -100)), token_loss, adam()), "all targets ignored", ""),
    "negative targets of a ReLU": (lambda: (Table(nn.ReLU()), (*cells()[:2], torch.randn(40, 1) - 3), nn.MSELoss(), adam()), "targets out of the output's range", "last"),
    "state detached": (lambda: (Cells(True), (torch.randn(16, 7, 5), torch.randn(16, 1)), nn.MSELoss(), adam()), "cut gradient", ""),
    "clipped by value": (lambda: (convolutions(norm=False), images(), CE, adam(), clipped), "gradients clipped to almost nothing", ""),
    "labels shifted back": (lambda: (Recurrent(), (lambda pair: (pair[1], pair[0]))(text()), token_loss, adam()), "labels shifted the wrong way", ""),
    "loss of detached outputs": (lambda: (convolutions(norm=False), images(), CE, adam(), cut), "cut gradient", ""),
    "outputs through lists": (lambda: (Listed(), (torch.randn(32, 20), torch.randint(5, (32,))), CE, adam()), "unused parameter", "first"),
    "classes without weight": (lambda: (convolutions(), images(), nn.CrossEntropyLoss(weight=torch.zeros(5)), adam()), "all targets ignored", ""),
    "a rate of 1 with AdamW": (lambda: (Recurrent(), text(), token_loss, lambda m: torch.optim.AdamW(m.parameters(), 1.0)), "learning rate too large", ""),
    "gradients erased": (lambda: (Encoder(), tokens(), CE, adam(), erased), "gradients zeroed before the step", ""),
}  # fmt: skip
HEALTHY = {
    "encoder": lambda: (Encoder(dropout=0.1), tokens(), CE, lambda m: torch.optim.AdamW(m.parameters(), 3e-4)),
    "U-Net": lambda: (UNet(), scenes(), CE, adam()),
    "classifier of sequences": lambda: (Mixed(lambda h: h), sequences(), CE, adam()),
    "table": lambda: (Table(), cells(), nn.MSELoss(), adam()),
    "cells": lambda: (Cells(), (torch.randn(16, 7, 5), torch.randn(16, 1)), nn.MSELoss(), adam()),
    "pairs": lambda: (Pairs(), (torch.randn(16, 8), torch.randn(16, 8)), None, adam()),
    "values": lambda: (Values(), (torch.randn(32, 4), torch.randint(2, (32,)), torch.randn(32), torch.randn(32, 4)), None, adam()),
    "variational autoencoder": lambda: (Variational(), torch.randn(32, 20), None, adam()),
    "a batch in parts": lambda: (convolutions(), images(), CE, adam(), in_parts),
    "momentum that first raises the loss": lambda: (small_images(), digits(), CE, lambda m: torch.optim.SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True)),
    "linear model with large steps": lambda: (nn.Linear(20, 3), (torch.randn(90, 20) + 2 * F.one_hot(torch.arange(90) % 3, 20), torch.arange(90) % 3), CE, lambda m: torch.optim.SGD(m.parameters(), 0.5)),
    "two directions, read at the end": lambda: (Ends(), (torch.sin(torch.arange(30).view(1, -1, 1) * torch.rand(48, 1, 1)), torch.randn(48, 1)), nn.MSELoss(), adam()),
    "padding left out": lambda: (Recurrent(), (text()[0], text()[1].masked_fill(torch.arange(16) > 10, -100)), token_loss, adam()),
    "counts": lambda: (Table(), (*cells()[:2], torch.poisson(torch.full((40, 1), 3.0))), nn.PoissonNLLLoss(), adam()),
}  # fmt: skip


def examine(make):
    torch.manual_seed(0)
    model, batch, loss, optimizer, step = (*make(), None)[:5]
    return doctor(model, batch, loss, optimizer=optimizer(model), step=step)


@pytest.mark.parametrize("name", SICK)
def test_sick_trainings_are_named(name):
    make, problem, module = SICK[name]
    diagnosis = examine(make)
    assert [(finding.problem, finding.module) for finding in diagnosis.findings] == [(problem, module)], str(diagnosis)


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_trainings_have_no_findings(name):
    diagnosis = examine(HEALTHY[name])
    assert diagnosis.healthy, str(diagnosis)
