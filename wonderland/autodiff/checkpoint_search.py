"""The search for a checkpointing plan: which values of the forward pass to drop and recompute, within a memory budget."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from wonderland.autodiff import cost, memory
from wonderland.autodiff.node import Step, Value
from wonderland.autodiff.writes import is_random


class IndexedProgram:
    """Forward and backward pass of a trace with values and steps as integers, so that thousands of plans can be tried.

    Step `number` reads the values `reads[number]` and makes `makes[number]`. A value has a `size` in bytes, an `owner` (the
    value whose memory it uses) and a `maker` (the step that makes it, -1 for inputs and constants). `split` is the number of
    steps of the forward pass: it ends with the last step that the first output, the function's value, depends on. `fixed`
    values come from random operators and are never recomputed. An order of execution is a list of (step, whether it is
    recomputed).
    """

    def __init__(
        self, inputs: Sequence[Value], steps: Sequence[Step], outputs: Sequence[Any], constants: Sequence[Value]
    ):
        self.steps = steps
        self.index: dict[int, int] = {}
        for value in (*inputs, *constants):
            self.index.setdefault(id(value), len(self.index))
        self.inputs_count = len(self.index)
        for step in steps:
            for value in (*step.inputs, *step.outputs):
                self.index.setdefault(id(value), len(self.index))
        self.reads = [self._indices(step.inputs) for step in steps]
        self.makes = [self._indices(step.outputs) for step in steps]
        self.views = [cost.is_view(step) and bool(step.inputs) for step in steps]
        self.flops = [cost.flops(step) for step in steps]
        self.ends = self._indices([value for value in outputs if isinstance(value, Value) and id(value) in self.index])
        owners = memory.Owners(steps)
        self.size, self.owner, self.maker = [0] * len(self.index), list(range(len(self.index))), [-1] * len(self.index)
        for number, step in enumerate(steps):
            for value in step.outputs:
                at = self.index[id(value)]
                self.maker[at], self.size[at] = number, value.bytes
                self.owner[at] = self.index[id(owners.of(value))]
        self.split = self._forward_length(outputs[0])
        self.fixed = {at for number, step in enumerate(steps) if is_random(step.target) for at in self.makes[number]}

    def _indices(self, values: Sequence[Value]) -> list[int]:
        return list(dict.fromkeys(self.index[id(value)] for value in values))

    def _forward_length(self, end: Any) -> int:
        wanted = {self.index.get(id(end))}
        length = 0
        for number in range(len(self.steps) - 1, -1, -1):
            if not wanted.isdisjoint(self.makes[number]):
                length = max(length, number + 1)
                wanted.update(self.reads[number])
        return length

    def saved(self) -> set[int]:
        """The values of the forward pass whose memory the backward pass reads."""
        read = {at for number in range(self.split, len(self.steps)) for at in self.reads[number]}
        read |= {self.owner[at] for at in read}
        return {at for at in read if 0 <= self.maker[at] < self.split}

    def order(self, dropped: set[int]) -> list[tuple[int, bool]]:
        """The order of execution when these values are dropped: each is recomputed just before the backward pass first reads it."""
        dropped_values = {at for at in dropped if 0 <= self.maker[at] < self.split}
        # Views are always recomputed, at no cost, from the kept or recomputed memory.
        dropped_values |= {at for number in range(self.split) if self.views[number] for at in self.makes[number]}
        dropped_values -= self.fixed
        order = [(number, False) for number in range(self.split)]
        again: set[int] = set()
        for number in range(self.split, len(self.steps)):
            stack = [self.maker[at] for at in reversed(self.reads[number]) if at in dropped_values and at not in again]
            while stack:
                step = stack[-1]
                if again.issuperset(self.makes[step]):
                    stack.pop()
                    continue
                missing = [self.maker[at] for at in self.reads[step] if at in dropped_values and at not in again]
                if missing:
                    stack.extend(reversed(missing))
                    continue
                stack.pop()
                order.append((step, True))
                again.update(self.makes[step])
            order.append((number, False))
        return self._needed(order)

    def _needed(self, order: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
        """The order without steps whose results are not read, since they are recomputed later."""
        recomputed = {at: moment for moment, (number, again) in enumerate(order) if again for at in self.makes[number]}
        count = len(self.index)
        wanted, kept = set(self.ends), []
        for moment in range(len(order) - 1, -1, -1):
            number, again = order[moment]
            first = count if again else 0
            if not any(at + first in wanted for at in self.makes[number]):
                continue
            kept.append((number, again))
            later = again or number >= self.split
            for at in self.reads[number]:
                wanted.add(at + count if later and recomputed.get(at, moment) < moment else at)
        kept.reverse()
        return kept

    def peak(self, order: Sequence[tuple[int, bool]], most: float = float("inf")) -> int:
        """The peak of live bytes; counting stops as soon as it exceeds `most`."""
        count = len(self.index)
        newest = list(range(count))
        owner, size = list(self.owner), list(self.size)
        runs: list[tuple[list[int], list[int]]] = []
        last: dict[int, int] = {}
        for moment, (number, again) in enumerate(order):
            reads, makes = self.reads[number], self.makes[number]
            if again or number >= self.split:
                reads = [newest[at] for at in reads]
            if again:
                fresh = []
                base = owner[reads[0]] if self.views[number] else None
                for at in makes:
                    newest[at] = len(owner)
                    fresh.append(len(owner))
                    owner.append(len(owner) if base is None else base)
                    size.append(self.size[at])
                makes = fresh
            elif number >= self.split and self.views[number]:
                for at in makes:
                    owner[at] = owner[reads[0]]
            for at in reads:
                last[owner[at]] = moment
            for at in makes:
                last[owner[at]] = moment
            runs.append((reads, makes))
        for at in self.ends:
            last[owner[at]] = len(order)
        ends: dict[int, list[int]] = {}
        for at, moment in last.items():
            ends.setdefault(moment, []).append(at)
        live, highest, allocated = 0, 0, set(range(self.inputs_count))
        for moment, (_, makes) in enumerate(runs):
            for at in makes:
                own = owner[at]
                if own not in allocated:
                    allocated.add(own)
                    live += size[own]
            if live > highest:
                highest = live
                if live > most:
                    return highest
            for at in ends.get(moment, ()):
                if at in allocated and at >= self.inputs_count:
                    allocated.discard(at)
                    live -= size[at]
        return highest

    def extra(self, order: Sequence[tuple[int, bool]]) -> int:
        """Additional floating point operations of an order."""
        return sum(self.flops[number] for number, _ in order) - sum(self.flops)

    def candidates(self) -> Iterator[list[set[int]]]:
        """Candidates, each a list of sets of values: the sets are dropped one after another until the budget is met.

        First all values that are cheap to recompute; then segments of the forward pass, for several numbers of segments,
        in order of memory freed for each operation, and in order of execution.
        """
        cheap = {
            at
            for number in range(self.split)
            for at in self.makes[number]
            if self.flops[number]
            <= 4 * sum(self.steps[number].outputs[k].numel for k in range(len(self.makes[number])))
        }
        yield [cheap - self.fixed]
        saved, last = self.saved(), self._last_forward_use()
        crossing, total = self._crossing(last), self._cumulative_bytes()
        for count in _segment_counts(self.split):
            cuts = _segment_cuts(total, crossing, count)
            pieces: list[tuple[float, set[int]]] = []
            for begin, end in zip([0, *cuts], [*cuts, self.split], strict=True):
                produced = [at for number in range(begin, end) for at in self.makes[number]]
                piece = {at for at in produced if at not in self.fixed and (end == self.split or last[at] < end)}
                freed = sum(self.size[at] for at in piece if at in saved and self.owner[at] == at)
                work = sum(self.flops[number] for number in range(begin, end))
                if piece:
                    pieces.append((freed / max(work, 1), piece))
            yield [piece for _, piece in sorted(pieces, key=lambda pair: -pair[0])]
            yield [piece for _, piece in pieces]

    def _last_forward_use(self) -> list[int]:
        """For each value, the last step of the forward pass that reads it."""
        last = [-1] * len(self.index)
        for number in range(self.split):
            for at in self.reads[number]:
                last[at] = number
        for at in self.ends:
            last[at] = self.split
        return last

    def _crossing(self, last: list[int]) -> list[int]:
        """For each step of the forward pass, the bytes alive after it that later steps of the forward pass read."""
        until: dict[int, int] = {}
        for number in range(self.split):
            for at in self.makes[number]:
                until[self.owner[at]] = max(until.get(self.owner[at], -1), last[at])
        change = [0] * (self.split + 1)
        for at, end in until.items():
            if at >= self.inputs_count and end > self.maker[at]:
                change[self.maker[at]] += self.size[at]
                change[min(end, self.split)] -= self.size[at]
        crossing, live = [], 0
        for number in range(self.split):
            live += change[number]
            crossing.append(live)
        return crossing

    def _cumulative_bytes(self) -> list[int]:
        """Bytes made by the first 0, 1, 2, ... steps of the forward pass."""
        total = [0]
        for number in range(self.split):
            total.append(total[-1] + (0 if self.views[number] else sum(self.size[at] for at in self.makes[number])))
        return total


def _segment_counts(split: int) -> list[int]:
    """Numbers of segments to try: all up to 8, then in growing strides up to 64."""
    counts, count = [], 2
    while count <= max(2, min(split // 2, 64)):
        counts.append(count)
        count = count + 1 if count < 8 else int(count * 1.3) + 1
    return counts


def _segment_cuts(total: list[int], crossing: list[int], count: int) -> list[int]:
    """Steps that cut the forward pass into `count` segments of about equal memory, each where little memory crosses."""
    cuts: set[int] = set()
    for number in range(1, count):
        low, high = total[-1] * (number - 0.5) / count, total[-1] * (number + 0.5) / count
        near = range(max(1, bisect_left(total, low)), min(len(crossing), bisect_right(total, high)))
        best = min(
            (place for place in near if place not in cuts),
            key=lambda place: (crossing[place - 1], abs(total[place] - (low + high) / 2)),
            default=None,
        )
        if best is not None:
            cuts.add(best)
    return sorted(cuts)


def cheapest_order(program: IndexedProgram, budget: int) -> tuple[list[tuple[int, bool]] | None, set[int], int]:
    """(order with the least extra work within the budget or None, values it drops, smallest peak).

    For each candidate, bisection finds how few of its sets have to be dropped to meet the budget.
    """
    best: tuple[int, list[tuple[int, bool]], set[int]] | None = None
    candidates = list(program.candidates())
    for pieces in candidates:
        low, high = 0, len(pieces)
        within = None
        while low < high or within is None:
            # First with all sets dropped: if that exceeds the budget, the candidate is useless.
            middle = high if within is None else (low + high) // 2
            if within is not None and middle == high:
                break
            dropped = set().union(*pieces[:middle])
            order = program.order(dropped)
            if program.peak(order, budget) <= budget:
                within, high = (program.extra(order), order, dropped), middle
            elif within is None:
                break
            else:
                low = middle + 1
        if within is not None and (best is None or within[0] < best[0]):
            best = within
    if best is not None:
        return best[1], best[2], budget
    smallest = min(program.peak(program.order(set().union(*pieces))) for pieces in candidates)
    return None, set(), smallest
