"""WaveNet: a causal language model of samples, by gated convolutions whose dilations double; and its generation, one sample a step."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.language import LanguageModel
from wonderland.models.tokens import check_sizes, look_up
from wonderland.nn.contract.left_context import last_context, prepend_context
from wonderland.nn.contract.state import Layout, Slot, State


@part
class WaveNet(LanguageModel):
    r"""Logits of the next sample from all samples in reach, as codes 0 to vocab - 1 (`ops.sound.mu_law_encode`).

    .. math::
        z^l_t = \tanh(W_f^l [u^l_{t-d}, u^l_t]) \odot \sigma(W_g^l [u^l_{t-d}, u^l_t]), \qquad u^l_t = h^l_t + V^l c, \\
        h^{l+1}_t = h^l_t + R^l z^l_t, \qquad y_t = W_2\, \mathrm{relu}\Big(W_1\, \mathrm{relu}\Big(\sum_l S^l z^l_t\Big)\Big)

    The dilation d is 1, 2, ..., 2^(depth - 1) in each of `stacks` stacks, so that a sample sees `receptive_field` =
    stacks (2^depth - 1) + 1 of them. With `conditions`, c is a trained vector for each of so many conditions, such as speakers.

    Shapes: tokens (b, t) -> logits (b, t, vocab); state: for each layer its last d inputs. Book: Alice 8.3. Paper: van den Oord et al., 2016.

    >>> net = WaveNet(vocab=16, dim=8, depth=4)
    >>> net.receptive_field, net(torch.zeros(2, 5, dtype=torch.int64)).shape
    (16, torch.Size([2, 5, 16]))
    """

    def __init__(
        self, vocab: int = 256, dim: int = 32, *, depth: int = 10, stacks: int = 1, skip: int = 64, conditions: int = 0
    ):
        super().__init__()
        check_sizes("WaveNet", vocab=vocab, dim=dim, depth=depth, stacks=stacks, skip=skip)
        if depth > 20 or conditions < 0:
            raise WonderlandError(
                f"WaveNet takes a depth of at most 20 and 0 or more conditions, not {depth} and {conditions}."
            )
        self.vocab, self.dim, self.skip, self.conditions = vocab, dim, skip, conditions
        self.dilations = [2**i for _ in range(stacks) for i in range(depth)]
        self.receptive_field = sum(self.dilations) + 1
        self.embedding = nn.Embedding(vocab, dim)
        self.gates: Any = nn.ModuleList(nn.Linear(2 * dim, 2 * dim) for _ in self.dilations)
        self.outs: Any = nn.ModuleList(nn.Linear(dim, dim + skip) for _ in self.dilations)
        self.condition = nn.Embedding(conditions, dim * len(self.dilations)) if conditions else None
        self.first, self.second = nn.Linear(skip, skip), nn.Linear(skip, vocab)
        self._given: Tensor | None = None

    def given(self, condition: Tensor | None) -> "WaveNet":
        """The model with a condition for each row (b,), which the calls after this one use; None for none."""
        if condition is not None and (
            self.condition is None or int(condition.min()) < 0 or int(condition.max()) >= self.conditions
        ):
            raise WonderlandError(
                f"This WaveNet has {self.conditions} conditions: give numbers below that, or build it with more."
            )
        self._given = condition
        return self

    def layout(self) -> Layout:
        return tuple(Slot((dilation, self.dim)) for dilation in self.dilations)

    def shifts(self, like: Tensor) -> list[Any]:
        """V c of each layer (b, 1, dim), 0 without a condition."""
        if self._given is None or self.condition is None:
            return [0.0] * len(self.dilations)
        return list(self.condition(self._given).to(like)[:, None].chunk(len(self.dilations), -1))

    def read(self, tokens: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        h, total, states = look_up(tokens, self.embedding.weight), None, []
        layers = zip(self.dilations, self.gates, self.outs, self.shifts(h), strict=True)
        for place, (dilation, gates, outs, shift) in enumerate(layers):
            full = prepend_context(h + shift, None if state is None else state[place], dilation)
            states.append(last_context(full, mask, dilation))
            values, openings = gates(torch.cat([full[:, : h.shape[1]], full[:, dilation:]], -1)).chunk(2, -1)
            more, skipped = outs(torch.tanh(values) * torch.sigmoid(openings)).split([self.dim, self.skip], -1)
            h = h + more
            total = skipped if total is None else total + skipped
        assert total is not None
        return self.second(F.relu(self.first(F.relu(total)))), tuple(states)


@torch.no_grad()
def generate_wave(
    model: WaveNet,
    count: int,
    *,
    begin: Tensor | None = None,
    temperature: float = 1.0,
    seed: int = 0,
    cached: bool = True,
) -> Tensor:
    """New samples as codes (b, count) after those of `begin` (b, t), drawn one by one.

    With `cached`, each layer keeps its last inputs in a ring, and a sample costs one product a layer; without, the samples in reach
    are read again for each new one. Both draw the same samples. Temperature 0 takes the likeliest.

    >>> net = WaveNet(vocab=16, dim=8, depth=3).eval()
    >>> torch.equal(generate_wave(net, 20, seed=1), generate_wave(net, 20, seed=1, cached=False))
    True
    """
    if count < 1 or temperature < 0:
        raise WonderlandError(
            f"Generation needs a count of at least 1 and a temperature of 0 or more, not {count} and {temperature:g}."
        )
    begin = torch.full((1, 1), model.vocab // 2) if begin is None else begin
    drawn = torch.rand(count, len(begin), generator=torch.Generator().manual_seed(seed), dtype=torch.float64).numpy()
    tokens = np.empty((len(begin), begin.shape[1] + count), np.int64)
    tokens[:, : begin.shape[1]] = begin.numpy()
    step = _Cached(model, begin[:, :-1]) if cached else None
    for place in range(begin.shape[1], tokens.shape[1]):
        if step is not None:
            logits = step(tokens[:, place - 1])
        else:
            window = torch.from_numpy(tokens[:, max(0, place - model.receptive_field) : place])
            logits = model(window)[:, -1].numpy()
        tokens[:, place] = _chosen(logits, temperature, drawn[place - begin.shape[1]])
    return torch.from_numpy(tokens[:, begin.shape[1] :])


def _chosen(logits: np.ndarray, temperature: float, drawn: np.ndarray) -> np.ndarray:
    """A token for each row of logits (b, vocab), by the inverse of the distribution function at `drawn` (b,)."""
    if temperature == 0:
        return logits.argmax(1)
    shares = np.exp((logits - logits.max(1, keepdims=True)).astype(np.float64) / temperature).cumsum(1)
    return np.minimum((shares < drawn[:, None] * shares[:, -1:]).sum(1), logits.shape[1] - 1)


class _Cached:
    """One step of a WaveNet in numpy, whose calls cost less than torch's where a product has a few thousand numbers.

    A sigmoid is written as a hyperbolic tangent, sigma(x) = (1 + tanh(x / 2)) / 2, so that one call gives values and gates; its
    constants are folded into the weights. The sums over layers are one product at the end.
    """

    def __init__(self, model: WaveNet, before: Tensor):
        dim, rows = model.dim, len(before)
        self.count, self.dim = before.shape[1], dim
        self.embedding = model.embedding.weight.numpy()
        halves = np.repeat([1.0, 0.5], dim).astype(self.embedding.dtype)
        self.layers = []
        for gates, outs, shift, dilation in zip(
            model.gates, model.outs, model.shifts(model.embedding.weight), model.dilations, strict=True
        ):
            weight, bias = gates.weight.T.numpy() * halves, gates.bias.numpy() * halves
            if isinstance(shift, Tensor):  # a condition is added to both inputs; the earlier one is in the ring with it
                bias = bias + shift[:, 0].numpy() @ weight[dim:]
            out = np.ascontiguousarray(outs.weight[:dim].T.numpy() / 2)
            ring = np.zeros((dilation, rows, 2 * dim), self.embedding.dtype)
            self.layers.append((ring, np.ascontiguousarray(weight), bias, out, outs.bias[:dim].numpy(), shift))
        self.skips = np.concatenate([outs.weight[dim:].T.numpy() / 2 for outs in model.outs])
        self.skip_bias = sum(outs.bias[dim:].numpy() for outs in model.outs)
        self.last = [(layer.weight.T.numpy(), layer.bias.numpy()) for layer in (model.first, model.second)]
        self.gated = np.empty((rows, len(self.layers) * dim), self.embedding.dtype)
        if self.count:
            state = model.stream(before)[1]
            for (ring, *_), dilation, inputs in zip(self.layers, model.dilations, state, strict=False):
                ring[np.arange(self.count - dilation, self.count) % dilation, :, :dim] = inputs.transpose(0, 1).numpy()

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        dim, h, first = self.dim, self.embedding[tokens], 0
        for ring, weight, bias, out, out_bias, shift in self.layers:
            # A slot holds the input of d steps ago in its first half; the new one goes beside it, and then takes its place.
            pair = ring[self.count % len(ring)]
            pair[:, dim:] = h
            inner = pair @ weight
            inner += bias
            np.tanh(inner, inner)
            gates = inner[:, dim:]
            gates += 1
            z = np.multiply(inner[:, :dim], gates, out=self.gated[:, first : first + dim])
            pair[:, :dim] = h if isinstance(shift, float) else h + shift[:, 0].numpy()
            h = h + z @ out
            h += out_bias
            first += dim
        self.count += 1
        h = np.maximum(self.gated @ self.skips + self.skip_bias, 0)
        for place, (weight, bias) in enumerate(self.last):
            h = h @ weight + bias
            h = np.maximum(h, 0) if place == 0 else h
        return h
