"""Checkpointing of a chain of blocks: the cost of a choice, every square root of n, and the optimum by dynamic programming."""

import math
from collections.abc import Sequence
from functools import cache

from wonderland.core import WonderlandError


def evaluations(blocks: int, stored: Sequence[int]) -> int:
    """How many block evaluations the gradient of a chain takes when only the outputs of blocks `stored` (from 1) are kept.

    The others are recomputed in the backward pass, once each, from the nearest stored output before them. The book's figure keeps
    blocks 1, 2 and 4 of 4: five evaluations instead of four, 1.25 times the work. Book: Alice 6.3.

    >>> evaluations(4, [1, 2, 4]) / 4
    1.25
    """
    for block in stored:
        if not 1 <= block <= blocks:
            raise WonderlandError(f"A chain of {blocks} blocks has no block {block}: blocks are counted from 1.")
    return blocks + len(set(range(1, blocks + 1)) - set(stored) - {blocks})


def square_root(blocks: int) -> list[int]:
    r"""The blocks to store so that about :math:`2\sqrt n` outputs are alive at once, at the cost of less than one more forward pass.

    >>> square_root(16)
    [4, 8, 12, 16]
    """
    stride = max(1, math.isqrt(blocks - 1) + 1 if blocks > 1 else 1)
    return sorted({*range(stride, blocks + 1, stride), blocks})


def alive(blocks: int, stored: Sequence[int]) -> int:
    """The most outputs alive at once in the backward pass of a chain: the stored ones and the segment being recomputed.

    >>> alive(16, square_root(16)), alive(16, range(1, 17))
    (7, 16)
    """
    kept = sorted({0, *stored, blocks})
    most = 0
    for number in range(len(kept) - 1, 0, -1):
        begin, end = kept[number - 1], kept[number]
        # Stored outputs after this segment are freed by now; its own end is stored or the last output.
        most = max(most, number + (end - begin - 1))
    return most


def optimal(work: Sequence[float], sizes: Sequence[int], budget: int) -> tuple[float, list[int]]:
    r"""The least work for the gradient of a chain within a memory budget, and which inputs to store in the first sweep.

    `work[k]` is the cost of the forward pass of block k (from 0), `sizes[k]` the memory of its input; the first input is
    given and not counted. The backward pass of a block needs its input. Let :math:`R(i, j, m)` be the work still to do for
    blocks i to j - 1 when a sweep from the stored input of i has just reached that of j - 1 and there is room for m:

    .. math::
        R(i, j, m) = \min_{i < k < j,\, s_k \le m} R(k, j, m - s_k) + \sum_{t=i}^{k-2} w_t + R(i, k, m),

    or, with nothing stored, a sweep from i for every input. The first sweep runs to the end of the chain, so it keeps only
    what it stores. Returns the total work, first sweep included, and the inputs that the first sweep stores.

    >>> optimal([1, 1, 1, 1], [1, 1, 1, 1], budget=3)
    (4.0, [1, 2, 3])
    >>> optimal([1, 1, 1, 1], [1, 1, 1, 1], budget=2)
    (5.0, [1, 2])
    """
    count = len(work)
    if count != len(sizes) or not count:
        raise WonderlandError(
            f"A chain needs one size for each block's work, and at least one block: got {count} works and {len(sizes)} sizes."
        )
    if any(size < 0 for size in sizes) or any(cost < 0 for cost in work) or budget < 0:
        raise WonderlandError("Work, sizes and budget of a chain must not be negative.")
    before = [0.0]
    for cost in work:
        before.append(before[-1] + cost)

    def sweep(i: int, k: int) -> float:
        return before[k] - before[i]

    @cache
    def least(i: int, j: int, room: int, first: bool) -> tuple[float, int]:
        """(work still to do for blocks i to j - 1, the first input to store after i; 0 for none)."""
        if j - i == 1:
            return 0.0, 0
        if first:
            best = (sweep(i, j - 1) + least(i, j, room, False)[0], 0)
        else:
            best = (sum(sweep(i, t) for t in range(i + 1, j - 1)), 0)
        for k in range(i + 1, j):
            if sizes[k] <= room:
                total = least(k, j, room - sizes[k], first)[0] + sweep(i, k - 1) + least(i, k, room, False)[0]
                best = min(best, (total, k), key=lambda pair: pair[0])
        return best

    extra, place = least(0, count, budget, True)
    stored, room = [], budget
    while place:
        stored.append(place)
        room -= sizes[place]
        place = least(place, count, room, True)[1]
    return float(before[-1] + extra), stored
