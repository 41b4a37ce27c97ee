"""Group: the processes that train one model together, or the only process there is."""

import json
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from wonderland.core import WonderlandError, mix
from wonderland.core.batch import Batch

LONGEST_WAIT = timedelta(
    hours=12
)  # of a process for the first one, which measures and calibrates; a dead one is noticed at once
STORE, PARENT = "WONDERLAND_STORE", "WONDERLAND_PARENT"


class LostProcess(RuntimeError):
    """Another process of the group has died."""


@dataclass(frozen=True)
class Group:
    """The rank of this process among `count`; `nearby` of them run on this machine. A group of one does nothing.

    >>> Group().tell({"loss": 0.5}), Group().first
    ({'loss': 0.5}, True)
    """

    rank: int = 0
    count: int = 1
    nearby: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def wait(self) -> None:
        """Return once every process has come here."""
        if self.count > 1:
            dist.barrier()

    def total(self, numbers: list[float]) -> list[float]:
        """The sums over processes of some numbers."""
        return self._reduced(numbers, dist.ReduceOp.SUM)

    def largest(self, numbers: list[float]) -> list[float]:
        """The largest over processes of some numbers."""
        return self._reduced(numbers, dist.ReduceOp.MAX)

    def _reduced(self, numbers: list[float], operation: Any) -> list[float]:
        if self.count == 1:
            return numbers
        values = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(values, operation)
        return values.tolist()

    def tell(self, value: Any) -> Any:
        """What the first process has, in all of them: numbers, text, lists and dicts, as JSON."""
        if self.count == 1:
            return value
        text = json.dumps(value).encode() if self.first else b""
        size = torch.tensor([len(text)])
        dist.broadcast(size, 0)
        content = (
            torch.frombuffer(bytearray(text), dtype=torch.uint8)
            if self.first
            else torch.zeros(int(size), dtype=torch.uint8)
        )
        dist.broadcast(content, 0)
        return json.loads(content.numpy().tobytes())

    def share(self, batch: Batch) -> Batch:
        """The examples of a batch that this process learns from: the same division for the same number of processes."""
        if self.count == 1:
            return batch
        if batch.axis is None:
            raise WonderlandError(
                "A batch of this data is one piece, which processes cannot share: fit it with one process."
            )
        if len(batch) < self.count:
            raise WonderlandError(
                f"A batch of {len(batch)} examples cannot be shared by {self.count} processes: take a larger --batch-size, or fewer processes."
            )
        return batch.split(self.count)[self.rank]

    def seed(self, base: int, step: int) -> None:
        """Seed the global generators for a step, so that no state of a generator has to be kept for each process."""
        if self.count == 1:
            return
        seed = mix(base % 2**63, step, self.rank)
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 - a user's module may draw from it
        random.seed(seed)


_alone = threading.local()


def current() -> Group:
    """The group that this process has joined; one process where it has joined none, or inside `alone`."""
    if getattr(_alone, "on", False) or not (dist.is_available() and dist.is_initialized()):
        return Group()
    count = dist.get_world_size()
    return Group(dist.get_rank(), count, int(os.environ.get("LOCAL_WORLD_SIZE", count)))


@contextmanager
def alone() -> Iterator[None]:
    """Work that one process does by itself, such as a measurement, although it is in a group."""
    before = getattr(_alone, "on", False)
    _alone.on = True
    try:
        yield
    finally:
        _alone.on = before


def begun_again() -> bool:
    """Whether the launcher has begun this process again after another one died."""
    return _whole("TORCHELASTIC_RESTART_COUNT", 0) > 0


@contextmanager
def joined() -> Iterator[Group]:
    """The group that `wonderland fit --processes` or torchrun started this process for; one process without these."""
    count = _whole("WORLD_SIZE", 1)
    if count < 2 or dist.is_initialized():
        yield current()
        return
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    rank, store = _whole("RANK", 0), os.environ.get(STORE)
    end_with_parent()
    try:
        if store:
            dist.init_process_group(
                backend, init_method=f"file://{store}", rank=rank, world_size=count, timeout=LONGEST_WAIT
            )
        else:
            dist.init_process_group(backend, timeout=LONGEST_WAIT)
    except (RuntimeError, ValueError) as error:
        raise WonderlandError(
            f"The {count} processes cannot reach each other: {str(error).splitlines()[0][:200]}"
        ) from error
    try:
        yield current()
    except RuntimeError as error:
        if not any(word in str(error) for word in ("gloo", "Gloo", "NCCL", "Connection")):
            raise
        raise LostProcess("Another process of this training is gone, so this one ends too.") from error
    dist.destroy_process_group()


def _whole(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else default


def end_with_parent() -> None:
    """End this process when the launcher that holds the other end of a pipe is gone, even if it was killed."""
    text = os.environ.get(PARENT, "")
    if not text.isdigit():
        return

    def watch() -> None:
        os.read(int(text), 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent").start()
