"""The charts of papers on data caches of drives, each from plain rows to Vega-Lite.

For: how those figures look. Must never know: results, files, HTML. Units are in the titles.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from cachewright.report.charts import COLUMNS, PANEL_HEIGHT, PANEL_WIDTH, SHAPES, WIDE_WIDTH, Rows


def mix_dots(rows: Rows, title: str, *, ratios: bool) -> Any:
    """Draw a row per mix, a mark per scheme; `ratios` have a logarithmic axis."""
    scale = {"type": "log", "nice": False} if ratios else {"zero": False, "nice": True}
    mixes = list(dict.fromkeys(row["mix"] for row in rows))
    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=True, size=60, opacity=0.85)
        .encode(
            y=alt.Y("mix:N").sort(mixes).title(None).axis(grid=True),
            x=alt.X("value:Q").scale(**scale).title(title),
            color=alt.Color("scheme:N").sort(schemes).title(None),
            shape=alt.Shape("scheme:N").sort(schemes).scale(range=SHAPES).legend(None),
            tooltip=["mix:N", "scheme:N", alt.Tooltip("value:Q", format=".4")],
        )
        .properties(width=WIDE_WIDTH - 120, height=alt.Step(22))
    )


def by_size(rows: Rows, panel: str, line: str) -> Any:
    """Draw response time against cache size, a panel per `panel`, a line per `line`; points marked.

    Rows have `mib`, `us`, and `point` (text, may be empty).
    """
    lines = list(dict.fromkeys(row[line] for row in rows))
    marks = [
        mark for mark in ("MBP", "OAP", "MBP and OAP") if any(r["point"] == mark for r in rows)
    ]
    legend = alt.Legend() if len(lines) > 1 else None

    def drawn(title: str) -> Any:
        own = [row for row in rows if row[panel] == title]
        base = alt.Chart(alt.InlineData(values=own)).encode(
            x=alt.X("mib:Q").title("cache (MiB)"),
            y=alt.Y("us:Q").scale(zero=False).title("mean response (us)"),
            color=alt.Color(f"{line}:N").scale(domain=lines).legend(legend).title(None),
        )
        parts = [
            base.mark_line(strokeWidth=1.6, point=alt.OverlayMarkDef(size=20)).encode(
                tooltip=[f"{line}:N", "mib:Q", alt.Tooltip("us:Q", format=".1f")]
            )
        ]
        if marks:
            shape = alt.Shape("point:N").scale(domain=marks, range=["circle", "square", "diamond"])
            points = base.transform_filter("datum.point != ''").mark_point(size=110, strokeWidth=2)
            parts.append(points.encode(shape=shape.title(None)))
        chart = alt.layer(*parts).properties(title=title)
        return chart.properties(width=PANEL_WIDTH - 20, height=PANEL_HEIGHT - 30)

    titles = list(dict.fromkeys(row[panel] for row in rows))
    return alt.concat(*(drawn(title) for title in titles), columns=COLUMNS)


def scatter(rows: Rows, x: str, y: str, name: str) -> Any:
    """Draw a mark per row with its name beside it."""
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("x:Q").scale(zero=False).title(x), y=alt.Y("y:Q").scale(zero=False).title(y)
    )
    marks = base.mark_point(filled=True, size=70).encode(tooltip=[f"{name}:N", "x:Q", "y:Q"])
    labels = base.mark_text(align="left", dx=8, fontSize=11).encode(text=f"{name}:N")
    return (marks + labels).properties(width=WIDE_WIDTH - 200, height=PANEL_HEIGHT + 30)
