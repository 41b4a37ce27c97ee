"""The SVG of a large heat map stays small."""

from wonderland.understand import charts


def test_heat_map_of_a_large_image_stays_small():
    svg = charts.heat_map([[i * j for j in range(500)] for i in range(400)])
    assert len(svg) < 60_000
    assert "37 by 46 cells; the largest value is in row 37, column 46" in svg
