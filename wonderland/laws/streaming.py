"""Streaming: a sequence in pieces, each continued from the state of the last, gives what it gives as a whole."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.laws.compare import apart, gap, same_bits, slopes
from wonderland.laws.padding_invariance import hidden, padded
from wonderland.laws.subject import Subject, Unfit, law
from wonderland.laws.verdict import Verdict

TOLERANCE, SLOPES = 1e-9, 1e-8
_SHORT = 2  # such sequences are also tried repeated, so that every cutting has something to cut


class _Broken(Exception):
    """Where streaming goes wrong."""

    def __init__(self, error: float, tolerance: float, words: str):
        super().__init__(words)
        self.error, self.tolerance = error, tolerance


@law
def streaming(subject: Subject) -> Verdict:
    """The whole sequence = several cuttings = single steps: outputs (1e-9) and gradients (1e-8), of inputs and parameters.

    Also where no gradients are asked for, with a mask, where the block takes one, and with pieces that each have padding of their own. One state continued
    twice gives the same bits, and is not written to.
    """
    if not callable(getattr(subject.block, "stream", None)):
        raise Unfit("it has no stream")
    if getattr(subject.block, "causal", True) is False:
        raise Unfit("it is not causal, so it does not stream")
    if subject.positions()[:2] != (1, 1) or subject.example.axis("batch") != 0:
        raise Unfit("streaming is checked where the batch comes first and time second")
    try:
        t = subject.x.shape[1]
        errors = [_cut(subject, subject.x, None, _cuttings(t, subject))]
        back = subject.x.flip(1)
        if t <= _SHORT:
            errors.append(_cut(subject, torch.cat([back, subject.x], 1), None, [[t, t]]))
        note = _again(subject, t)
        if subject.takes("mask", "stream") and subject.takes("mask"):
            x, mask = padded(subject, t)
            errors.append(_cut(subject, x, mask, _cuttings(x.shape[1], subject)[:1]))
            errors.append(_ragged(subject, torch.cat([subject.x, back, subject.x], 1) if t <= _SHORT else subject.x))
    except _Broken as place:
        return subject.verdict(place.error, place.tolerance, str(place))
    return subject.verdict(max(errors), TOLERANCE * subject.coarse, note=note)


def _cuttings(t: int, subject: Subject) -> list[list[int]]:
    """Ways to cut t positions: single steps, halves, and one at random."""
    if t == 1:
        return [[1]]
    ways = [[1] * t, [t // 2, t - t // 2]]
    left, drawn = t, []
    while left:
        size = int(torch.randint(1, min(left, max(3, t // 3)) + 1, (), generator=subject.generator))
        drawn.append(size)
        left -= size
    ways.append(drawn)
    return [way for number, way in enumerate(ways) if way not in ways[:number]]


def _cut(subject: Subject, x: Tensor, mask: Tensor | None, ways: list[list[int]]) -> float:
    """Compare cuttings of a sequence with the whole; returns the largest error."""
    x = x.clone().requires_grad_(x.is_floating_point())
    leaves = [value for _, value in subject.parameters()]
    names = [name for name, _ in subject.parameters()]
    if x.requires_grad:
        leaves, names = [x, *leaves], ["the input", *names]
    whole = subject.run(x, more=None if mask is None else {"mask": mask})
    weights = subject.noise(whole.detach())
    expected = slopes(whole, weights, leaves)
    worst = 0.0
    for sizes in ways:
        kind = f"cut as {'+'.join(map(str, sizes)) if len(sizes) <= 6 else f'{len(sizes)} single steps'}"
        kind += "" if mask is None else ", with a mask"
        found = _joined(subject, x, mask, sizes, kind)
        worst = max(worst, _compared(subject, found, whole, sizes, kind))
        with torch.no_grad():  # blocks may go another way where no slopes are asked for
            alone = _joined(subject, x, mask, sizes, kind)
        worst = max(worst, _compared(subject, alone, whole.detach(), sizes, f"{kind}, without gradients"))
        far, index = apart(slopes(found, weights, leaves), expected)
        if not far <= SLOPES * subject.coarse:
            words = f"the gradient by {names[index]} differs from that of the whole, {kind}"
            raise _Broken(far, SLOPES * subject.coarse, words)
    return worst


def _joined(subject: Subject, x: Tensor, mask: Tensor | None, sizes: list[int], kind: str) -> Tensor:
    """The outputs of the pieces, one after the other."""
    pieces, state, start = [], None, 0
    for number, piece in enumerate(x.split(sizes, 1)):
        part = None if mask is None else mask[:, start : start + sizes[number]]
        y, state = subject.stream(piece, state, part, when=f"at piece {number}, {kind}")
        pieces.append(y)
        start += sizes[number]
    return torch.cat(pieces, 1)


def _compared(subject: Subject, found: Tensor, whole: Tensor, sizes: Sequence[int], kind: str) -> float:
    error, amount, place = gap(found, whole)
    if error <= TOLERANCE * subject.coarse:
        return error
    if not place:
        words = f"the pieces together have shape {tuple(found.shape)} and the whole {tuple(whole.shape)}, {kind}"
        raise _Broken(error, TOLERANCE * subject.coarse, words)
    # Later positions repeat a fault that is in the state, so the first one is the one to look at.
    wrong = ((found - whole).abs().flatten(2).amax(2) <= TOLERANCE * subject.coarse * whole.abs().max()).logical_not()
    first = int(wrong.any(0).nonzero()[0])
    piece, start = 0, 0
    while start + sizes[piece] <= first:
        start += sizes[piece]
        piece += 1
    words = f"{subject.place(place)} differs by {amount:.2g} from the whole, {kind}"
    at = f"output {first}, position {first - start} of piece {piece}"
    raise _Broken(error, TOLERANCE * subject.coarse, f"{words}; the first that differs is {at}")


def _again(subject: Subject, t: int) -> str:
    """One state continued twice; returns a note on its size."""
    # Within the length of the example where it can be cut: tables of positions may end there.
    half = t // 2
    first, rest = (subject.x[:, :half], subject.x[:, half:]) if t > 1 else (subject.x, subject.x)
    with torch.no_grad():
        _, short = subject.stream(subject.x[:, :1], None)
        _, full = subject.stream(subject.x, None)
        _, state = subject.stream(first, None)
        kept = [value.clone() for value in tensors(state)]
        one, _ = subject.stream(rest, state, when="from a state")
        for number, (before, now) in enumerate(zip(kept, tensors(state), strict=True)):
            if not same_bits(before, now):
                raise _Broken(float("inf"), 0.0, f"tensor {number} of the state it was given was written to")
        two, _ = subject.stream(rest, state, when="from a state continued twice")
    if not same_bits(one, two):
        _, amount, place = gap(two, one)
        words = f"{subject.place(place)} differs by {amount:.2g} when one state is continued a second time"
        raise _Broken(float("inf"), 0.0, words)
    before, after = _numbers(short), _numbers(full)
    if before == after:
        return f"a state of {after} numbers a row, whatever the length" if after else "no state"
    return f"a state of {before} numbers a row after 1 token and {after} after {t}"


def _numbers(state: Any) -> int:
    return sum(
        value.numel() // max(len(value), 1)
        for value in tensors(state)
        if value.is_floating_point() or value.is_complex()
    )


def tensors(state: Any) -> list[Tensor]:
    """The tensors of a nested state, in order."""
    if isinstance(state, Tensor):
        return [state]
    entries = state.values() if isinstance(state, dict) else state if isinstance(state, tuple | list) else ()
    return [found for entry in entries for found in tensors(entry)]


def _ragged(subject: Subject, x: Tensor) -> float:
    """Pieces that each have padding of their own = each row's real tokens alone, in one sequence."""
    third = x.shape[1] // 3
    sizes = [third, third, x.shape[1] - 2 * third]
    real = [torch.randint(0, size + 1, (len(x),), generator=subject.generator) for size in sizes]
    for count, size, hidden_tokens in zip(real, sizes, (0, 1, 0), strict=True):
        count[0] = size - hidden_tokens  # at least one row goes on after padding, from a state that is not the first
    real[-1] = real[-1].clamp(min=1)
    masks = [torch.arange(size) < count.unsqueeze(1) for size, count in zip(sizes, real, strict=True)]
    mask = torch.cat(masks, 1).to(x.device)
    x = hidden(subject, x, mask)
    pieces, state = [], None
    with torch.no_grad():
        for number, (piece, part) in enumerate(zip(x.split(sizes, 1), masks, strict=True)):
            y, state = subject.stream(
                piece, state, part.to(x.device), when=f"at piece {number}, each with padding of its own"
            )
            pieces.append(y)
        found = torch.cat(pieces, 1)
        worst = 0.0
        for row in range(len(x)):
            example = subject.example.rows(torch.tensor([row], device=x.device))
            alone = subject.run(x[row : row + 1, mask[row]], example=example, when=f"on the real tokens of row {row}")
            error, amount, place = gap(found[row : row + 1, mask[row]], alone)
            worst = max(worst, error)
            if not error <= TOLERANCE * subject.coarse:
                spot = int(mask[row].nonzero()[place[1], 0]) if place else 0
                words = f"output {spot} (row {row}) differs by {amount:.2g} from its real tokens alone"
                pieces = " and ".join(f"{int(count[row])} of {size}" for count, size in zip(real, sizes, strict=True))
                raise _Broken(error, TOLERANCE * subject.coarse, f"{words}, in pieces with {pieces} tokens real")
    return worst
