"""Plans: what to forget in a forward pass and compute again in the backward pass, so that memory stays within a budget."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from wonderland.autodiff import cost, memory
from wonderland.autodiff.node import Step, Value
from wonderland.autodiff.writes import draws


class Numbered:
    """A program of two passes in whole numbers, so that thousands of plans can be tried: values and steps by their places.

    `split` is where the backward pass begins: after the last step that the first output, the value, depends on.
    """

    def __init__(
        self, inputs: Sequence[Value], steps: Sequence[Step], outputs: Sequence[Any], constants: Sequence[Value]
    ):
        self.steps = steps
        self.place: dict[int, int] = {}
        for value in (*inputs, *constants):
            self.place.setdefault(id(value), len(self.place))
        self.given = len(self.place)
        for step in steps:
            for value in (*step.inputs, *step.outputs):
                self.place.setdefault(id(value), len(self.place))
        self.reads = [self._places(step.inputs) for step in steps]
        self.makes = [self._places(step.outputs) for step in steps]
        self.views = [cost.is_view(step) and bool(step.inputs) for step in steps]
        self.flops = [cost.flops(step) for step in steps]
        self.ends = self._places([value for value in outputs if isinstance(value, Value) and id(value) in self.place])
        owners = memory.Owners(steps)
        self.size, self.owner, self.maker = [0] * len(self.place), list(range(len(self.place))), [-1] * len(self.place)
        for number, step in enumerate(steps):
            for value in step.outputs:
                at = self.place[id(value)]
                self.maker[at], self.size[at] = number, value.bytes
                self.owner[at] = self.place[id(owners.of(value))]
        self.split = self._length(outputs[0])
        self.fixed = {at for number, step in enumerate(steps) if draws(step.target) for at in self.makes[number]}

    def _places(self, values: Sequence[Value]) -> list[int]:
        return list(dict.fromkeys(self.place[id(value)] for value in values))

    def _length(self, end: Any) -> int:
        wanted = {self.place.get(id(end))}
        length = 0
        for number in range(len(self.steps) - 1, -1, -1):
            if not wanted.isdisjoint(self.makes[number]):
                length = max(length, number + 1)
                wanted.update(self.reads[number])
        return length

    def saved(self) -> set[int]:
        """The values of the forward pass whose memory the backward pass reads."""
        found = {at for number in range(self.split, len(self.steps)) for at in self.reads[number]}
        found |= {self.owner[at] for at in found}
        return {at for at in found if 0 <= self.maker[at] < self.split}

    def order(self, dropped: set[int]) -> list[tuple[int, bool]]:
        """The steps by number in the order they run, each with whether it runs again: just before it is first read."""
        gone = {at for at in dropped if 0 <= self.maker[at] < self.split}
        # A view costs nothing: it is made anew, of what was kept or of what was computed again.
        gone |= {at for number in range(self.split) if self.views[number] for at in self.makes[number]}
        gone -= self.fixed
        found = [(number, False) for number in range(self.split)]
        again: set[int] = set()
        for number in range(self.split, len(self.steps)):
            stack = [self.maker[at] for at in reversed(self.reads[number]) if at in gone and at not in again]
            while stack:
                step = stack[-1]
                if again.issuperset(self.makes[step]):
                    stack.pop()
                    continue
                missing = [self.maker[at] for at in self.reads[step] if at in gone and at not in again]
                if missing:
                    stack.extend(reversed(missing))
                    continue
                stack.pop()
                found.append((step, True))
                again.update(self.makes[step])
            found.append((number, False))
        return self._needed(found)

    def _needed(self, order: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
        """The order without steps of the forward pass that nobody reads any more, because they run again."""
        made = {at: moment for moment, (number, again) in enumerate(order) if again for at in self.makes[number]}
        count = len(self.place)
        wanted, kept = set(self.ends), []
        for moment in range(len(order) - 1, -1, -1):
            number, again = order[moment]
            first = count if again else 0
            if not any(at + first in wanted for at in self.makes[number]):
                continue
            kept.append((number, again))
            later = again or number >= self.split
            for at in self.reads[number]:
                wanted.add(at + count if later and made.get(at, moment) < moment else at)
        kept.reverse()
        return kept

    def peak(self, order: Sequence[tuple[int, bool]], most: float = float("inf")) -> int:
        """The most bytes alive at once; counting ends where it is more than `most`."""
        count = len(self.place)
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
        live, highest, held = 0, 0, set(range(self.given))
        for moment, (_, makes) in enumerate(runs):
            for at in makes:
                own = owner[at]
                if own not in held:
                    held.add(own)
                    live += size[own]
            if live > highest:
                highest = live
                if live > most:
                    return highest
            for at in ends.get(moment, ()):
                if at in held and at >= self.given:
                    held.discard(at)
                    live -= size[at]
        return highest

    def extra(self, order: Sequence[tuple[int, bool]]) -> int:
        """Operations more than without it."""
        return sum(self.flops[number] for number, _ in order) - sum(self.flops)

    def ways(self) -> Iterator[list[set[int]]]:
        """Ways to forget, each a list of sets of values, forgotten one set after the other until the budget is kept."""
        cheap = {
            at
            for number in range(self.split)
            for at in self.makes[number]
            if self.flops[number]
            <= 4 * sum(self.steps[number].outputs[k].numel for k in range(len(self.makes[number])))
        }
        yield [cheap - self.fixed]
        saved, last = self.saved(), self._last()
        crossing, total = self._crossing(last), self._total()
        for count in _counts(self.split):
            cuts = _cuts(total, crossing, count)
            pieces: list[tuple[float, set[int]]] = []
            for begin, end in zip([0, *cuts], [*cuts, self.split], strict=True):
                made = [at for number in range(begin, end) for at in self.makes[number]]
                piece = {at for at in made if at not in self.fixed and (end == self.split or last[at] < end)}
                freed = sum(self.size[at] for at in piece if at in saved and self.owner[at] == at)
                work = sum(self.flops[number] for number in range(begin, end))
                if piece:
                    pieces.append((freed / max(work, 1), piece))
            yield [piece for _, piece in sorted(pieces, key=lambda pair: -pair[0])]
            yield [piece for _, piece in pieces]

    def _last(self) -> list[int]:
        """For each value the last step of the forward pass that reads it."""
        last = [-1] * len(self.place)
        for number in range(self.split):
            for at in self.reads[number]:
                last[at] = number
        for at in self.ends:
            last[at] = self.split
        return last

    def _crossing(self, last: list[int]) -> list[int]:
        """For each place after a step of the forward pass, the bytes that a later step of it reads."""
        until: dict[int, int] = {}
        for number in range(self.split):
            for at in self.makes[number]:
                until[self.owner[at]] = max(until.get(self.owner[at], -1), last[at])
        change = [0] * (self.split + 1)
        for at, end in until.items():
            if at >= self.given and end > self.maker[at]:
                change[self.maker[at]] += self.size[at]
                change[min(end, self.split)] -= self.size[at]
        found, live = [], 0
        for number in range(self.split):
            live += change[number]
            found.append(live)
        return found

    def _total(self) -> list[int]:
        total = [0]
        for number in range(self.split):
            total.append(total[-1] + (0 if self.views[number] else sum(self.size[at] for at in self.makes[number])))
        return total


def _counts(split: int) -> list[int]:
    found, count = [], 2
    while count <= max(2, min(split // 2, 64)):
        found.append(count)
        count = count + 1 if count < 8 else int(count * 1.3) + 1
    return found


def _cuts(total: list[int], crossing: list[int], count: int) -> list[int]:
    """Places that cut the forward pass in `count` pieces of about the same memory, each where little crosses nearby."""
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


def least(program: Numbered, budget: int) -> tuple[list[tuple[int, bool]] | None, set[int], int]:
    """The order of steps that keeps the budget with the least extra work found, what it forgets, and the smallest peak.

    Of each way to forget, the shortest beginning that keeps the budget is found by halving.
    """
    best: tuple[int, list[tuple[int, bool]], set[int]] | None = None
    ways = list(program.ways())
    for pieces in ways:
        low, high = 0, len(pieces)
        found = None
        while low < high or found is None:
            # The whole way first: where that is too much, nothing shorter is tried.
            middle = high if found is None else (low + high) // 2
            if found is not None and middle == high:
                break
            dropped = set().union(*pieces[:middle])
            order = program.order(dropped)
            if program.peak(order, budget) <= budget:
                found, high = (program.extra(order), order, dropped), middle
            elif found is None:
                break
            else:
                low = middle + 1
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    if best is not None:
        return best[1], best[2], budget
    smallest = min(program.peak(program.order(set().union(*pieces))) for pieces in ways)
    return None, set(), smallest
