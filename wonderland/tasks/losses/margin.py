"""The hinge loss: 0 once a prediction is correct by a margin of 1."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks.losses.convention import check_pair, reduce_losses


def hinge(prediction: Any, target: Any, *, mask: Any = None, weight: Any = None, reduction: Any = "mean") -> Tensor:
    r"""The hinge loss of a score, for classes -1 and +1.

    .. math:: l = \max(0, 1 - y \hat y)

    An upper bound of the 0/1 loss. Shapes: both (...). Book: Alice 3.2.

    >>> import torch
    >>> hinge(torch.tensor([1.0, 0.0, -1.0]), torch.ones(3), reduction="none")
    tensor([0., 1., 2.])
    """
    prediction, target = check_pair("hinge", prediction, target, mask)
    if not torch.compiler.is_compiling():
        unmasked = target if mask is None else target[mask]
        wrong = unmasked[unmasked.abs() != 1]
        if wrong.numel():
            raise WonderlandError(
                f"hinge takes a target of -1 and +1, not {float(wrong[0]):g}: for 0 and 1 use 2 * y - 1."
            )
    return reduce_losses("hinge", (1 - target * prediction).clamp(min=0), mask, weight, reduction)
