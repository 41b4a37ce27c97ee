"""Streaming: a sequence in pieces, each continued from the state of the one before, gives the outputs of the whole."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.laws.compare import gap, gradient_gap, same_bits, weighted_gradients
from wonderland.laws.padding_invariance import random_padding, with_padding
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE, GRADIENT_TOLERANCE = 1e-9, 1e-8
_SHORT_LENGTH = 2  # sequences up to this length are also checked repeated, so that there is something to cut


class _Broken(Exception):
    """Streaming differs from the whole: error, tolerance, and where."""

    def __init__(self, error: float, tolerance: float, witness: str):
        super().__init__(witness)
        self.error, self.tolerance = error, tolerance


@law
def streaming(subject: Subject) -> Verdict:
    """Whole sequence, several cuttings and single steps agree: outputs to 1e-9, gradients of inputs and parameters to 1e-8.

    Also checked under no_grad, with a mask if the block takes one, and with padding inside each piece. One state continued
    twice gives bitwise equal outputs and is not written to.
    """
    if not callable(getattr(subject.block, "stream", None)):
        raise NotApplicable("it has no stream")
    if getattr(subject.block, "causal", True) is False:
        raise NotApplicable("it is not causal, so it does not stream")
    if subject.positions()[:2] != (1, 1) or subject.example.axis("batch") != 0:
        raise NotApplicable("streaming is checked where the batch comes first and time second")
    try:
        t = subject.x.shape[1]
        errors = [_compare_cuttings(subject, subject.x, None, _cuttings(t, subject))]
        reversed_x = subject.x.flip(1)
        if t <= _SHORT_LENGTH:
            errors.append(_compare_cuttings(subject, torch.cat([reversed_x, subject.x], 1), None, [[t, t]]))
        note = _continue_state_twice(subject, t)
        if subject.takes("mask", "stream") and subject.takes("mask"):
            x, mask = random_padding(subject, t)
            errors.append(_compare_cuttings(subject, x, mask, _cuttings(x.shape[1], subject)[:1]))
            errors.append(
                _pieces_with_own_padding(
                    subject, torch.cat([subject.x, reversed_x, subject.x], 1) if t <= _SHORT_LENGTH else subject.x
                )
            )
    except _Broken as failure:
        return subject.verdict(failure.error, failure.tolerance, str(failure))
    return subject.verdict(max(errors), TOLERANCE * subject.tolerance_factor, note=note)


def _cuttings(t: int, subject: Subject) -> list[list[int]]:
    """Piece lengths that cut t positions: single steps, halves, and random lengths."""
    if t == 1:
        return [[1]]
    cuttings = [[1] * t, [t // 2, t - t // 2]]
    left, drawn = t, []
    while left:
        size = int(torch.randint(1, min(left, max(3, t // 3)) + 1, (), generator=subject.generator))
        drawn.append(size)
        left -= size
    cuttings.append(drawn)
    return [cutting for number, cutting in enumerate(cuttings) if cutting not in cuttings[:number]]


def _compare_cuttings(subject: Subject, x: Tensor, mask: Tensor | None, cuttings: list[list[int]]) -> float:
    """Compare cuttings of a sequence with the whole, outputs and gradients; returns the largest error of outputs."""
    x = x.clone().requires_grad_(x.is_floating_point())
    leaves = [value for _, value in subject.parameters()]
    names = [name for name, _ in subject.parameters()]
    if x.requires_grad:
        leaves, names = [x, *leaves], ["the input", *names]
    whole = subject.run(x, more=None if mask is None else {"mask": mask})
    weights = subject.noise(whole.detach())
    expected = weighted_gradients(whole, weights, leaves)
    worst = 0.0
    for sizes in cuttings:
        kind = f"cut as {'+'.join(map(str, sizes)) if len(sizes) <= 6 else f'{len(sizes)} single steps'}"
        kind += "" if mask is None else ", with a mask"
        joined = _stream_pieces(subject, x, mask, sizes, kind)
        worst = max(worst, _compare_with_whole(subject, joined, whole, sizes, kind))
        with torch.no_grad():  # blocks may compute differently under no_grad
            no_grad = _stream_pieces(subject, x, mask, sizes, kind)
        worst = max(worst, _compare_with_whole(subject, no_grad, whole.detach(), sizes, f"{kind}, without gradients"))
        error, index = gradient_gap(weighted_gradients(joined, weights, leaves), expected)
        if not error <= GRADIENT_TOLERANCE * subject.tolerance_factor:
            witness = f"the gradient by {names[index]} differs from that of the whole, {kind}"
            raise _Broken(error, GRADIENT_TOLERANCE * subject.tolerance_factor, witness)
    return worst


def _stream_pieces(subject: Subject, x: Tensor, mask: Tensor | None, sizes: list[int], kind: str) -> Tensor:
    """The outputs of the pieces, concatenated."""
    pieces, state, start = [], None, 0
    for number, piece in enumerate(x.split(sizes, 1)):
        part = None if mask is None else mask[:, start : start + sizes[number]]
        y, state = subject.stream(piece, state, part, when=f"at piece {number}, {kind}")
        pieces.append(y)
        start += sizes[number]
    return torch.cat(pieces, 1)


def _compare_with_whole(subject: Subject, joined: Tensor, whole: Tensor, sizes: Sequence[int], kind: str) -> float:
    error, amount, place = gap(joined, whole)
    if error <= TOLERANCE * subject.tolerance_factor:
        return error
    if not place:
        witness = f"the pieces together have shape {tuple(joined.shape)} and the whole {tuple(whole.shape)}, {kind}"
        raise _Broken(error, TOLERANCE * subject.tolerance_factor, witness)
    # An error in the state carries over to later positions, so the first position that differs is reported.
    wrong = (
        (joined - whole).abs().flatten(2).amax(2) <= TOLERANCE * subject.tolerance_factor * whole.abs().max()
    ).logical_not()
    first = int(wrong.any(0).nonzero()[0])
    piece, start = 0, 0
    while start + sizes[piece] <= first:
        start += sizes[piece]
        piece += 1
    witness = f"{subject.place(place)} differs by {amount:.2g} from the whole, {kind}"
    at = f"output {first}, position {first - start} of piece {piece}"
    raise _Broken(error, TOLERANCE * subject.tolerance_factor, f"{witness}; the first that differs is {at}")


def _continue_state_twice(subject: Subject, t: int) -> str:
    """Continue one state twice; returns a note on its size."""
    # Not longer than the example, where it can be cut: tables of positions may end there.
    half = t // 2
    first, rest = (subject.x[:, :half], subject.x[:, half:]) if t > 1 else (subject.x, subject.x)
    with torch.no_grad():
        _, short = subject.stream(subject.x[:, :1], None)
        _, full = subject.stream(subject.x, None)
        _, state = subject.stream(first, None)
        copies = [value.clone() for value in tensors(state)]
        first_out, _ = subject.stream(rest, state, when="from a state")
        for number, (before, now) in enumerate(zip(copies, tensors(state), strict=True)):
            if not same_bits(before, now):
                raise _Broken(float("inf"), 0.0, f"tensor {number} of the state it was given was written to")
        second_out, _ = subject.stream(rest, state, when="from a state continued twice")
    if not same_bits(first_out, second_out):
        _, amount, place = gap(second_out, first_out)
        witness = f"{subject.place(place)} differs by {amount:.2g} when one state is continued a second time"
        raise _Broken(float("inf"), 0.0, witness)
    after_one, after_all = _numbers_per_row(short), _numbers_per_row(full)
    if after_one == after_all:
        return f"a state of {after_all} numbers a row, whatever the length" if after_all else "no state"
    return f"a state of {after_one} numbers a row after 1 token and {after_all} after {t}"


def _numbers_per_row(state: Any) -> int:
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
    return [tensor for entry in entries for tensor in tensors(entry)]


def _pieces_with_own_padding(subject: Subject, x: Tensor) -> float:
    """Pieces that each contain padding give the outputs of each row's real tokens in one sequence; returns the largest error."""
    third = x.shape[1] // 3
    sizes = [third, third, x.shape[1] - 2 * third]
    real = [torch.randint(0, size + 1, (len(x),), generator=subject.generator) for size in sizes]
    for count, size, padding in zip(real, sizes, (0, 1, 0), strict=True):
        count[0] = size - padding  # the first row continues after padding, from a state that is not empty
    real[-1] = real[-1].clamp(min=1)
    masks = [torch.arange(size) < count.unsqueeze(1) for size, count in zip(sizes, real, strict=True)]
    mask = torch.cat(masks, 1).to(x.device)
    x = with_padding(subject, x, mask)
    pieces, state = [], None
    with torch.no_grad():
        for number, (piece, part) in enumerate(zip(x.split(sizes, 1), masks, strict=True)):
            y, state = subject.stream(
                piece, state, part.to(x.device), when=f"at piece {number}, each with padding of its own"
            )
            pieces.append(y)
        joined = torch.cat(pieces, 1)
        worst = 0.0
        for row in range(len(x)):
            example = subject.example.rows(torch.tensor([row], device=x.device))
            alone = subject.run(x[row : row + 1, mask[row]], example=example, when=f"on the real tokens of row {row}")
            error, amount, place = gap(joined[row : row + 1, mask[row]], alone)
            worst = max(worst, error)
            if not error <= TOLERANCE * subject.tolerance_factor:
                spot = int(mask[row].nonzero()[place[1], 0]) if place else 0
                witness = f"output {spot} (row {row}) differs by {amount:.2g} from its real tokens alone"
                pieces = " and ".join(f"{int(count[row])} of {size}" for count, size in zip(real, sizes, strict=True))
                raise _Broken(
                    error, TOLERANCE * subject.tolerance_factor, f"{witness}, in pieces with {pieces} tokens real"
                )
    return worst
