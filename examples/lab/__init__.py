"""Shared by the labs: claims about measured numbers, tables, plots, and the test functions of the books."""

from examples.lab.claims import DATA, Claim, about, above, below, equal, run, spread
from examples.lab.lines import lines
from examples.lab.plane import plane
from examples.lab.table import table

__all__ = ["DATA", "Claim", "about", "above", "below", "equal", "lines", "plane", "run", "spread", "table"]
