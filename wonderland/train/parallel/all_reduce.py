"""Sums over workers, written for reading: through one worker, around a ring, and through a parameter server."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from wonderland.core import WonderlandError


@dataclass(frozen=True)
class Reduced:
    """The sum that every worker has in the end, and the numbers that each worker sent."""

    values: list[Tensor]
    sent: list[int]


def naive_all_reduce(tensors: Sequence[Tensor]) -> Reduced:
    r"""Every worker sends its tensor to the first, which sends the sum back: the first one sends (n - 1) times the data.

    Shapes: n tensors of one shape. Book: D2L 13.7.

    >>> naive_all_reduce([torch.ones(2), torch.ones(2)]).sent
    [2, 2]
    """
    _check(tensors)
    size, count = tensors[0].numel(), len(tensors)
    total = torch.stack(list(tensors)).sum(0)
    return Reduced([total.clone() for _ in tensors], [size * (count - 1), *[size] * (count - 1)])


def ring_all_reduce(tensors: Sequence[Tensor]) -> Reduced:
    r"""Each worker sends one of n pieces to the next at a time: n - 1 steps that add, n - 1 that pass on the sums.

    .. math:: \text{sent by each worker} = 2 \frac{n - 1}{n} \text{ of the data, whatever the number of workers}

    Shapes: n tensors of one shape. Book: D2L 13.7. Paper: Patarasuk and Yuan, 2009.

    >>> reduced = ring_all_reduce([torch.arange(4.0), torch.ones(4)])
    >>> reduced.values[1].tolist(), reduced.sent
    ([1.0, 2.0, 3.0, 4.0], [4, 4])
    """
    _check(tensors)
    count = len(tensors)
    pieces = [list(tensor.reshape(-1).clone().tensor_split(count)) for tensor in tensors]
    sent = [0] * count
    for adds in (True, False):
        for step in range(count - 1):
            # All send at once: what is sent is read before anything is changed.
            places = [(worker - step + (not adds)) % count for worker in range(count)]
            moving = [pieces[worker][place].clone() for worker, place in enumerate(places)]
            for worker, (place, piece) in enumerate(zip(places, moving, strict=True)):
                receiver = (worker + 1) % count
                pieces[receiver][place] = pieces[receiver][place] + piece if adds else piece
                sent[worker] += piece.numel()
    return Reduced([torch.cat(each).view_as(tensors[0]) for each in pieces], sent)


@dataclass
class ParameterServer:
    """Values by key on one machine: workers push gradients, which are added up, and pull the values after an update.

    An update is made when all `workers` have pushed a key: :math:`w \\leftarrow w - \\eta \\sum_i g_i`. Book: D2L 13.7. Paper: Li et al., 2014.

    >>> server = ParameterServer({"w": torch.zeros(1)}, workers=2, lr=0.5)
    >>> server.push("w", torch.ones(1)), server.pull("w").item()
    (False, 0.0)
    >>> server.push("w", torch.ones(1)), server.pull("w").item()
    (True, -1.0)
    """

    values: dict[str, Tensor]
    workers: int
    lr: float
    waiting: dict[str, list[Tensor]] = field(default_factory=dict)

    def push(self, key: str, gradient: Tensor) -> bool:
        """Hand in a gradient; whether the value was updated, since it was the last one of its turn."""
        if key not in self.values:
            raise WonderlandError(f"The parameter server has no value {key!r}.")
        if gradient.shape != self.values[key].shape:
            raise WonderlandError(
                f"The gradient of {key!r} has the shape {tuple(gradient.shape)}, and the value {tuple(self.values[key].shape)}."
            )
        pushed = self.waiting.setdefault(key, [])
        pushed.append(gradient)
        if len(pushed) < self.workers:
            return False
        self.values[key] = self.values[key] - self.lr * torch.stack(pushed).sum(0)
        pushed.clear()
        return True

    def pull(self, key: str) -> Tensor:
        """The present value."""
        if key not in self.values:
            raise WonderlandError(f"The parameter server has no value {key!r}.")
        return self.values[key].clone()


def _check(tensors: Sequence[Tensor]) -> None:
    if not tensors or any(tensor.shape != tensors[0].shape for tensor in tensors):
        raise WonderlandError("A sum over workers needs a tensor of the same shape from each of them.")
