"""Charts as SVG text, made from plain numbers without a plotting library.

Every chart carries its own colours for light and dark, a title and a description for screen
readers, and marks that differ in shape as well as in colour. Names are escaped, and values that are missing,
infinite or all equal never break a chart.

>>> svg = curves({"train": [2.3, 0.9, 0.4], "validation": [2.2, 1.0, 0.7]}, steps=[0, 100, 200], best=200)
>>> svg.startswith("<svg"), "<title>Learning curves</title>" in svg
(True, True)
"""

from wonderland.understand.charts.attention import attention
from wonderland.understand.charts.band import band
from wonderland.understand.charts.bars import bars, counts, histogram
from wonderland.understand.charts.confusion import confusion
from wonderland.understand.charts.curves import curves
from wonderland.understand.charts.forecast import forecast
from wonderland.understand.charts.heat_map import heat_map
from wonderland.understand.charts.intervals import coverage, intervals
from wonderland.understand.charts.reliability import reliability
from wonderland.understand.charts.scatter import scatter
from wonderland.understand.format import MISSING, compact, duration, escape, number, percent, real, size, wilson
from wonderland.understand.svg import CSS, fit_text, text_width, without_style

__all__ = [
    "CSS",
    "MISSING",
    "attention",
    "band",
    "bars",
    "compact",
    "confusion",
    "counts",
    "coverage",
    "curves",
    "duration",
    "escape",
    "fit_text",
    "forecast",
    "heat_map",
    "histogram",
    "intervals",
    "number",
    "percent",
    "real",
    "reliability",
    "scatter",
    "size",
    "text_width",
    "wilson",
    "without_style",
]
