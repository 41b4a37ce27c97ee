"""Both directions: one mixer reads the sequence from the left, a second one from the right."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import check_specs
from wonderland.nn.contract.hooks import call_with_hooks
from wonderland.nn.contract.mixer import Mixer, lengths
from wonderland.nn.contract.state import State


@part
class Bidirectional(Mixer):
    r"""Two copies of a causal mixer, each with its own weights, in opposite directions.

    .. math::
        y_i = P\,[\overrightarrow{f}(x_1, \dots, x_i);\; \overleftarrow{f}(x_n, \dots, x_i)] + p

    The second copy reads each row from its last real token to its first. What the two say is concatenated, 2 dim wide
    (`both` returns that), and brought back to dim by a linear map, as a mixer keeps the width. Not causal.

    Shapes: x (b, t, dim) -> (b, t, dim).
    mixer: the spec of a causal mixer. Default: an LSTM.
    Book: Alice 13.2; Dive into Deep Learning 10.4. Paper: Schuster and Paliwal, 1997.

    >>> from wonderland.nn.mixers.gru import GRU
    >>> Bidirectional(dim=4, mixer=GRU.spec())(torch.randn(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    causal = False
    takes_specs = True

    def __init__(self, dim: int, *, mixer: Any = None):
        super().__init__()
        if mixer is None:
            from wonderland.nn.mixers.lstm import LSTM

            mixer = LSTM.spec()
        check_specs([mixer], "The mixer of a Bidirectional is a spec such as nn.LSTM.spec()")
        self.dim = dim
        self.rightward, self.leftward = mixer.build(dim=dim), mixer.build(dim=dim)
        if not isinstance(self.rightward, Mixer):
            raise WonderlandError(f"Bidirectional takes a causal mixer, and {mixer.name} is none.")
        if not self.rightward.causal:
            raise WonderlandError(
                f"Bidirectional takes a causal mixer; this {mixer.name} sees both directions already."
            )
        self.project = nn.Linear(2 * dim, dim)
        field = getattr(self.rightward, "receptive_field", None)
        if field is not None:
            self.receptive_field = (field[0], field[0])

    @classmethod
    def from_torch(cls, module: Any, *, layer: int | None = None) -> "Bidirectional":
        """Both directions of a torch.nn.RNN, GRU or LSTM: `both` then gives its outputs, twice as wide as its inputs.

        The map that brings them back to dim is new: torch has none.
        """
        from wonderland import nn as own

        kind = getattr(own, type(module).__name__, None) if isinstance(module, nn.RNNBase) else None
        if kind is None or not module.bidirectional:
            given = "one of one direction" if kind is not None else f"a {type(module).__name__}"
            raise WonderlandError(
                f"Bidirectional.from_torch takes a torch.nn.RNN, GRU or LSTM of two directions, not {given}."
            )
        rightward, leftward = (kind.from_torch(module, layer=layer, reverse=reverse) for reverse in (False, True))
        mixer = cls(rightward.dim, mixer=kind.spec())
        mixer.rightward, mixer.leftward = rightward, leftward
        mixer.project.to(rightward.weight_input)
        return mixer.train(module.training)

    def laws(self):
        from wonderland import laws

        inner = self.rightward.laws()
        kept = (laws.shift_equivariance, laws.locality, laws.permutation_equivariance)
        if laws.causality in super().laws():
            kept = (laws.strict_causality, *kept)
        return (*super().laws(), *(law for law in kept if law in inner))

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        return self.project(self.both(x, mask)), ()

    def both(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The outputs of both directions, concatenated: (b, t, 2 dim)."""
        self.check(x, mask)
        left = call_with_hooks(self.leftward, backwards(x, mask), lambda h: self.leftward.whole(h, mask))
        right = call_with_hooks(self.rightward, x, lambda h: self.rightward.whole(h, mask))
        return torch.cat([right, backwards(left, mask)], -1)


def backwards(x: Tensor, mask: Tensor | None) -> Tensor:
    """Each row from its last real token to its first; padding stays where it is.

    >>> backwards(torch.tensor([[[1.0], [2.0], [0.0]]]), torch.tensor([[True, True, False]])).flatten()
    tensor([2., 1., 0.])
    """
    if mask is None:
        return x.flip(1)
    steps = torch.arange(x.shape[1], device=x.device)
    index = torch.where(mask, lengths(mask).unsqueeze(1) - 1 - steps, steps)
    return x.gather(1, index.unsqueeze(-1).expand_as(x))
