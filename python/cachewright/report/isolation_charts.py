"""The charts of papers on tenants kept apart, each from plain rows to Vega-Lite.

For: how those figures look. Must never know: results, files, HTML. Units are in the titles.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from cachewright.report.charts import (
    COLUMNS,
    PANEL_HEIGHT,
    PANEL_WIDTH,
    SHAPES,
    WIDE_WIDTH,
    Rows,
)


def throughput(rows: Rows) -> Any:
    """Draw each tenant's throughput over time, a panel per layout and a line per tenant.

    Rows have `layout`, `tenant`, `seconds`, `mb`.
    """
    layouts = list(dict.fromkeys(row["layout"] for row in rows))
    tenants = list(dict.fromkeys(row["tenant"] for row in rows))
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=1.4)
        .encode(
            x=alt.X("seconds:Q").title("seconds after the warm-up").scale(nice=False),
            y=alt.Y("mb:Q").title("MB/s"),
            color=alt.Color("tenant:N").sort(tenants).title("tenant"),
        )
        .properties(width=WIDE_WIDTH, height=PANEL_HEIGHT - 40)
        .facet(
            row=alt.Row("layout:N")
            .sort(layouts)
            .title(None)
            .header(labelOrient="top", labelAnchor="start")
        )
    )


def measures(rows: Rows, across: str) -> Any:
    """Draw measures against a sweep, a panel per measure, a line per layout.

    Rows have `measure`, `row`, `layout`, `value`.
    """
    titles = list(dict.fromkeys(row["measure"] for row in rows))
    order = list(dict.fromkeys(row["row"] for row in rows))
    layouts = list(dict.fromkeys(row["layout"] for row in rows))

    def drawn(title: str) -> Any:
        own = [row for row in rows if row["measure"] == title]
        return (
            alt.Chart(alt.InlineData(values=own))
            .mark_line(strokeWidth=1.6, point=alt.OverlayMarkDef(size=45, filled=True))
            .encode(
                x=alt.X("row:O").sort(order).title(across).axis(labelAngle=0),
                y=alt.Y("value:Q").title(title).scale(zero=True),
                color=alt.Color("layout:N").sort(layouts).title(None),
                shape=alt.Shape("layout:N").sort(layouts).scale(range=SHAPES).legend(None),
                tooltip=["layout:N", "row:N", alt.Tooltip("value:Q", format=".3f")],
            )
            .properties(width=WIDE_WIDTH // len(titles) - 50, height=PANEL_HEIGHT)
        )

    return alt.hconcat(*(drawn(title) for title in titles))


def rooms(rows: Rows) -> Any:
    """Draw what each tenant holds over time, a panel per tenant and an area per room.

    Rows have `tenant`, `room`, `seconds`, `mib`.
    """
    tenants = list(dict.fromkeys(row["tenant"] for row in rows))
    kinds = list(dict.fromkeys(row["room"] for row in rows))
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_area(opacity=0.75)
        .encode(
            x=alt.X("seconds:Q").title("seconds").scale(nice=False),
            y=alt.Y("mib:Q").title("MiB"),
            color=alt.Color("room:N").sort(kinds).title(None),
        )
        .properties(width=PANEL_WIDTH, height=PANEL_HEIGHT - 70)
        .facet(facet=alt.Facet("tenant:N").sort(tenants).title(None), columns=COLUMNS)
    )
