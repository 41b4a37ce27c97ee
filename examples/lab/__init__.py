"""What the labs share: stated numbers, tables, pictures of functions, and the functions of the books."""

from examples.lab.claims import DATA, Claim, about, above, below, equal, run, spread
from examples.lab.lines import lines
from examples.lab.plane import plane
from examples.lab.table import table

__all__ = ["DATA", "Claim", "about", "above", "below", "equal", "lines", "plane", "run", "spread", "table"]
