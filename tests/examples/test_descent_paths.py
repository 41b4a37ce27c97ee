"""Descent goes where the books say."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.descent_paths.__main__ import main, momentum_on_a_wave, orthogonality, traces_of_d2l
from examples.descent_paths.descent import descend, lowest_curvature
from examples.lab.functions import hills, valley


def test_momentum_is_that_of_torch():
    start = torch.tensor([-5.0, -2.0], dtype=torch.float64)
    x = start.clone().requires_grad_()
    optimizer = torch.optim.SGD([x], lr=0.3, momentum=0.6)
    for _ in range(7):
        optimizer.zero_grad()
        valley(x).backward()
        optimizer.step()
    torch.testing.assert_close(descend(valley, start, 0.3, 7, 0.6)[-1], x.detach())


def test_many_starts_go_as_each_alone():
    starts = torch.rand(3, 2, dtype=torch.float64)
    together = descend(hills, starts, 0.2, 4, 0.3)
    assert together.shape == (5, 3, 2)
    torch.testing.assert_close(together[:, 1], descend(hills, starts[1], 0.2, 4, 0.3))


def test_curvatures_of_many_points():
    points = torch.tensor([[4.4113, 6.28319], [8.1550, 6.28319]], dtype=torch.float64)
    torch.testing.assert_close(
        lowest_curvature(hills, points), torch.tensor([1.1563, -1.1563]).double(), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize("claims", [momentum_on_a_wave, traces_of_d2l, lambda: (orthogonality(), None)])
def test_the_stated_numbers(claims):
    assert [str(claim) for claim in claims()[0] if not claim.met] == []


@pytest.mark.slow
def test_the_lab(tmp_path):
    assert main(["--out", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"wave", "valley", "hills", "gradient_norm"}
