"""Normalisation over any axes: their choice gives batch, layer, group or instance norm."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import check_rows
from wonderland.nn.norms.axis import check_around, check_axis


def normalise(x: Tensor, axes: tuple[int, ...], *, centre: bool = True, eps: float | int = 1e-5) -> Tensor:
    r"""Numbers brought to mean 0 and variance 1 over some axes.

    .. math:: y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}}, \qquad \mu, \sigma^2 \text{ over the axes}

    For x (b, c, h, w): (0, 2, 3) is batch norm, (1, 2, 3) layer norm, (1,) layer norm at each place, (2, 3) instance norm;
    without `centre` nothing is taken away and the mean square is used, as RMSNorm does. The variance is the biased one.

    Shapes: x (...) -> (...). Book: Alice 9.3.2.

    >>> normalise(torch.tensor([[1.0, 3.0]]), (1,)).round(decimals=3)
    tensor([[-1.,  1.]])
    """
    if centre:
        x = x - x.mean(axes, keepdim=True)
    return x * torch.rsqrt(x.square().mean(axes, keepdim=True) + eps)


@part
class GroupNorm(Checked, nn.Module):
    r"""Channels in groups, each group brought to mean 0 and variance 1 over its channels and all places.

    .. math:: y = \frac{x - \mu_g}{\sqrt{\sigma_g^2 + \epsilon}} \odot \gamma + \beta

    One group is layer norm of the whole image, a group for each channel instance norm. No batch mate is read, so small
    batches do no harm. `axis` says where the features are: "first", after the batch, or "last". A mask (b, t) of real
    tokens goes with (b, dim, t), or (b, t, dim): the others are not read, and output 0.

    Shapes: x (b, dim, ...) -> (b, dim, ...), or (b, ..., dim) -> (b, ..., dim). Book: Alice 9.3.2. Paper: Wu and He, 2018.

    >>> GroupNorm(4, groups=2)(torch.randn(2, 4, 5, 5)).shape
    torch.Size([2, 4, 5, 5])
    >>> GroupNorm(4, groups=2, axis="last")(torch.randn(2, 5, 4)).shape
    torch.Size([2, 5, 4])
    """

    no_decay = frozenset({"weight"})

    def __init__(self, dim: int, *, groups: int, eps: float | int = 1e-5, axis: str = "first"):
        super().__init__()
        name = type(self).__name__
        if dim < 1 or groups < 1 or dim % groups:
            raise WonderlandError(f"{name} takes a number of groups that divides its dim of {dim}, not {groups}.")
        if not eps > 0:
            raise WonderlandError(f"{name} adds a small positive eps, which keeps a map of zeros finite, not {eps}.")
        self.dim, self.groups, self.eps, self.axis = dim, groups, float(eps), check_axis(axis, name)
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        always = (laws.gradients, laws.determinism, laws.save_load, laws.finiteness, laws.compiles)
        # Laws about tokens and their mask are about the second axis.
        tokens = (laws.padding_invariance, laws.permutation_equivariance) if self.axis == "last" else ()
        return (laws.batch_independence, laws.scale_invariance, *tokens, *always)

    def forward(self, x: Any, mask: Any = None) -> Tensor:
        name = type(self).__name__
        if isinstance(x, Tensor) and x.dim() < 2:
            raise WonderlandError(f"{name} takes at least two axes, the batch and the features, not {tuple(x.shape)}.")
        check_around(x, self.dim, mask, name, self.axis, self.weight)
        check_rows(mask, name)
        if x[0].numel() == self.groups:
            raise WonderlandError(
                f"{name} takes more than one number in each group, and {tuple(x.shape)} has one: its answer would be 0."
            )
        if self.axis == "last":
            return self.channels_first(x.movedim(-1, 1), mask).movedim(1, -1)
        return self.channels_first(x, mask)

    def channels_first(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The equation for x (b, dim, ...), unchecked."""
        grouped = x.reshape(len(x), self.groups, -1)
        wide = (-1, *[1] * (x.dim() - 2))
        if mask is None:
            y = normalise(grouped, (2,), eps=self.eps).reshape(x.shape)
            return y * self.weight.view(wide) + self.bias.view(wide)
        shown = mask.unsqueeze(1).expand(-1, self.dim, -1)
        real = shown.reshape(grouped.shape)
        count = real.sum(2, keepdim=True)
        centred = grouped.masked_fill(~real, 0)
        centred = (centred - centred.sum(2, keepdim=True) / count).masked_fill(~real, 0)
        y = centred * torch.rsqrt(centred.square().sum(2, keepdim=True) / count + self.eps)
        return (y.reshape(x.shape) * self.weight.view(wide) + self.bias.view(wide)).masked_fill(~shown, 0)


@part
class InstanceNorm(GroupNorm):
    r"""Each channel of each image brought to mean 0 and variance 1 over its places: contrast and brightness go.

    .. math:: y_c = \frac{x_c - \mu_c}{\sqrt{\sigma_c^2 + \epsilon}}\, \gamma_c + \beta_c

    `axis` and the mask are those of `GroupNorm`.
    Shapes: x (b, dim, ...) -> (b, dim, ...), or (b, ..., dim) -> (b, ..., dim). Book: Alice 9.3.2.
    Paper: Ulyanov et al., 2016.

    >>> InstanceNorm(4)(torch.randn(2, 4, 5, 5)).mean((2, 3)).abs().max() < 1e-5
    tensor(True)
    """

    def __init__(self, dim: int, *, eps: float | int = 1e-5, axis: str = "first"):
        super().__init__(dim, groups=dim, eps=eps, axis=axis)
