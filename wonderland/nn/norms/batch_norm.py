"""Batch norm: features normalised by the statistics of the batch, in evaluation by running averages."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.mixer import Pointwise, hide
from wonderland.nn.contract.state import State
from wonderland.nn.norms.axis import check_around, check_axis
from wonderland.nn.norms.norm import Norm


@part
class BatchNorm(Norm):
    r"""Each feature to mean 0 and variance 1 over all real tokens of the batch, then a trained gain and shift.

    .. math::
        y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot \gamma + \beta, \qquad
        \hat\mu \leftarrow (1 - \lambda) \hat\mu + \lambda \mu

    In training the statistics are the batch's, over what the mask shows, and running averages follow them with the `rate`
    lambda (the variance by its unbiased estimate). In evaluation the running ones are used: an affine map of each token
    alone. `precise_statistics` puts those of a whole data set in their place. A batch mate matters in training.

    `axis` says where the features are: "last" as in (..., dim), or "first", after the batch, as in (b, dim, ...) for images.
    A mask (b, t) goes with (b, t, dim), or (b, dim, t).

    Shapes: x (..., dim) -> (..., dim), or (b, dim, ...) -> (b, dim, ...). Book: Alice 9.3.2; D2L 8.5.
    Paper: Ioffe and Szegedy, 2015.

    >>> norm = BatchNorm(1)
    >>> norm(torch.tensor([[[1.0], [3.0]]])).flatten().detach().round(decimals=2)
    tensor([-1.,  1.])
    >>> norm.mean, norm.variance
    (tensor([0.2000]), tensor([1.1000]))
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, dim: int, *, rate: float | int = 0.1, eps: float | int = 1e-5, axis: str = "last"):
        super().__init__(dim, eps=eps)
        self.axis = check_axis(axis, "BatchNorm")
        self.causal = axis == "last"  # channels first, positions come last: nothing streams along them
        if not 0 < rate <= 1:
            raise WonderlandError(f"BatchNorm takes a rate above 0 and up to 1, not {rate}.")
        self.rate = float(rate)
        self.bias = nn.Parameter(torch.zeros(dim))
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("variance", torch.ones(dim))
        self.seen: Callable[[Tensor], None] | None = None

    def laws(self) -> Any:
        from wonderland import laws

        # The law about masks has the tokens on the second axis.
        return tuple(law for law in Pointwise.laws(self) if self.axis == "last" or law is not laws.padding_invariance)

    def check(self, x: Any, mask: Any) -> None:
        check_around(x, self.dim, mask, "BatchNorm", self.axis, self.weight)

    def whole(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if self.axis == "last" or x.dim() < 3:
            return super().whole(x, mask)
        if mask is not None:
            return super().whole(x.transpose(1, 2), mask).transpose(1, 2)
        if not self.training:
            wide = (-1, *[1] * (x.dim() - 2))
            scale = torch.rsqrt(self.variance + self.eps) * self.weight
            return (x - self.mean.view(wide)) * scale.view(wide) + self.bias.view(wide)
        if self.seen is not None or x.dtype != self.mean.dtype:
            return self._by_batch(y := x.movedim(1, -1), y.reshape(-1, self.dim)).movedim(-1, 1)
        self._check_count(x.numel() // self.dim)
        return F.batch_norm(x, self.mean, self.variance, self.weight, self.bias, True, self.rate, self.eps)

    def proceed(self, x: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        return hide(self.among(hide(x, mask), mask), mask), ()

    def among(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if not self.training or mask is None or x.is_meta:  # on the meta device nothing says which tokens are real
            return self.apply_to(x)
        return self._by_batch(x, x[mask])

    def apply_to(self, x: Tensor) -> Tensor:
        if self.training:
            return self._by_batch(x, x.reshape(-1, self.dim))
        return self._affine(x, self.mean, self.variance)

    def _affine(self, x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        return (x - mean) * (torch.rsqrt(variance + self.eps) * self.weight) + self.bias

    def _by_batch(self, x: Tensor, rows: Tensor) -> Tensor:
        self._check_count(len(rows))
        if self.seen is not None:
            self.seen(rows.detach())
        if rows.numel() == x.numel() and rows.dtype == self.mean.dtype:
            # Nothing is hidden: the same as below as one kernel, which matters where steps are small.
            return F.batch_norm(
                rows, self.mean, self.variance, self.weight, self.bias, True, self.rate, self.eps
            ).view_as(x)
        variance, mean = torch.var_mean(rows, 0, correction=0)
        with torch.no_grad():
            self.mean.lerp_(mean.detach().to(self.mean.dtype), self.rate)
            unbiased = variance.detach() * (len(rows) / (len(rows) - 1))
            self.variance.lerp_(unbiased.to(self.variance.dtype), self.rate)
        return self._affine(x, mean, variance)

    @staticmethod
    def _check_count(count: int) -> None:
        if count < 2:
            raise WonderlandError("BatchNorm takes at least two tokens to train on: the variance of one says nothing.")


def precise_statistics(model: nn.Module, batches: Iterable[Any]) -> int:
    r"""Put the mean and variance over a whole data set into every batch norm, and return how many there are.

    .. math:: \hat\mu = \frac1n \sum_i x_i, \qquad \hat\sigma^2 = \frac1n \sum_i (x_i - \hat\mu)^2

    One pass: batches go through with batch norms as in training and all else (dropout) as in evaluation, and what reaches
    each norm is pooled. A batch is what the model is called with, a tuple for several arguments. Modes are left as found.
    Works for torch's batch norms too. Book: Alice 9.3.2 (first option for inference).

    >>> norm = BatchNorm(1)
    >>> precise_statistics(norm, [torch.tensor([[[1.0], [3.0]]]), torch.tensor([[[5.0], [7.0]]])])
    1
    >>> norm.mean, norm.variance
    (tensor([4.]), tensor([5.]))
    """
    norms = [module for module in model.modules() if isinstance(module, BatchNorm | nn.modules.batchnorm._BatchNorm)]
    if not norms:
        raise WonderlandError("precise_statistics takes a model with a batch norm in it, and this one has none.")
    modes = [(module, module.training) for module in model.modules()]
    pools = [_Pool() for _ in norms]
    kept = [{name: value.clone() for name, value in norm.named_buffers()} for norm in norms]
    hooks = []
    try:
        model.eval()
        for norm, pool in zip(norms, pools, strict=True):
            norm.training = True
            if isinstance(norm, BatchNorm):
                norm.seen = pool.add
            else:
                hooks.append(norm.register_forward_pre_hook(_watch(pool)))
        with torch.no_grad():
            for batch in batches:
                model(*batch) if isinstance(batch, tuple) else model(batch)
    finally:
        for hook in hooks:
            hook.remove()
        for norm, before in zip(norms, kept, strict=True):
            if isinstance(norm, BatchNorm):
                norm.seen = None
            for name, value in norm.named_buffers():
                value.copy_(before[name])
        for module, mode in modes:
            module.training = mode
    if not all(pool.count for pool in pools):
        raise WonderlandError("precise_statistics takes batches that reach every batch norm, and one saw nothing.")
    for norm, pool in zip(norms, pools, strict=True):
        own = (norm.mean, norm.variance) if isinstance(norm, BatchNorm) else (norm.running_mean, norm.running_var)
        for value, moment in zip(own, pool.moments(), strict=True):
            if value is not None:
                value.copy_(moment)
    return len(norms)


def _watch(pool: "_Pool") -> Callable[..., None]:
    return lambda _, inputs: pool.add(inputs[0].detach().transpose(0, 1).flatten(1).T)


class _Pool:
    """Mean and sum of squared differences over all rows seen, joined batch by batch in double precision (Chan et al.)."""

    def __init__(self):
        self.count, self.mean, self.squares = 0, torch.zeros(()), torch.zeros(())

    def add(self, rows: Tensor) -> None:
        rows = rows.double()
        variance, mean = torch.var_mean(rows, 0, correction=0)
        total = self.count + len(rows)
        apart = mean - self.mean
        self.squares = self.squares + variance * len(rows) + apart.square() * (self.count * len(rows) / total)
        self.mean = self.mean + apart * (len(rows) / total)
        self.count = total

    def moments(self) -> tuple[Tensor, Tensor]:
        return self.mean, self.squares / self.count
