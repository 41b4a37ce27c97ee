"""Padding invariance: outputs and gradients do not depend on the values at padding positions or on their number."""

import torch
from torch import Tensor

from wonderland.laws.compare import gap, gradient_gap, weighted_gradients
from wonderland.laws.subject import Failed, NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE, GRADIENT_TOLERANCE = 1e-9, 1e-8


@law
def padding_invariance(subject: Subject) -> Verdict:
    """A padded row gives the outputs at real positions, and all gradients, of the same row without padding.

    Padding holds NaN (other tokens, where the inputs are integers). Blocks with a `stream` must also output 0 at padding.
    Where the example names the mask argument, for modules of other libraries, padding holds other finite values and the
    outputs there are free. The output of a block that pools over positions is compared as a whole.
    """
    name = subject.example.mask or "mask"
    if not (subject.takes(name) or (subject.example.mask and subject.takes("kwargs"))):
        raise NotApplicable(f"its forward takes no {name}")
    pooled = subject.pools()
    axis, out = (subject.sequence(), 1) if pooled else subject.positions()[:2]
    if (axis, out) != (1, 1) or subject.example.axis("batch") != 0:
        raise NotApplicable("padding is checked where the batch comes first and time second")
    x, mask = random_padding(subject, subject.x.shape[1])
    leaves = [value for _, value in subject.parameters()]
    flags = mask.long() if subject.example.mask else mask
    if name.endswith("key_padding_mask"):
        flags = ~mask  # torch.nn has it the other way round: True for padding
    x = x.requires_grad_() if x.is_floating_point() else x
    try:
        y = subject.run(x, when="with padding", more={name: flags})
    except Failed as fault:
        if subject.example.mask or hasattr(subject.block, "stream"):
            raise
        try:  # without padding: if that fails too, this mask is not a padding mask
            subject.run(more={name: torch.ones_like(mask[:, : subject.x.shape[1]])})
        except Failed as other:
            raise NotApplicable(f"its mask is not one of padding (batch, time), which it refused: {other}") from fault
        raise
    compared = torch.ones_like(y, dtype=torch.bool) if pooled else _broadcast_mask(mask, y).expand_as(y)
    weights = subject.noise(y.detach()) * compared
    gradients = weighted_gradients(
        torch.where(compared, y, torch.zeros_like(y)), weights, [x, *leaves] if x.requires_grad else leaves
    )
    inputs, gradients = (gradients[:1], gradients[1:]) if x.requires_grad else ([], gradients)
    tolerance = TOLERANCE * subject.tolerance_factor
    total = [torch.zeros_like(value) for value in leaves]
    size = max(float(subject.base.abs().max()), 1e-300)
    worst = 0.0
    for row in range(len(x)):
        real = mask[row]
        positions = slice(None) if pooled else real
        alone = x.detach()[row : row + 1, real].requires_grad_(x.requires_grad)
        example = subject.example.rows(torch.tensor([row], device=x.device))
        expected = subject.run(alone, example=example, when=f"when row {row} was alone, without its padding")
        _, amount, place = gap(y[row : row + 1][:, positions], expected)
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
        row_gradients = weighted_gradients(
            expected, weights[row : row + 1][:, positions], [alone, *leaves] if x.requires_grad else leaves
        )
        if x.requires_grad:
            error, _ = gradient_gap([inputs[0][row, real]], [row_gradients[0][0]])
            if not error <= GRADIENT_TOLERANCE * subject.tolerance_factor:
                return subject.verdict(
                    error,
                    GRADIENT_TOLERANCE * subject.tolerance_factor,
                    f"the gradient by the input of row {row} moved when padding came beside it",
                )
            row_gradients = row_gradients[1:]
        total = [so_far + gradient for so_far, gradient in zip(total, row_gradients, strict=True)]
    if inputs and bool((inputs[0][~mask] != 0).any()):
        row, position = (int(number) for number in ((inputs[0] != 0).flatten(2).any(2) & ~mask).nonzero()[0])
        return subject.verdict(
            float("inf"), 0.0, f"real outputs have a derivative by padding, input {position} (row {row})"
        )
    error, index = gradient_gap(gradients, total)
    if not error <= GRADIENT_TOLERANCE * subject.tolerance_factor:
        name = subject.parameters()[index][0]
        return subject.verdict(
            error, GRADIENT_TOLERANCE * subject.tolerance_factor, f"the gradient by {name} moved when padding was there"
        )
    if hasattr(subject.block, "stream") and not subject.example.mask:
        at_padding = torch.where(compared, torch.zeros_like(y), y.detach())
        error, amount, place = gap(at_padding, torch.zeros_like(at_padding))
        if error:
            return subject.verdict(
                amount, 0.0, f"{subject.place(place)} is padding and answers {amount:.2g} rather than 0"
            )
    return subject.verdict(worst, tolerance)


def random_padding(subject: Subject, t: int) -> tuple[Tensor, Tensor]:
    """The input with a random number of real tokens in each row and padding for the rest, and the mask."""
    x = subject.x
    if t < 3:  # too short to turn tokens into padding: positions are added
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
    return with_padding(subject, x, mask), mask


def with_padding(subject: Subject, x: Tensor, mask: Tensor) -> Tensor:
    """The input with NaN at padding positions; other values for integers and for modules of other libraries."""
    if subject.example.mask or not (x.is_floating_point() or x.is_complex()):
        return subject.changed(x, ~_broadcast_mask(mask, x))
    return x.masked_fill(~_broadcast_mask(mask, x), float("nan"))


def _broadcast_mask(mask: Tensor, like: Tensor) -> Tensor:
    return mask.view(*mask.shape, *[1] * (like.dim() - 2))
