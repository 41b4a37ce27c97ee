"""Linear forecasters: autoregression, NLinear and DLinear."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.series.forecaster import Forecaster


class Steps(nn.Module):
    """A linear map from the context to the horizon, shared by all channels or with one for each: (b, t, c) -> (b, h, c, outputs)."""

    def __init__(self, context: int, horizon: int, channels: int, outputs: int, individual: bool, even: bool):
        super().__init__()
        copies = channels if individual else 1
        bound = context**-0.5
        self.horizon, self.outputs = horizon, outputs
        self.weight = nn.Parameter(torch.empty(copies, horizon * outputs, context).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(copies, horizon * outputs).uniform_(-bound, bound))
        if even:
            nn.init.constant_(self.weight, 1 / context)

    def forward(self, x: Tensor) -> Tensor:
        columns = x.transpose(1, 2)
        if len(self.weight) == 1:
            steps = F.linear(columns, self.weight[0], self.bias[0])
        else:
            steps = torch.einsum("bct,cht->bch", columns, self.weight) + self.bias
        return steps.unflatten(-1, (self.horizon, self.outputs)).transpose(1, 2)


class LinearForecaster(Forecaster):
    """What models with one linear map of the context share: the map, `steps`, for each column its own with `individual`."""

    def __init__(
        self,
        context: int,
        horizon: int,
        channels: int = 1,
        known: int = 0,
        outputs: int = 1,
        *,
        individual: bool = False,
    ):
        super().__init__(context, horizon, channels, known, outputs)
        self.steps = Steps(context, horizon, channels, outputs, individual, even=False)


@part
class LinearAutoregression(LinearForecaster):
    r"""Each step of the horizon as a linear function of the context.

    .. math:: \hat y_h = b_h + \sum_{i=1}^{L} w_{hi}\, x_i

    Shapes: x (b, context, c) -> (b, horizon, c, outputs). Book: D2L 9.1; Alice 8.

    >>> LinearAutoregression(context=8, horizon=3)(torch.zeros(2, 8, 1)).shape
    torch.Size([2, 3, 1, 1])
    """

    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        return self.steps(x)


@part
class NLinear(LinearForecaster):
    r"""A linear map of differences to the last value, which is added again: it follows shifts of the level.

    .. math:: \hat y = W (x - x_L) + b + x_L

    Shapes: x (b, context, c) -> (b, horizon, c, outputs); the level is added to the first output. Paper: Zeng et al., 2023.

    >>> model = NLinear(context=8, horizon=3)
    >>> x = torch.randn(2, 8, 1)
    >>> torch.allclose(model(x + 5), model(x) + 5, atol=1e-5)
    True
    """

    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        last = x[:, -1:]
        return with_level(self.steps(x - last), last)


@part
class DLinear(Forecaster):
    r"""Two linear maps: one of the moving average of the context, one of the rest.

    .. math:: s = \mathrm{avg}_k(x), \qquad \hat y = W_s\, s + b_s + W_r\, (x - s) + b_r

    The average repeats the first and the last value beyond the ends. Initial weights are those of `torch.nn.Linear`, or with
    `even` all 1 / context, as in the first version of the paper's code.

    Shapes: x (b, context, c) -> (b, horizon, c, outputs). Paper: Zeng et al., 2023.

    >>> DLinear(context=36, horizon=12, channels=7)(torch.zeros(2, 36, 7)).shape
    torch.Size([2, 12, 7, 1])
    """

    def __init__(self, context: int, horizon: int, channels: int = 1, known: int = 0, outputs: int = 1, *,
                 kernel: int = 25, individual: bool = False, even: bool = False):  # fmt: skip
        super().__init__(context, horizon, channels, known, outputs)
        if not isinstance(kernel, int) or kernel < 1 or kernel % 2 == 0:
            raise WonderlandError(f"DLinear averages over an odd number of steps, not {kernel!r}.")
        self.kernel = kernel
        self.season = Steps(context, horizon, channels, outputs, individual, even)
        self.trend = Steps(context, horizon, channels, outputs, individual, even)

    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        trend = moving_average(x, self.kernel)
        return self.season(x - trend) + self.trend(trend)


def moving_average(x: Tensor, kernel: int) -> Tensor:
    """The centred moving average along time, with both ends repeated: (b, t, c) -> (b, t, c)."""
    side = kernel // 2
    longer = torch.cat([x[:, :1].expand(-1, side, -1), x, x[:, -1:].expand(-1, side, -1)], 1)
    return F.avg_pool1d(longer.transpose(1, 2), kernel, 1).transpose(1, 2)


def with_level(outputs: Tensor, level: Tensor) -> Tensor:
    """Outputs (b, h, c, outputs) with a level (b, 1, c) added to the first."""
    if outputs.shape[-1] == 1:
        return outputs + level[..., None]
    return torch.cat([outputs[..., :1] + level[..., None], outputs[..., 1:]], -1)
