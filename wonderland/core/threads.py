"""The number of threads that torch computes on, for the length of a block."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Compute on `count` threads inside; also a decorator. Sums of another number of threads have other last bits.

    >>> with on_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if before != count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
