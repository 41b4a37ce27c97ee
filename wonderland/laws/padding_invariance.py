"""Padding invariance: outputs and gradients do not depend on the values at padding positions or on their number."""

from dataclasses import replace

import torch
from torch import Tensor

from wonderland.laws.compare import gap, gradient_gap, weighted_gradients
from wonderland.laws.example import Example
from wonderland.laws.subject import Failed, NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE, GRADIENT_TOLERANCE = 1e-9, 1e-8
USUAL_NAMES = ("attention_mask", "key_padding_mask", "src_key_padding_mask", "padding_mask")


@law
def padding_invariance(subject: Subject) -> Verdict:
    """A padded row gives the outputs at real positions, and all gradients, of the same row without padding.

    Padding holds NaN (other tokens, where the inputs are integers). Blocks with a `stream` must also output 0 at padding.
    Where the example names the mask argument, or it has a name that other libraries use (attention_mask, key_padding_mask), padding holds other finite values and the
    outputs there are free. A mask that the example holds is replaced by others of its dtype and meaning (True or 1 for real
    tokens, True for padding, or numbers added to scores). The output of a block that pools over positions is compared as a
    whole.
    """
    guessed = _usual_name(subject)
    if guessed:
        subject.example = replace(subject.example, mask=guessed)
    name = subject.example.mask or "mask"
    named = subject.example.mask or name in subject.example.kwargs
    if not (subject.takes(name) or (named and subject.takes_any_name())):
        raise NotApplicable(f"its forward takes no {name}")
    factor = subject.tolerance_factor  # found by a call on the whole example, mask included
    masks = _Masks(subject, name)
    subject.example = masks.example
    pooled = subject.pools(masks.needed)
    axis, out = (subject.sequence(), 1) if pooled else subject.positions()[:2]
    if (axis, out) != (1, 1) or subject.example.axis("batch") != 0:
        raise NotApplicable("padding is checked where the batch comes first and time second")
    x, mask = random_padding(subject, subject.x.shape[1], finite=masks.finite)
    leaves = [value for _, value in subject.parameters()]
    x = x.requires_grad_() if x.is_floating_point() else x
    try:
        y = masks.run(x, mask, when="with padding")
    except Failed as fault:
        if (subject.example.mask and not guessed) or masks.given is not None or hasattr(subject.block, "stream"):
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
    tolerance = TOLERANCE * factor
    total = [torch.zeros_like(value) for value in leaves]
    size = max(float(subject.base.abs().max()), 1e-300)
    worst = 0.0
    for row in range(len(x)):
        real = mask[row]
        positions = slice(None) if pooled else real
        alone = x.detach()[row : row + 1, real].requires_grad_(x.requires_grad)
        example = subject.example.rows(torch.tensor([row], device=x.device))
        expected = masks.without(alone, example, when=f"when row {row} was alone, without its padding")
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
            if not error <= GRADIENT_TOLERANCE * factor:
                return subject.verdict(
                    error,
                    GRADIENT_TOLERANCE * factor,
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
    if not error <= GRADIENT_TOLERANCE * factor:
        name = subject.parameters()[index][0]
        return subject.verdict(
            error, GRADIENT_TOLERANCE * factor, f"the gradient by {name} moved when padding was there"
        )
    if hasattr(subject.block, "stream") and not subject.example.mask:
        at_padding = torch.where(compared, torch.zeros_like(y), y.detach())
        error, amount, place = gap(at_padding, torch.zeros_like(at_padding))
        if error:
            return subject.verdict(
                amount, 0.0, f"{subject.place(place)} is padding and answers {amount:.2g} rather than 0"
            )
    return subject.verdict(worst, tolerance)


def _usual_name(subject: Subject) -> str:
    """The name that other libraries give to the padding mask, if the block takes one of that name; "" if none or not needed."""
    example = subject.example
    if example.mask or subject.takes("mask") or "mask" in example.kwargs:
        return ""
    return next((name for name in USUAL_NAMES if subject.takes(name) or name in example.kwargs), "")


class _Masks:
    """The masks that the block gets: of the dtype and the meaning of the one in the example, if it holds one.

    A mask of False (or of zeros) throughout hides nothing, so True marks padding; of floating point zeros throughout, or
    with negative numbers, it is added to scores. Everything else has True or 1 for real tokens.
    """

    def __init__(self, subject: Subject, name: str):
        self.subject, self.name = subject, name
        self.given, self.example = _taken_out(subject, name)
        self.finite = bool(subject.example.mask) or (self.given is not None and self.given.dtype != torch.bool)
        self.inverted, self.added, self.padding = name.endswith("key_padding_mask"), False, float("-inf")
        if self.given is not None and self.given.dtype.is_floating_point:
            self.added = not bool((self.given > 0).any())
            self.padding = float(self.given.min()) if bool((self.given < 0).any()) else self.padding
        elif self.given is not None and not bool(self.given.any()):
            self.inverted = True
        self.dtypes = [self.given.dtype] if self.given is not None else [torch.bool]
        if self.given is None and subject.example.mask and not self.inverted:
            self.dtypes = [torch.long, torch.bool, subject.dtype]

    def run(self, x: Tensor, mask: Tensor, *, when: str) -> Tensor:
        """The output with a mask; without an example of one, the dtypes that libraries use are tried until one is taken."""
        for dtype in list(self.dtypes):
            try:
                y = self.subject.run(x, when=when, more={self.name: self._flags(mask, dtype)})
            except Failed:
                if dtype == self.dtypes[-1]:
                    raise
                continue
            self.dtypes = [dtype]
            return y
        raise AssertionError

    def without(self, x: Tensor, example: Example, *, when: str) -> Tensor:
        """The output without padding: without a mask, or with one that hides nothing if the block needs one."""
        return self.subject.run(x, example=example, when=when, more=self.needed(x))

    def needed(self, x: Tensor) -> dict[str, Tensor]:
        """A mask that hides nothing, if the block needs one."""
        if not self.subject.requires(self.name):
            return {}
        real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        return {self.name: self._flags(real, self.dtypes[0])}

    def _flags(self, mask: Tensor, dtype: torch.dtype) -> Tensor:
        if self.added:
            return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, self.padding)
        return (~mask if self.inverted else mask).to(dtype)


def _taken_out(subject: Subject, name: str) -> tuple[Tensor | None, Example]:
    """The padding mask (b, t) that the example holds, and the example without it; positional arguments get names."""
    example = subject.example
    names = subject.arguments()[: len(example.args)]
    values = {**dict(zip(names, example.args, strict=False)), **example.kwargs}
    given = values.get(name)
    if not isinstance(given, Tensor) or given is subject.x or given.shape != subject.x.shape[:2]:
        return None, example
    if name in example.kwargs:
        return given, replace(example, kwargs={key: value for key, value in example.kwargs.items() if key != name})
    if names.index(name) < len(example.args) - 1:
        raise NotApplicable(f"{name} is followed by other arguments: give it by name")
    return given, replace(example, args=example.args[:-1])


def random_padding(subject: Subject, t: int, *, finite: bool | None = None) -> tuple[Tensor, Tensor]:
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
    return with_padding(subject, x, mask, finite=finite), mask


def with_padding(subject: Subject, x: Tensor, mask: Tensor, *, finite: bool | None = None) -> Tensor:
    """The input with NaN at padding positions; other values for integers and for modules of other libraries."""
    finite = bool(subject.example.mask) if finite is None else finite
    if finite or not (x.is_floating_point() or x.is_complex()):
        return subject.changed(x, ~_broadcast_mask(mask, x))
    return x.masked_fill(~_broadcast_mask(mask, x), float("nan"))


def _broadcast_mask(mask: Tensor, like: Tensor) -> Tensor:
    return mask.view(*mask.shape, *[1] * (like.dim() - 2))
