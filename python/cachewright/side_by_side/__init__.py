"""Results side by side: what several of them measured alike, and in what settings they differ.

For: `cachewright report A B`, the pages of `cachewright view`, and Python. Must never know: how
results are made, how they are drawn. `read` gives what a result folder holds as rows of measures
and as curves; `Comparison` aligns the rows of several.
"""

from __future__ import annotations

from cachewright.side_by_side.comparison import Comparison, MeasureTable
from cachewright.side_by_side.folders import read, read_all
from cachewright.side_by_side.reading import Curve, Measure, Reading, Row

__all__ = [
    "Comparison",
    "Curve",
    "Measure",
    "MeasureTable",
    "Reading",
    "Row",
    "read",
    "read_all",
]
