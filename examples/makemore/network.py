r"""An MLP that predicts a letter from the three before it; several seeds are trained together, as a leading axis.

.. math:: h = \tanh(\mathrm{BN}(W_1 [e_{a}, e_{b}, e_{c}] + b_1)), \qquad \hat y = \operatorname{softmax}(W_2 h + b_2)

The gradient is derived by hand for speed, because there are 200,000 tiny steps; a test compares it with autograd.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

LETTERS = 27


@dataclass
class Network:
    """Weights with the seeds first: table (s, 27, e), w1 (s, 3e, h), b1 (s, 1, h), w2 (s, h, 27), b2 (s, 1, 27).

    With batch norm `gain` and `shift` (s, 1, h) are trained, `mean` and `deviation` are running statistics, and there is no b1.
    """

    weights: dict[str, Tensor]
    normed: bool
    mean: Tensor = field(default_factory=lambda: torch.zeros(()))
    deviation: Tensor = field(default_factory=lambda: torch.ones(()))

    def features(self, contexts: Tensor) -> Tensor:
        """The embeddings of the letters of each context in one row: (s, b, c) -> (s, b, c e)."""
        seeds, rows, _ = contexts.shape
        return self.weights["table"][torch.arange(seeds)[:, None, None], contexts].reshape(seeds, rows, -1)

    def logits(self, contexts: Tensor) -> Tensor:
        """Logits with the running statistics of batch norm: (s, b, c) -> (s, b, 27)."""
        w = self.weights
        before = self.features(contexts) @ w["w1"]
        if self.normed:
            before = w["gain"] * (before - self.mean) / self.deviation + w["shift"]
        else:
            before = before + w["b1"]
        return torch.tanh(before) @ w["w2"] + w["b2"]

    def step(self, contexts: Tensor, letters: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean loss of each seed on its own batch, and the gradient of each weight. (s, b, c), (s, b) -> (s)."""
        w, (seeds, rows, size) = self.weights, contexts.shape
        x = self.features(contexts)
        z, grads = x @ w["w1"], {}
        if self.normed:
            deviation, mean = torch.std_mean(z, 1, keepdim=True)
            unit = (z - mean) / deviation
            self.mean.lerp_(mean, 0.001)
            self.deviation.lerp_(deviation, 0.001)
            h = torch.tanh(w["gain"] * unit + w["shift"])
        else:
            h = torch.tanh(z + w["b1"])
        scores = torch.log_softmax(torch.baddbmm(w["b2"], h, w["w2"]), 2)
        loss = -scores.gather(2, letters[:, :, None]).mean((1, 2))
        # The gradient of the loss with respect to the logits is p - y.
        d = scores.exp_().scatter_add_(2, letters[:, :, None], -torch.ones(seeds, rows, 1)).div_(rows)
        grads["w2"], grads["b2"] = h.transpose(1, 2) @ d, d.sum(1, keepdim=True)
        d = (d @ w["w2"].transpose(1, 2)).mul_(1 - h * h)
        if self.normed:
            grads["gain"], grads["shift"] = (d * unit).sum(1, keepdim=True), d.sum(1, keepdim=True)
            # Backward through mean and (unbiased) deviation of the batch.
            d = (w["gain"] / deviation) * (d - grads["shift"] / rows - unit * grads["gain"] / (rows - 1))
        else:
            grads["b1"] = d.sum(1, keepdim=True)
        grads["w1"] = x.transpose(1, 2) @ d
        d = (d @ w["w1"].transpose(1, 2)).reshape(seeds, rows * size, -1)
        where = (contexts.reshape(seeds, -1) + LETTERS * torch.arange(seeds)[:, None]).reshape(-1)
        table = torch.zeros_like(w["table"])
        table.view(seeds * LETTERS, -1).index_add_(0, where, d.reshape(len(where), -1))
        grads["table"] = table
        return loss, grads


def plain(generators: list[torch.Generator], context: int = 3, width: int = 10, hidden: int = 200) -> Network:
    """Standard normal everywhere, as in the second part of makemore."""
    shapes = {"table": (LETTERS, width), "w1": (context * width, hidden), "b1": (1, hidden)}
    shapes |= {"w2": (hidden, LETTERS), "b2": (1, LETTERS)}
    return Network(_drawn(shapes, generators), normed=False)


def normed(generators: list[torch.Generator], context: int = 3, width: int = 10, hidden: int = 200) -> Network:
    r"""Batch norm before the tanh; :math:`W_1` times :math:`(5/3)/\sqrt{n}`, :math:`W_2` times 0.01, as in the third part."""
    shapes = {"table": (LETTERS, width), "w1": (context * width, hidden), "w2": (hidden, LETTERS), "b2": (1, LETTERS)}
    weights = _drawn(shapes, generators)
    weights["w1"] *= 5 / 3 / (context * width) ** 0.5
    weights["w2"] *= 0.01
    weights["b2"] *= 0
    seeds = len(generators)
    weights |= {"gain": torch.ones(seeds, 1, hidden), "shift": torch.zeros(seeds, 1, hidden)}
    return Network(weights, True, torch.zeros(seeds, 1, hidden), torch.ones(seeds, 1, hidden))


def _drawn(shapes: dict[str, tuple[int, int]], generators: list[torch.Generator]) -> dict[str, Tensor]:
    """Seed by seed in the order in which makemore draws."""
    draws = [{name: torch.randn(shape, generator=g) for name, shape in shapes.items()} for g in generators]
    return {name: torch.stack([draw[name] for draw in draws]) for name in shapes}
