"""The charts of papers on tenants kept apart, each from plain rows to a plot.

For: how those figures look. Must never know: results, files, HTML. Units are in the titles.
"""

from __future__ import annotations

import altair as alt

from cachewright.report import charts, marks
from cachewright.report.marks import Tip
from cachewright.report.plots import (
    PANEL_HEIGHT,
    Panel,
    Plot,
    Rows,
    Series,
    data,
    distinct,
    extent,
)


def throughput(rows: Rows) -> Plot:
    """Draw each tenant's throughput over time, a panel per layout and a line per tenant.

    Rows have `layout`, `tenant`, `seconds`, `mb`.
    """
    series = Series("tenant", distinct(rows, "tenant"), "tenant")
    x = charts.seconds(rows, "time after the warm-up (s)")
    top = alt.Scale(domain=[0, max(row["mb"] for row in rows) or 1.0], nice=True)
    y = alt.Y("mb:Q", scale=top).title("throughput (MB/s)")
    tips = [Tip("tenant", "tenant"), Tip("time", "seconds", "seconds")]
    tips.append(Tip("throughput (MB/s)", "mb", "number"))
    panels = [
        marks.lines(
            [row for row in rows if row["layout"] == layout], series, x, y, tips,
            title=layout, height=PANEL_HEIGHT - 40,
        )
        for layout in distinct(rows, "layout")
    ]  # fmt: skip
    return Plot(panels, [series])


def measures(rows: Rows, across: str) -> Plot:
    """Draw measures against a sweep, a panel per measure, a line per layout.

    Rows have `measure`, `row`, `layout`, `value`.
    """
    titles = distinct(rows, "measure")
    series = Series("layout", distinct(rows, "layout"), "layout", shaped=True)
    x = alt.X("row:O").sort(distinct(rows, "row")).title(across).axis(labelAngle=0)

    def drawn(title: str) -> Panel:
        own = [row for row in rows if row["measure"] == title]
        y = alt.Y("value:Q").title(title).scale(zero=True)
        tips = [Tip("layout", "layout"), Tip(across, "row"), Tip(title, "value", "ratio")]
        return marks.lines(own, series, x, y, tips, height=PANEL_HEIGHT, points=True)

    return Plot([drawn(title) for title in titles], [series], columns=min(len(titles), 3))


def regions(rows: Rows) -> Plot:
    """Draw what each tenant holds over time, a panel per tenant and an area per region.

    Rows have `tenant`, `region`, `seconds`, `size_bytes`.
    """
    series = Series("region", distinct(rows, "region"), "held in", "box")
    tenants = distinct(rows, "tenant")
    x = charts.seconds(rows)
    tips = [Tip("held in", "region"), Tip("time", "seconds", "seconds")]
    tips.append(Tip("held", "size_bytes", "size"))
    held: dict[tuple[str, float], float] = {}
    for row in rows:
        at = (row["tenant"], row["seconds"])
        held[at] = held.get(at, 0.0) + row["size_bytes"]
    axis = marks.size_axis("cache held", marks.size_ticks(max(held.values())))
    scale = alt.Scale(domain=extent([0.0, max(held.values())]), nice=False)

    def drawn(title: str) -> Panel:
        own = [row for row in rows if row["tenant"] == title]
        y = alt.Y("size_bytes:Q", axis=axis, scale=scale).stack("zero")
        base = alt.Chart(data(own)).encode(x, y, series.colour())
        near = marks.tipped(base.mark_point(filled=True, size=marks.POINT_SIZE, opacity=1), tips)
        return Panel(
            [base.mark_area(opacity=0.75)], near, PANEL_HEIGHT - 70, title, series.field,
            quiet=True, says=marks.reading(own, tips),
        )  # fmt: skip

    columns = 2 if len(tenants) > 1 else 1
    return Plot([drawn(title) for title in tenants], [series], columns=columns)
