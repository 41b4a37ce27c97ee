"""Rotation equivariance: points in space, square images, and where it says nothing."""

import pytest
import torch
from torch import nn

from wonderland.laws import Example, rotation_equivariance
from wonderland.laws.rotation import random_rotation
from wonderland.laws.subject import Subject


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_random_rotations_are_rotations(dim):
    subject = Subject("", nn.Identity(), Example.floats(2, dim), torch.float64)
    for _ in range(10):
        rotation = random_rotation(dim, subject)
        torch.testing.assert_close(rotation @ rotation.T, torch.eye(dim, dtype=torch.float64))
        torch.testing.assert_close(torch.linalg.det(rotation), torch.tensor(1.0, dtype=torch.float64))


class Offset(nn.Module):
    """Moves points, by a vector that may be given."""

    def forward(self, x, velocity):
        return x + velocity


def test_every_input_with_directions_is_rotated():
    x, v = torch.randn(2, 5, 3), torch.randn(2, 5, 3)
    names = ("batch", "node", "space")
    assert rotation_equivariance(Offset(), Example((x, v), axes={0: names, 1: names})).outcome == "holds"
    verdict = rotation_equivariance(Offset(), Example((x, v), axes=names))
    assert verdict.outcome == "broken"
    assert "after a rotation in 3 dimensions" in verdict.witness


def test_a_mirror_image_is_no_rotation():
    class Handed(nn.Module):
        def forward(self, x):
            return torch.linalg.det(x[:, :3])  # changes its sign in a mirror

    assert rotation_equivariance(Handed(), Example.floats(2, 3, 3, axes=("batch", "node", "space"))).outcome == "holds"


def test_quarter_turns_are_named():
    class Half(nn.Module):
        """Follows half turns only."""

        def forward(self, x):
            return x + x.roll(1, 3) + x.roll(-1, 3)

    verdict = rotation_equivariance(Half(), Example.floats(1, 2, 6, 6))
    assert verdict.outcome == "broken"
    assert verdict.witness.endswith("degrees")
    assert "180" not in verdict.witness


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        (Example.floats(2, 3, 6, 8), "only square images have quarter turns, and this has the shape (2, 3, 6, 8)"),
        (Example.floats(2, 7, 3), "the input has no axis of space, nor height and width: name them in the axes of the example"),
        (Example.floats(2, 7, 1, axes=("batch", "node", "space")), "one coordinate has no rotations"),
        (Example((torch.zeros(2, 7, dtype=torch.int64),), output=lambda y: y.double()), "tokens have no direction"),
    ],
)  # fmt: skip
def test_it_says_why_it_does_not_apply(example, reason):
    assert rotation_equivariance(nn.Identity(), example).witness == reason
