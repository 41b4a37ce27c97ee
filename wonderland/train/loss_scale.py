"""Dynamic loss scaling: small gradients of half precision are kept above zero by scaling the loss."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError


class LossScale:
    r"""A factor of the loss that is halved when a gradient overflows, and doubled after `patience` steps without an overflow.

    .. math:: \nabla (s L) = s \nabla L, \qquad g = \nabla (s L) / s

    Gradients below the smallest float16 (about 6e-8) are lost; multiplied by s they are kept. A step whose gradients overflow is left out.
    `scale(loss)` before backward, then `unscale(parameters)`, which says whether the optimizer may step, and counts the step.
    Book: D2L 13. Paper: Micikevicius et al., 2018.

    >>> scale, weight = LossScale(start=1024.0), nn.Parameter(torch.ones(1))
    >>> scale.scale(3 * weight.sum()).backward()
    >>> scale.unscale([weight]), weight.grad.item()
    (True, 3.0)
    """

    def __init__(self, start: float = 65536.0, *, patience: int = 2000, largest: float = 2.0**24):
        if not 1 <= start <= largest or patience < 1:
            raise WonderlandError(
                "A loss scale begins between 1 and its largest value, and waits for at least one step."
            )
        self.value, self.patience, self.largest, self.good = start, patience, largest, 0

    def scale(self, loss: Tensor) -> Tensor:
        """The scaled loss, in float32."""
        return loss.float() * self.value

    @torch.no_grad()
    def unscale(self, parameters: Iterable[nn.Parameter]) -> bool:
        """Divide the gradients by the scale; False, with the gradients removed, where one is not finite."""
        owners = [parameter for parameter in parameters if parameter.grad is not None]
        finite = all(bool(torch.isfinite(owner.grad).all()) for owner in owners if owner.grad is not None)
        if not finite:
            for owner in owners:
                owner.grad = None
            self.value, self.good = max(1.0, self.value / 2), 0
            return False
        for owner in owners:
            assert owner.grad is not None
            owner.grad /= self.value
        self.good += 1
        if self.good == self.patience:
            self.value, self.good = min(self.largest, self.value * 2), 0
        return True

    def state_dict(self) -> dict[str, float]:
        """The scale and the steps since its last change, for checkpoints."""
        return {"value": self.value, "good": self.good}

    def load_state_dict(self, saved: dict[str, float]) -> None:
        """Continue where a checkpoint stood."""
        self.value, self.good = float(saved["value"]), int(saved["good"])
