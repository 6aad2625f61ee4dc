"""The charts of papers on data caches of drives, each from plain rows to a plot.

For: how those figures look. Must never know: results, files, HTML. Units are in the titles.
"""

from __future__ import annotations

import altair as alt

from cachewright.report import marks
from cachewright.report.marks import Tip
from cachewright.report.plots import (
    COLOURS,
    PANEL_HEIGHT,
    Panel,
    Plot,
    Rows,
    Series,
    data,
    distinct,
    extent,
)

# Pixels between the outermost marks and the axis.
MARGIN = 10
POINTS = ("MBP", "OAP", "MBP and OAP")


def mix_dots(rows: Rows, title: str, *, ratios: bool) -> Plot:
    """Draw a row per mix, a mark per scheme; `ratios` have a logarithmic axis."""
    kind = {"type": "log", "nice": False} if ratios else {"zero": False, "nice": True}
    series = Series("scheme", distinct(rows, "scheme"), "scheme", "point", shaped=True)
    tips = [Tip("mix", "mix"), Tip("scheme", "scheme"), Tip(title, "value", "number")]
    y = marks.row_names("mix", distinct(rows, "mix"), grid=True)
    x = alt.X("value:Q", scale=alt.Scale(padding=MARGIN, **kind)).title(title)
    return Plot([marks.dots(rows, series, x, y, tips)], [series])


def by_size(rows: Rows, panel: str, line: str) -> Plot:
    """Draw response time against cache size, a panel per `panel`, a line per `line`; points marked.

    Rows have `size_bytes`, `us`, and `point` (text, may be empty).
    """
    series = Series(line, distinct(rows, line))
    known = [mark for mark in POINTS if any(row["point"] == mark for row in rows)]
    points = Series("point", known, "point", "point", shaped=True, coloured=False)
    sizes = sorted({row["size_bytes"] for row in rows})
    axis = marks.size_axis("cache", sizes[:: max(1, -(-len(sizes) // 8))])
    x = alt.X("size_bytes:Q", axis=axis, scale=alt.Scale(domain=extent(sizes), nice=False))
    y = alt.Y("us:Q").scale(zero=False).title("mean response (us)")
    several = len(series.names) > 1
    tips = [Tip("setting", line)] if several else []
    tips += [Tip("cache", "size_bytes", "size"), Tip("mean response (us)", "us", "number")]

    def drawn(title: str) -> Panel:
        own = [row for row in rows if row[panel] == title]
        chosen = [row for row in own if row["point"]]
        marked = alt.Chart(data(chosen)).mark_point(size=110, strokeWidth=2, color=COLOURS[1])
        above = [marked.encode(x, y, points.shape())] if chosen else []
        height = PANEL_HEIGHT - 10
        return marks.lines(
            own, series, x, y, tips, title=title, height=height, points=True, above=above
        )

    panels = [drawn(title) for title in distinct(rows, panel)]
    legends = [one for one, shown in ((series, several), (points, bool(known))) if shown]
    return Plot(panels, legends, columns=2 if len(panels) > 1 else 1)


def scatter(rows: Rows, x: str, y: str, name: str) -> Plot:
    """Draw a mark per row with its name beside it."""
    series = Series(name, distinct(rows, name), mark="point")
    across, up = (
        alt.X("x:Q").scale(zero=False, nice=True).title(x),
        alt.Y("y:Q").scale(zero=False, nice=True).title(y),
    )
    tips = [Tip(name, name), Tip(x, "x", "ratio"), Tip(y, "y", "ratio")]
    return Plot([marks.dots(rows, series, across, up, tips, height=PANEL_HEIGHT + 50)], [series])
