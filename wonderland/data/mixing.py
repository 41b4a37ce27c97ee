"""Mixup and CutMix: two examples and their labels combined into one."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError


def soft_labels(y: Any, classes: int | None = None) -> Tensor:
    """Labels (b,) as probabilities (b, classes); floating point labels (b, ...) stay as they are.

    >>> soft_labels(torch.tensor([1, 0]), 2)
    tensor([[0., 1.],
            [1., 0.]])
    """
    if not isinstance(y, Tensor):
        raise WonderlandError(f"Labels to mix are a tensor y, not a {type(y).__name__}.")
    if y.is_floating_point():
        return y
    if classes is None or y.dim() != 1:
        raise WonderlandError("Labels y (b,) are mixed as probabilities: say how many classes there are with classes.")
    if y.numel() and (y.min() < 0 or y.max() >= classes):
        wrong = int(y.min()) if y.min() < 0 else int(y.max())
        raise WonderlandError(f"y holds the label {wrong}, and the classes are 0 to {classes - 1}.")
    return F.one_hot(y.long(), classes).to(torch.get_default_dtype())


def mixup(
    x: Any,
    y: Any,
    *,
    classes: int | None = None,
    alpha: float | int = 0.2,
    share: float | Tensor | None = None,
    generator: torch.Generator | None = None,
) -> tuple[Any, Tensor]:
    r"""Each example blended with another one of its batch, and the labels by the same share.

    .. math:: \tilde x = \lambda x + (1 - \lambda) x', \qquad \tilde y = \lambda y + (1 - \lambda) y', \qquad
        \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    One share for each example, or the `share` given, a number or (b,). x is a tensor (b, ...) of any kind of data, or a
    dict or tuple of them, mixed alike; tokens cannot be blended, their embeddings can.

    Shapes: y (b,) labels with `classes`, or (b, ...) probabilities or numbers -> y (b, classes) or (b, ...).
    Book: Alice 9.2.3. Paper: Zhang et al., 2018.

    >>> x, y = mixup(torch.randn(4, 3), torch.tensor([0, 1, 2, 0]), classes=3)
    >>> y.sum(1)
    tensor([1., 1., 1., 1.])
    """
    y = soft_labels(y, classes)
    share = _share(share, alpha, len(y), "mixup", generator).to(y.device)
    partner = torch.randperm(len(y), generator=generator).to(y.device)
    return _map_tensors(x, len(y), lambda value: _blend(value, partner, share)), _blend(y, partner, share)


def cutmix(
    x: Tensor,
    y: Any,
    *,
    classes: int | None = None,
    alpha: float | int = 1.0,
    axes: Sequence[int] | None = None,
    label: str = "area",
    share: float | Tensor | None = None,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    r"""A box of each example replaced by that of another one of its batch; labels are mixed by the share that is left.

    .. math:: \tilde x = M \odot x + (1 - M) \odot x', \qquad \tilde y = \lambda y + (1 - \lambda) y', \qquad
        \lambda = \mathrm{mean}(M)

    The box runs along `axes`: by default all but the batch and, from three axes on, the channels (axis 1), so a rectangle
    of images (b, c, h, w) and an interval of series (b, c, t); `axes=[1]` is an interval of tokens (b, t) or (b, t, d). With
    `label="random"` the share of the label is drawn independently of the box, as in the book.

    Shapes: x (b, ...) -> (b, ...); y as for `mixup`. Book: Alice 9.2.3. Paper: Yun et al., 2019.

    >>> x, y = cutmix(torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 0]), classes=3)
    >>> x.shape, y.shape
    (torch.Size([4, 3, 8, 8]), torch.Size([4, 3]))
    """
    if label not in ("area", "random"):
        raise WonderlandError(f"cutmix takes a label of 'area' or 'random', not {label!r}.")
    y = soft_labels(y, classes)
    if not isinstance(x, Tensor) or x.dim() < 2 or len(x) != len(y):
        raise WonderlandError("cutmix takes x as one tensor (b, ...) with a row for each label.")
    axes = list(range(2 if x.dim() > 2 else 1, x.dim())) if axes is None else [axis % x.dim() for axis in axes]
    if not axes or 0 in axes:
        raise WonderlandError("cutmix cuts along axes other than the batch, axis 0: name at least one.")
    wanted = _share(share, alpha, len(y), "cutmix", generator)
    kept = _keep_mask(x, axes, wanted, generator).to(x.device)
    partner = torch.randperm(len(y), generator=generator).to(x.device)
    if label == "area":
        left = kept.flatten(1).to(torch.float64).mean(1)
    else:
        left = _share(None, alpha, len(y), "cutmix", generator)
    return torch.where(kept, x, x[partner]), _blend(y, partner, left.to(y.device))


def _keep_mask(x: Tensor, axes: list[int], share: Tensor, generator: torch.Generator | None) -> Tensor:
    """False in one box for each example, whose volume is 1 - share but for rounding: (b, 1 or size, ...)."""
    inside = torch.ones((len(x), *[1] * (x.dim() - 1)), dtype=torch.bool)
    part = (1 - share) ** (1 / len(axes))
    for axis in axes:
        size = x.shape[axis]
        length = (part * size).round()
        start = (torch.rand(len(x), generator=generator, dtype=torch.float64) * (size - length + 1)).floor()
        view = [-1 if k == 0 else 1 for k in range(x.dim())]
        place = torch.arange(size).view([-1 if k == axis else 1 for k in range(x.dim())])
        inside = inside & (place >= start.view(view)) & (place < (start + length).view(view))
    return ~inside


def _share(share: Any, alpha: Any, rows: int, name: str, generator: torch.Generator | None) -> Tensor:
    if share is not None:
        shares = torch.as_tensor(share, dtype=torch.float64)
        if shares.dim() > 1 or (shares.dim() == 1 and len(shares) != rows):
            raise WonderlandError(f"{name} takes a share for all or for each of {rows}, not {tuple(shares.shape)}.")
        if not bool(((shares >= 0) & (shares <= 1)).all()):
            raise WonderlandError(f"{name} takes a share from 0 to 1, not {share}.")
        return shares.expand(rows)
    if not alpha > 0:
        raise WonderlandError(f"{name} takes an alpha above 0, not {alpha}.")
    concentration = torch.full((rows, 2), float(alpha), dtype=torch.float64)
    # A Dirichlet draw stays a share where both gamma draws of a small alpha underflow.
    return torch._sample_dirichlet(concentration, generator=generator)[:, 0]


def _blend(value: Tensor, partner: Tensor, share: Tensor) -> Tensor:
    if not value.is_floating_point():
        raise WonderlandError(
            f"mixup blends floating point numbers, and x holds {value.dtype}: convert them, or mix embeddings of tokens."
        )
    weight = share.to(value.dtype).view(-1, *[1] * (value.dim() - 1))
    return weight * value + (1 - weight) * value[partner]


def _map_tensors(x: Any, rows: int, change: Any) -> Any:
    if isinstance(x, Mapping):
        return {name: _map_tensors(value, rows, change) for name, value in x.items()}
    if isinstance(x, tuple | list):
        return type(x)(_map_tensors(value, rows, change) for value in x)
    if not isinstance(x, Tensor) or x.dim() == 0 or len(x) != rows:
        raise WonderlandError(
            "mixup takes x as a tensor (b, ...) with a row for each label, or a dict or tuple of such."
        )
    return change(x)
