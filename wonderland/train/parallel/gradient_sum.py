"""GradientSum: gradients added up over processes in buckets, while the backward pass still computes others."""

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

BUCKET = 1 << 20  # numbers


class GradientSum:
    r"""Around a backward pass: afterwards each gradient is the sum of those of all processes.

    .. math:: g = \sum_{r=0}^{P-1} g_r

    Parameters are gathered in buckets, the last ones first, since the backward pass reaches these first. A bucket is sent as
    soon as all its gradients are there and the buckets before it were sent, so that sending overlaps with computing. A parameter
    that no process has used keeps no gradient. Book: D2L 13.7. Paper: Li et al., PyTorch Distributed, 2020.

    Args:
        parameters: those of the model, in the same order in every process.
        bucket: numbers in a bucket.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], bucket: int = BUCKET):
        self.buckets: list[list[nn.Parameter]] = []
        room: dict[Any, int] = {}
        for parameter in reversed([p for p in parameters if p.requires_grad]):
            sort = parameter.dtype, parameter.device
            if not self.buckets or room.get(sort, 0) < parameter.numel() or self._sort(-1) != sort:
                self.buckets.append([])
                room = {sort: bucket}
            self.buckets[-1].append(parameter)
            room[sort] -= parameter.numel()

    def _sort(self, index: int) -> Any:
        first = self.buckets[index][0]
        return first.dtype, first.device

    def __enter__(self) -> "GradientSum":
        self._place = {parameter: i for i, bucket in enumerate(self.buckets) for parameter in bucket}
        self._missing = [len(bucket) for bucket in self.buckets]
        self._sent: list[tuple[Any, Tensor]] = []
        self._hooks = [p.register_post_accumulate_grad_hook(self._ready) for p in self._place]
        return self

    def _ready(self, parameter: Tensor) -> None:
        self._missing[self._place[parameter]] -= 1  # pyright: ignore
        while len(self._sent) < len(self.buckets) and self._missing[len(self._sent)] <= 0:
            self._send()

    def _send(self) -> None:
        bucket = self.buckets[len(self._sent)]
        pieces = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        buffer = torch.cat([piece.detach().reshape(-1) for piece in pieces])
        self._sent.append((dist.all_reduce(buffer, async_op=True), buffer))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        if kind is not None:
            return
        while len(self._sent) < len(self.buckets):
            self._send()
        used = torch.tensor([float(p.grad is not None) for bucket in self.buckets for p in bucket])
        dist.all_reduce(used)
        everywhere = bool((used > 0).all())
        flags = iter(used.tolist())
        for bucket, (work, buffer) in zip(self.buckets, self._sent, strict=True):
            work.wait()
            for parameter, total in zip(bucket, buffer.split([p.numel() for p in bucket]), strict=True):
                if not next(flags) and not everywhere:
                    continue
                if parameter.grad is None:
                    parameter.grad = torch.empty_like(parameter)
                parameter.grad.copy_(total.view_as(parameter))
