"""The landscape is that of the network."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.landscape.__main__ import around, curvature, main
from examples.landscape.network import HIDDEN, SIZE, loss, moons, polish, random_direction, score, start, swapped, train
from wonderland import autodiff


def test_many_networks_go_as_each_alone():
    points, _ = moons()
    weights = torch.randn(3, 4, SIZE, dtype=torch.float64)
    assert score(weights, points).shape == (3, 4, len(points))
    torch.testing.assert_close(score(weights, points)[1, 2], score(weights[1, 2], points))
    torch.testing.assert_close(loss()(weights)[2, 3], loss()(weights[2, 3]))


def test_units_may_change_places():
    points, _ = moons()
    weights = start()
    other = swapped(weights)
    assert not torch.equal(weights, other)
    torch.testing.assert_close(score(weights, points), score(other, points))


def test_random_directions_are_as_long_as_the_weights_of_each_unit():
    weights = start()
    found = random_direction(weights, 0)
    first, same = (entry[: 2 * HIDDEN].reshape(2, HIDDEN).norm(dim=0) for entry in (found, weights))
    torch.testing.assert_close(first, same)
    assert found[-1].abs() == pytest.approx(weights[-1].abs())


def test_training_descends_and_the_picture_bends_as_the_hessian_says():
    f = loss()
    path = train(f, start(), steps=60)
    assert f(path[-1]) < f(path[0]) / 2
    end, direction = polish(f, path[-1], steps=1), random_direction(path[-1], 0)
    assert f(end) < f(path[-1])
    product = (direction @ autodiff.hvp(f, (end,), (direction,))[1]).item()
    assert curvature(f, end, direction) == pytest.approx(product, rel=1e-3)


def test_the_plane_goes_through_the_weights():
    f, weights = loss(), start()
    seen = around(f, weights, random_direction(weights, 0), random_direction(weights, 1))
    torch.testing.assert_close(seen(torch.zeros(1, 2, dtype=torch.float64))[0], f(weights))


@pytest.mark.slow
def test_the_lab(tmp_path):
    assert main(["--out", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"random", "steepest", "path", "twins"}
