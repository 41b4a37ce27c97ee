"""Memory over time: how many bytes of intermediate values are alive at each step of a program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wonderland.autodiff.cost import is_view
from wonderland.autodiff.node import Step, Value


@dataclass(frozen=True)
class Moment:
    """Memory while one step runs: `live` bytes, the step's outputs included."""

    step: int
    name: str
    live: int


class Owners:
    """For each value, the value that owns its memory: itself, or what it is a view of."""

    def __init__(self, steps: Sequence[Step]):
        self._of: dict[int, Value] = {}
        for step in steps:
            if is_view(step) and step.inputs:
                owner = self.of(step.inputs[0])
                for value in step.outputs:
                    self._of[id(value)] = owner

    def of(self, value: Value) -> Value:
        """The value that owns the memory of this one."""
        return self._of.get(id(value), value)


def timeline(
    inputs: Sequence[Value], steps: Sequence[Step], outputs: Sequence[Any], constants: Sequence[Value] = ()
) -> list[Moment]:
    """Live bytes at each step. Inputs and constants are not counted: they exist before and after the program."""
    owners = Owners(steps)
    uncounted = {id(value) for value in (*inputs, *constants)}
    last_use: dict[int, int] = {}
    for number, step in enumerate(steps):
        for value in (*step.inputs, *step.outputs):
            last_use[id(owners.of(value))] = number
    for value in outputs:
        if isinstance(value, Value):
            last_use[id(owners.of(value))] = len(steps)
    freed_after: dict[int, list[int]] = {}
    for key, number in last_use.items():
        freed_after.setdefault(number, []).append(key)
    live, allocated, moments = 0, {}, []
    for number, step in enumerate(steps):
        for value in step.outputs:
            owner = owners.of(value)
            if id(owner) not in uncounted and id(owner) not in allocated:
                allocated[id(owner)] = owner.bytes
                live += owner.bytes
        moments.append(Moment(number, step.name, live))
        for key in freed_after.get(number, ()):
            live -= allocated.pop(key, 0)
    return moments


def peak(
    inputs: Sequence[Value], steps: Sequence[Step], outputs: Sequence[Any], constants: Sequence[Value] = ()
) -> int:
    """The most bytes of intermediate values that are alive at once."""
    return max((moment.live for moment in timeline(inputs, steps, outputs, constants)), default=0)


def parse_bytes(budget: int | str) -> int:
    """Bytes from a number or a text: "200MB" is 200 million, "1.5 GiB" is 1.5 * 2**30.

    >>> parse_bytes("200MB"), parse_bytes("1.5KiB")
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
            f"{budget!r} is not an amount of memory: give bytes as an integer, or a text such as '200MB' or '1.5GiB'."
        ) from None


def format_bytes(count: float) -> str:
    """An amount of memory as text: "12.3 MB"."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{int(count)} bytes"
