"""What the labs share: claims that can fail, and pictures that are drawn where things are."""

import doctest
import importlib
import math
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.lab import about, above, below, equal, lines, plane, run, table
from examples.lab.functions import bowl, hills, turned_valley, valley
from examples.lab.plane import CELLS, _crossings


def test_claims_are_reached_or_missed():
    assert about("a", 1.0, 1.1, 0.2).met
    assert not about("a", 1.0, 1.3, 0.2).met
    assert not about("a", math.nan, 1.0, 10).met
    assert below("a", 1.0, 2.0).met
    assert not below("a", math.nan, 2.0).met
    assert above("a", 3.0, 2.0).met
    assert not above("a", 2.0, 2.0).met
    assert equal("a", [1], [1]).met
    assert str(equal("count", 3, 4)) == "count: 4 - MISSED, 3"
    assert str(below("error", 1e-5, 1e-3)) == "error: below 0.001 - reached, 1e-05"


@pytest.mark.parametrize(("met", "code"), [(True, 0), (False, 1)])
def test_a_lab_fails_when_a_number_is_missed(met, code, tmp_path, capsys):
    out = tmp_path / "a" / "b"
    assert run("x", "", lambda: ([equal("a", met, True)], "the table", {"one": "<svg/>"}), ["--out", str(out)]) == code
    assert (out / "one.svg").read_text() == "<svg/>"
    assert "the table" in capsys.readouterr().out


def test_tables_align():
    assert doctest.testmod(importlib.import_module("examples.lab.table")).failed == 0
    assert len({len(line) for line in table(("a", "b"), [("long name", 12345), ("x", 0.5)]).splitlines()}) == 1


def test_functions_take_many_points_at_once():
    points = torch.randn(3, 5, 2, dtype=torch.float64)
    for f in (bowl, hills, turned_valley, valley):
        assert f(points).shape == (3, 5)
        assert f(points)[1, 2] == f(points[1, 2])


def test_level_lines_lie_on_the_level():
    grid = [[math.hypot(a - 8, b - 8) for a in range(17)] for b in range(17)]
    ends = [end for row in range(16) for column in range(16) for end in _crossings(grid, row, column, 5.0)]
    assert len(ends) > 40
    assert all(abs(math.hypot(a - 8, b - 8) - 5) < 0.06 for a, b in ends)


def test_pictures_are_well_formed_and_cut_what_leaves_them():
    picture = plane(
        bowl,
        (-2, 2),
        (-1, 1),
        title="a < b",
        paths={"path": [[(0.0, 0.0), (1e9, math.inf)]]},
        marks={"dot": [(0, 0)], "square": [(1, 0)], "cross": [(0, 1)], "ring": [(1, 1)]},
    )
    ElementTree.fromstring(picture)
    assert "clip-path" in picture
    assert "inf" not in picture
    assert "nan" not in picture
    # The shades cover the picture, each cell once.
    cells = sum(int(wide) for wide in re.findall(r"h(\d+)v1H", picture))
    assert cells == CELLS**2


def test_lines_on_logarithmic_axes():
    picture = lines(
        {"a": [(1, 1e-9), (1000, 1.0)]}, title="t", log_x=True, log_y=True, whiskers={"a": [(1, 1e-10, 1e-8)]}
    )
    ElementTree.fromstring(picture)
    assert "1e-9" in picture
