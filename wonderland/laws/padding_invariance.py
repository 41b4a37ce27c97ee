"""Independence of padding: what stands at hidden positions changes nothing, and neither does how many there are."""

import torch
from torch import Tensor

from wonderland.laws.compare import apart, gap, slopes
from wonderland.laws.subject import Failed, Subject, Unfit, law
from wonderland.laws.verdict import Verdict

TOLERANCE, SLOPES = 1e-9, 1e-8


@law
def padding_invariance(subject: Subject) -> Verdict:
    """A padded row = the same row alone without its padding: outputs at real positions, and all gradients.

    Padding holds NaN (other tokens, where the inputs are integers). Blocks with a `stream` also answer 0 at padding. Where
    the example names the mask, as foreign modules need it, padding holds other finite values and the answer there is free.
    An output that has no positions, because the block pools them, counts whole.
    """
    name = subject.example.mask or "mask"
    if not (subject.takes(name) or (subject.example.mask and subject.takes("kwargs"))):
        raise Unfit(f"its forward takes no {name}")
    pooled = subject.pools()
    axis, out = (subject.sequence(), 1) if pooled else subject.positions()[:2]
    if (axis, out) != (1, 1) or subject.example.axis("batch") != 0:
        raise Unfit("padding is checked where the batch comes first and time second")
    x, mask = padded(subject, subject.x.shape[1])
    leaves = [value for _, value in subject.parameters()]
    flags = mask.long() if subject.example.mask else mask
    if name.endswith("key_padding_mask"):
        flags = ~mask  # torch.nn counts the other way: True where nothing is
    x = x.requires_grad_() if x.is_floating_point() else x
    try:
        y = subject.run(x, when="with padding", more={name: flags})
    except Failed as fault:
        if subject.example.mask or hasattr(subject.block, "stream"):
            raise
        try:  # the example itself, with nothing hidden: who refuses that too has a mask for something else
            subject.run(more={name: torch.ones_like(mask[:, : subject.x.shape[1]])})
        except Failed as other:
            raise Unfit(f"its mask is not one of padding (batch, time), which it refused: {other}") from fault
        raise
    counts = torch.ones_like(y, dtype=torch.bool) if pooled else _spread(mask, y).expand_as(y)
    weights = subject.noise(y.detach()) * counts
    slope = slopes(torch.where(counts, y, torch.zeros_like(y)), weights, [x, *leaves] if x.requires_grad else leaves)
    inputs, slope = (slope[:1], slope[1:]) if x.requires_grad else ([], slope)
    tolerance = TOLERANCE * subject.coarse
    total = [torch.zeros_like(value) for value in leaves]
    size = max(float(subject.base.abs().max()), 1e-300)
    worst = 0.0
    for row in range(len(x)):
        real = mask[row]
        shown = slice(None) if pooled else real
        alone = x.detach()[row : row + 1, real].requires_grad_(x.requires_grad)
        example = subject.example.rows(torch.tensor([row], device=x.device))
        found = subject.run(alone, example=example, when=f"when row {row} was alone, without its padding")
        _, amount, place = gap(y[row : row + 1][:, shown], found)
        worst = max(worst, amount / size)
        if not amount / size <= tolerance:
            if place and not pooled:
                place = (row, int(real.nonzero()[place[1], 0]), *place[2:])
            spot = subject.place((row, *place[1:]) if place else ())
            return subject.verdict(
                amount / size,
                tolerance,
                f"{spot} moved by {amount:.2g} when {int((~real).sum())} padded positions came beside it",
            )
        step = slopes(found, weights[row : row + 1][:, shown], [alone, *leaves] if x.requires_grad else leaves)
        if x.requires_grad:
            apart_by, _ = apart([inputs[0][row, real]], [step[0][0]])
            if not apart_by <= SLOPES * subject.coarse:
                return subject.verdict(
                    apart_by,
                    SLOPES * subject.coarse,
                    f"the gradient by the input of row {row} moved when padding came beside it",
                )
            step = step[1:]
        total = [one + other for one, other in zip(total, step, strict=True)]
    if inputs and bool((inputs[0][~mask] != 0).any()):
        row, position = (int(number) for number in ((inputs[0] != 0).flatten(2).any(2) & ~mask).nonzero()[0])
        return subject.verdict(
            float("inf"), 0.0, f"real outputs have a derivative by padding, input {position} (row {row})"
        )
    far, index = apart(slope, total)
    if not far <= SLOPES * subject.coarse:
        what = subject.parameters()[index][0]
        return subject.verdict(far, SLOPES * subject.coarse, f"the gradient by {what} moved when padding was there")
    if hasattr(subject.block, "stream") and not subject.example.mask:
        rest = torch.where(counts, torch.zeros_like(y), y.detach())
        error, amount, place = gap(rest, torch.zeros_like(rest))
        if error:
            return subject.verdict(
                amount, 0.0, f"{subject.place(place)} is padding and answers {amount:.2g} rather than 0"
            )
    return subject.verdict(worst, tolerance)


def padded(subject: Subject, t: int) -> tuple[Tensor, Tensor]:
    """The input with other values at hidden positions, and the mask: each row has its own number of real tokens."""
    x = subject.x
    if t < 3:  # too short to hide anything: padding is added
        x = torch.cat([x, x[:, -1:], x[:, -1:]], 1)
    longest = torch.full((len(x),), t)
    lengths = torch.randint(1, t + 1, (len(x),), generator=subject.generator)
    if t >= 3:
        lengths = torch.minimum(lengths, torch.tensor(t - 1))
    lengths = torch.where(torch.arange(len(x)) == 0, longest, lengths) if len(x) > 1 else lengths
    steps = torch.arange(x.shape[1])
    mask = steps < lengths.unsqueeze(1)
    if subject.example.side == "left":
        mask = mask.flip(1)
    mask = mask.to(x.device)
    return hidden(subject, x, mask), mask


def hidden(subject: Subject, x: Tensor, mask: Tensor) -> Tensor:
    """The input with NaN at hidden positions, or with other values where NaN is not for this module."""
    if subject.example.mask or not (x.is_floating_point() or x.is_complex()):
        return subject.changed(x, ~_spread(mask, x))
    return x.masked_fill(~_spread(mask, x), float("nan"))


def _spread(mask: Tensor, like: Tensor) -> Tensor:
    return mask.view(*mask.shape, *[1] * (like.dim() - 2))
