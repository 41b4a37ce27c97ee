"""Forecasts step by step from a model's own forecasts: DeepAR, and an encoder with a decoder."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.recurrence import Layer, check_cell
from wonderland.models.series.forecaster import Forecaster, check_width
from wonderland.models.series.sequence import stack_of
from wonderland.nn.mixers.gru import GRU

DRAWS = 50


@part
class DeepAR(Forecaster):
    r"""A causal stack that reads the value before and the covariates of a step, and gives the distribution of its value.

    .. math:: h_t = \mathrm{stack}(W [y_{t-1}; k_t]), \qquad y_t \sim p(y \mid V h_t)

    Training reads the true values before each step (teacher forcing). Forecasts read their own: with two outputs (mean and log variance),
    `draws` paths are drawn with a fixed seed, and the forecast has their mean and their whole variance; otherwise the first output of a
    step is the value that the next one reads. `mixer` is any causal spec of `wonderland.nn`, a GRU by default.

    Shapes: x (b, context, c), known (b, context + horizon, k) -> (b, horizon, c, outputs).
    Book: Alice 8.4; D2L 9.1. Paper: Salinas et al., 2020.

    >>> DeepAR(context=8, horizon=3, outputs=2, dim=8, depth=1)(torch.zeros(2, 8, 1)).shape
    torch.Size([2, 3, 1, 2])
    """

    takes_specs = True

    def __init__(self, context: int, horizon: int, channels: int = 1, known: int = 0, outputs: int = 2, *,
                 dim: int = 32, depth: int = 2, mixer: Any = None, dropout: float | int = 0.0, draws: int = DRAWS):  # fmt: skip
        super().__init__(context, horizon, channels, known, outputs)
        check_width("DeepAR", dim=dim, depth=depth, draws=draws)
        self.draws = draws
        self.read = nn.Linear(channels + known, dim)
        self.stack = stack_of(dim, depth, GRU.spec() if mixer is None else mixer, dropout)
        if not self.stack.causal:
            raise WonderlandError("DeepAR reads its own forecasts, so its mixer is causal.")
        self.head = nn.Linear(dim, channels * outputs)

    def outputs_of(self, hidden: Tensor, before: Tensor) -> Tensor:
        """Outputs of steps (b, t, c, outputs), the first relative to the value before."""
        outputs = self.head(hidden).unflatten(-1, (self.channels, self.outputs))
        return torch.cat([outputs[..., :1] + before[..., None], outputs[..., 1:]], -1)

    def training_outputs(self, x: Tensor, known: Tensor | None, about: Tensor | None, y: Tensor) -> Tensor:
        """Outputs for the horizon, every step reading the true value before it."""
        along, values = self.covariates(x, known), torch.cat([x, y.to(x.dtype)], 1)[:, :-1]
        hidden = self.stack(self.read(torch.cat([values, along[:, 1:]], -1)))
        return self.outputs_of(hidden[:, -self.horizon :], values[:, -self.horizon :])

    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        along = self.covariates(x, known)
        drawn = self.draws if self.outputs == 2 and not self.training else 1
        _, state = (
            self.stack.stream(self.read(torch.cat([x[:, :-1], along[:, 1 : self.context]], -1)))
            if self.context > 1
            else (None, None)
        )
        index = torch.arange(x.shape[0], device=x.device).repeat_interleave(drawn)
        state = rows_of(state, index)
        value, along = x[index, -1:], along[index]
        noise = torch.Generator().manual_seed(0)
        outputs = []
        for step in range(self.horizon):
            place = self.context + step
            hidden, state = self.stack.stream(self.read(torch.cat([value, along[:, place : place + 1]], -1)), state)
            out = self.outputs_of(hidden, value)
            outputs.append(out)
            value = out[..., 0]
            if drawn > 1:
                deviation = (out[..., 1].clamp(-12, 12) / 2).exp()
                # The same draws for every window, so that a forecast does not depend on the others in its batch.
                draws = torch.randn(drawn, 1, self.channels, generator=noise).to(value)
                value = value + deviation * draws.repeat(len(x), 1, 1)
        joined = torch.cat(outputs, 1)
        if drawn == 1:
            return joined
        paths = joined.unflatten(0, (-1, drawn))
        spread = paths[..., 1].clamp(-12, 12).exp().mean(1) + paths[..., 0].var(1, unbiased=False)
        return torch.stack([paths[..., 0].mean(1), spread.log()], -1)


@part
class Seq2SeqForecaster(Forecaster):
    r"""A recurrent encoder reads the context, and a decoder that begins with its state forecasts step by step.

    .. math:: s_0 = \mathrm{encode}(x, k), \qquad s_h = f([\hat y_{h-1}; k_h], s_{h-1}), \qquad \hat y_h = V s_h

    In training, each true value is replaced by the model's own with a chance of `own` (scheduled sampling); 0 is teacher forcing.

    Shapes: x (b, context, c), known (b, context + horizon, k) -> (b, horizon, c, outputs).
    Book: Alice 8.4; D2L 10.7. Papers: Sutskever et al., 2014; Bengio et al., 2015.

    >>> Seq2SeqForecaster(context=8, horizon=3, dim=8)(torch.zeros(2, 8, 1)).shape
    torch.Size([2, 3, 1, 1])
    """

    def __init__(self, context: int, horizon: int, channels: int = 1, known: int = 0, outputs: int = 1, *,
                 dim: int = 32, cell: str = "gru", own: float | int = 0.5):  # fmt: skip
        super().__init__(context, horizon, channels, known, outputs)
        check_width("Seq2SeqForecaster", dim=dim)
        check_cell(cell, "Seq2SeqForecaster")
        if not 0 <= own <= 1:
            raise WonderlandError(f"Seq2SeqForecaster takes own from 0 to 1, not {own!r}.")
        self.own = float(own)
        self.encoder = Layer(cell, channels + known, dim)
        self.decoder = Layer(cell, channels + known, dim)
        self.head = nn.Linear(dim, channels * outputs)

    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        return self.decode(x, known, None)

    def training_outputs(self, x: Tensor, known: Tensor | None, about: Tensor | None, y: Tensor) -> Tensor:
        """Outputs for the horizon, reading true values or its own, drawn for each window and step."""
        return self.decode(x, known, y.to(x.dtype))

    def decode(self, x: Tensor, known: Tensor | None, y: Tensor | None) -> Tensor:
        """Forecast step by step; `y` are true values to read in training."""
        level, along = x[:, -1:], self.covariates(x, known)
        _, state = self.encoder(torch.cat([x - level, along[:, : self.context]], -1))
        state, value, outputs = tuple(state), torch.zeros_like(level), []
        for step in range(self.horizon):
            place = self.context + step
            hidden, state = self.decoder(torch.cat([value, along[:, place : place + 1]], -1), tuple(state))
            out = self.head(hidden).unflatten(-1, (self.channels, self.outputs))
            outputs.append(torch.cat([out[..., :1] + level[..., None], out[..., 1:]], -1))
            value = out[..., 0]
            if y is not None:
                own = torch.rand(len(x), 1, 1, device=x.device) < self.own
                value = torch.where(own, value, y[:, step : step + 1] - level)
        return torch.cat(outputs, 1)


def rows_of(state: Any, index: Tensor) -> Any:
    """A nested state with its rows chosen by an index."""
    if state is None:
        return None
    return state[index] if isinstance(state, Tensor) else tuple(rows_of(part, index) for part in state)
