"""Memory over time: how many bytes of intermediate values are alive at each step of a program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wonderland.autodiff.cost import is_view
from wonderland.autodiff.node import Step, Value


@dataclass(frozen=True)
class Moment:
    """The state of memory while one step runs: what is alive, in bytes, with what the step makes."""

    step: int
    name: str
    live: int


class Owners:
    """Which value owns the memory that a value looks at: itself, or what it is a view of."""

    def __init__(self, steps: Sequence[Step]):
        self._of: dict[int, Value] = {}
        for step in steps:
            if is_view(step) and step.inputs:
                owner = self.of(step.inputs[0])
                for value in step.outputs:
                    self._of[id(value)] = owner

    def of(self, value: Value) -> Value:
        """The value whose memory this one is."""
        return self._of.get(id(value), value)


def timeline(
    inputs: Sequence[Value], steps: Sequence[Step], outputs: Sequence[Any], constants: Sequence[Value] = ()
) -> list[Moment]:
    """Live bytes at each step; inputs and constants are there before and after, and not counted."""
    owners = Owners(steps)
    given = {id(value) for value in (*inputs, *constants)}
    last: dict[int, int] = {}
    for number, step in enumerate(steps):
        for value in (*step.inputs, *step.outputs):
            last[id(owners.of(value))] = number
    for value in outputs:
        if isinstance(value, Value):
            last[id(owners.of(value))] = len(steps)
    ends: dict[int, list[int]] = {}
    for key, number in last.items():
        ends.setdefault(number, []).append(key)
    live, held, moments = 0, {}, []
    for number, step in enumerate(steps):
        for value in step.outputs:
            owner = owners.of(value)
            if id(owner) not in given and id(owner) not in held:
                held[id(owner)] = owner.bytes
                live += owner.bytes
        moments.append(Moment(number, step.name, live))
        for key in ends.get(number, ()):
            live -= held.pop(key, 0)
    return moments


def peak(
    inputs: Sequence[Value], steps: Sequence[Step], outputs: Sequence[Any], constants: Sequence[Value] = ()
) -> int:
    """The most bytes of intermediate values that are alive at once."""
    return max((moment.live for moment in timeline(inputs, steps, outputs, constants)), default=0)


def parse(budget: int | str) -> int:
    """Bytes from a number or from words: "200MB" is 200 million, "1.5 GiB" 1.5 * 2**30.

    >>> parse("200MB"), parse("1.5KiB")
    (200000000, 1536)
    """
    from wonderland.core import WonderlandError

    if isinstance(budget, int):
        return budget
    units = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
    text = str(budget).strip().lower()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(number) :].strip() or "b"
    try:
        return int(float(number) * units[unit])
    except (ValueError, KeyError):
        raise WonderlandError(
            f"{budget!r} is no amount of memory: write bytes, or words such as '200MB' or '1.5GiB'."
        ) from None


def words(count: float) -> str:
    """An amount of memory for reading: "12.3 MB"."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{int(count)} bytes"
