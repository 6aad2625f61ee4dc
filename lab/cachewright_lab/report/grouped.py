"""Grouped bars: a group per name, in it a bar per series, as papers draw them.

For: figures of reproduced papers. Must never know: what is compared. Units are in the titles.
"""

from __future__ import annotations

import altair as alt

from cachewright.report import marks
from cachewright.report.marks import Tip
from cachewright.report.plots import OFFSET_STEP, Plot, Rows, Series, distinct


def bars(rows: Rows, group: str, series: str, title: str, *, value: str = "value") -> Plot:
    """Draw a group of bars per `group`, a bar per `series`, as long as `value`, called `title`."""
    known = Series(series, distinct(rows, series), series, "box")
    tips = [Tip(group, group), Tip(series, series), Tip(title, value, "ratio")]
    x = alt.X(f"{value}:Q").title(title)
    y = marks.row_names(group, distinct(rows, group))
    offset = alt.YOffset(f"{series}:N").sort(list(known.names))
    step = OFFSET_STEP * (len(known.names) + 1)
    return Plot([marks.bars(rows, known, x, y, tips, step=step, encodings=[offset])], [known])
