"""Rotation equivariance: rotated inputs give rotated outputs, for points in space and for images."""

import torch
from torch import Tensor

from wonderland.laws.compare import gap
from wonderland.laws.example import Axes
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE, ROUNDED = 1e-9, 1e-6  # kernels and bases made symmetric in float32 are symmetric up to its rounding
_ROTATIONS = 3


@law
def rotation_equivariance(subject: Subject) -> Verdict:
    r"""Rotated inputs give rotated outputs: :math:`f(Rx) = R f(x)`; an output without directions does not change.

    Coordinates (an axis named "space", of size 2 or more) are rotated by random rotations :math:`R \in SO(d)` in every
    input that has the axis, and so is the output along its own; an output without that axis, or of another size there, is
    invariant: :math:`f(Rx) = f(x)`. Square images (height and width) are rotated by 90, 180 and 270 degrees.
    """
    if not (subject.x.is_floating_point() or subject.x.is_complex()):
        raise NotApplicable("tokens have no direction")
    axis = subject.example.axis("space")
    if axis is not None and axis < subject.x.dim():
        return _points(subject, subject.x.shape[axis])
    if subject.example.axis("height") is None or subject.example.axis("width") is None:
        raise NotApplicable(
            "the input has no axis of space, nor height and width: name them in the axes of the example"
        )
    return _image(subject)


def _points(subject: Subject, dim: int) -> Verdict:
    if dim < 2:
        raise NotApplicable("one coordinate has no rotations")
    example, base = subject.example, subject.base
    worst, witness = 0.0, ""
    with torch.no_grad():
        for _ in range(_ROTATIONS):
            rotation = random_rotation(dim, subject).to(subject.x)
            rotated = example.over(lambda place, x, r=rotation: _rotated(x, example.names(place), r))
            output = subject.run(example=rotated, when="after a rotation")
            error, amount, place = gap(output, _rotated(base, example.names("output"), rotation))
            if not error <= worst:
                worst, witness = (
                    error,
                    f"{subject.place(place)} differs by {amount:.2g} after a rotation in {dim} dimensions",
                )
    return subject.verdict(worst, max(ROUNDED, TOLERANCE * subject.tolerance_factor), witness)


def _image(subject: Subject) -> Verdict:
    example = subject.example
    down, across = example.axis("height"), example.axis("width")
    assert down is not None
    assert across is not None
    if max(down, across) >= subject.x.dim() or subject.x.shape[down] != subject.x.shape[across]:
        raise NotApplicable(f"only square images have quarter turns, and this has the shape {tuple(subject.x.shape)}")
    worst, witness = 0.0, ""
    with torch.no_grad():
        for turns in (1, 2, 3):
            rotated = example.over(lambda place, x, k=turns: _quarter_turns(x, example.names(place), k))
            output = subject.run(example=rotated, when=f"after a rotation by {90 * turns} degrees")
            error, amount, place = gap(output, _quarter_turns(subject.base, example.names("output"), turns))
            if not error <= worst:
                worst, witness = (
                    error,
                    f"{subject.place(place)} differs by {amount:.2g} after a rotation by {90 * turns} degrees",
                )
    return subject.verdict(worst, max(ROUNDED, TOLERANCE * subject.tolerance_factor), witness)


def random_rotation(dim: int, subject: Subject) -> Tensor:
    """A random rotation matrix (d, d) of determinant 1: the Q of a random matrix, with signs that make R positive."""
    q, r = torch.linalg.qr(torch.randn(dim, dim, generator=subject.generator, dtype=torch.float64))
    q = q * r.diagonal().sign()
    return q if torch.linalg.det(q) > 0 else torch.cat([-q[:, :1], q[:, 1:]], 1)


def _rotated(x: Tensor, names: Axes, rotation: Tensor) -> Tensor:
    for axis in [number for number, name in enumerate(names) if name == "space" and number < x.dim()]:
        if x.shape[axis] == len(rotation) and x.is_floating_point():
            x = (x.movedim(axis, -1) @ rotation.to(x).mT).movedim(-1, axis)
    return x


def _quarter_turns(x: Tensor, names: Axes, turns: int) -> Tensor:
    if "height" not in names or "width" not in names:
        return x
    axes = names.index("height"), names.index("width")
    return torch.rot90(x, turns, axes) if max(axes) < x.dim() else x
