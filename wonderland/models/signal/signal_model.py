"""What models of signals share: waves, spectra or sensors in, with an end of their own, and scores out."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.arguments import Checked, at_least_one


class SignalModel(Checked, nn.Module, ABC):
    r"""Signals x (b, t, channels) in, scores (b, outputs) out.

    Steps after the end of a signal are NaN. They are hidden before the first layer and after each one that mixes steps, so that the
    answer does not depend on how far a batch is padded. `reads` says which form of a recording the model takes: "mel" for frames of
    a log-mel spectrogram, "wave" for samples.
    """

    reads = "wave"

    def __init__(self, outputs: int, channels: int):
        super().__init__()
        at_least_one(type(self).__name__, outputs=outputs, channels=channels)
        self.outputs, self.channels = outputs, channels

    def real(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The signal with zeros after its end, and which steps are real: (b, t, c), (b, t)."""
        if x.dim() != 3 or x.shape[2] != self.channels:
            raise WonderlandError(
                f"{type(self).__name__} takes signals (batch, steps, {self.channels}), not {tuple(x.shape)}."
            )
        mask = ~x[..., 0].isnan()
        return torch.where(mask[..., None], x, torch.zeros((), dtype=x.dtype, device=x.device)), mask

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """What the last layer reads: (b, d)."""

    head: nn.Module

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def mean_and_largest(h: Tensor, mask: Tensor) -> Tensor:
    """The mean and the largest value of each feature over the real steps. Shapes: (b, t, d), (b, t) -> (b, 2 d)."""
    return torch.cat([mean_of_real(h, mask), torch.where(mask[..., None], h, -torch.inf).amax(1)], -1)


def mean_of_real(h: Tensor, mask: Tensor) -> Tensor:
    """The mean of each feature over the real steps. Shapes: (b, t, d), (b, t) -> (b, d)."""
    weights = mask[..., None].to(h)
    return (h * weights).sum(1) / weights.sum(1).clamp_min(1)
