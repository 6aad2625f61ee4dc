"""The charts, each from plain rows to Vega-Lite.

For: how every figure looks. Must never know: results, files, HTML. Units: bytes, seconds, ratios in
0..1; axes show sizes in binary units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

Rows = list[dict[str, Any]]

PANEL_WIDTH, PANEL_HEIGHT = 370, 190
WIDE_WIDTH = 780
COLUMNS = 2
TENANT_CASES = 6
# Okabe and Ito's colours for all kinds of sight, without black; readable on light and dark.
COLOURS = [
    "#0f86c9", "#e07b00", "#109e73", "#cf6ba3", "#8f7a00", "#56b4e9", "#d55e00", "#7c6bd6",
    "#5f9e3d", "#b0532f", "#5b8a8a", "#a8506b", "#6d7f99", "#c2a500", "#3c9dab", "#9a6fb0",
]  # fmt: skip
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
SIZE_LABEL = (
    "datum.value >= 1099511627776 ? format(datum.value / 1099511627776, '.3~r') + 'TiB' : "
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '.3~r') + 'GiB' : "
    "datum.value >= 1048576 ? format(datum.value / 1048576, '.3~r') + 'MiB' : "
    "datum.value >= 1024 ? format(datum.value / 1024, '.3~r') + 'KiB' : datum.value + 'B'"
)

_RATIO = alt.Tooltip("hit_ratio:Q", format=".4f")


def themed(chart: Any, ink: str, line: str, paper: str) -> Any:
    """Return the chart with text in `ink`, grid in `line`, marks bordered in `paper`."""
    return (
        chart.configure(
            background="transparent" if paper != "#ffffff" else paper, font="sans-serif"
        )
        .configure_axis(
            labelColor=ink,
            titleColor=ink,
            gridColor=line,
            domainColor=line,
            tickColor=line,
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            labelOverlap=True,
        )
        .configure_legend(
            labelColor=ink, titleColor=ink, labelFontSize=11, titleFontSize=11, symbolLimit=40
        )
        .configure_header(labelColor=ink, titleColor=ink, labelFontSize=12, labelFontWeight="bold")
        .configure_view(stroke=None)
        .configure_range(category=COLOURS)
    )


def _data(rows: Rows) -> alt.InlineData:
    return alt.InlineData(values=rows)


def _size_axis(title: str, values: Sequence[int]) -> alt.Axis:
    return alt.Axis(title=title, labelExpr=SIZE_LABEL, grid=False, values=list(values))


def _powers(low: int, high: int, most: int = 9) -> list[int]:
    """Return powers of two from `low` to `high`, thinned to at most `most`."""
    first, last = max(low, 1).bit_length() - 1, max(high, 1).bit_length()
    step = max(1, -(-(last - first + 1) // most))
    return [1 << k for k in range(first, last + 1, step)]


def by_capacity(rows: Rows) -> Any:
    """Hit ratio against cache size; a line per policy, a panel per partition."""
    sizes = sorted({row["capacity_bytes"] for row in rows})
    partitions = list(dict.fromkeys(row["partition"] for row in rows))
    lines = (
        alt.Chart(_data(rows))
        .mark_line(strokeWidth=1.6, point=alt.OverlayMarkDef(filled=True, size=45, opacity=1))
        .encode(
            x=alt.X("capacity_bytes:Q")
            .scale(type="log", base=2, nice=False)
            .axis(_size_axis("cache size", sizes)),
            y=alt.Y("hit_ratio:Q").scale(zero=False).title("hit ratio"),
            color=alt.Color("policy:N").sort(None).title("policy"),
            shape=alt.Shape("policy:N").sort(None).scale(range=SHAPES).legend(None),
            tooltip=["policy:N", "partition:N", "capacity:N", _RATIO],
        )
        .properties(width=PANEL_WIDTH, height=PANEL_HEIGHT + 40)
    )
    if len(partitions) == 1:
        return lines.properties(width=WIDE_WIDTH)
    return lines.facet(facet=alt.Facet("partition:N").sort(partitions).title(None), columns=COLUMNS)


def by_policy(rows: Rows) -> Any:
    """Hit ratio of each policy as dots, best on top; colour and shape tell partitions apart."""
    best: dict[str, float] = {}
    for row in rows:
        best[row["policy"]] = max(best.get(row["policy"], 0.0), row["hit_ratio"])
    order = sorted(best, key=lambda policy: -best[policy])
    base = alt.Chart(_data(rows)).encode(
        y=alt.Y("policy:N").sort(order).title(None).axis(grid=True),
        x=alt.X("hit_ratio:Q").scale(zero=False, nice=True).axis(tickCount=10).title("hit ratio"),
    )
    marks = base.mark_point(filled=True, size=80, opacity=0.9).encode(
        color=alt.Color("partition:N").sort(None).title("partition"),
        shape=alt.Shape("partition:N").sort(None).scale(range=SHAPES).title("partition"),
        tooltip=["policy:N", "partition:N", _RATIO],
    )
    return marks.properties(width=WIDE_WIDTH, height=alt.Step(22))


def flash_by_hit_ratio(rows: Rows) -> Any:
    """Write amplification against hit ratio, a mark per case; the best are low and at the right."""
    return (
        alt.Chart(_data(rows))
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=alt.X("hit_ratio:Q")
            .title("hit ratio")
            .axis(tickCount=8)
            .scale(zero=False, nice=True),
            y=alt.Y("amplification:Q").title("F/U on flash").scale(zero=False, nice=True),
            color=alt.Color("separation:N").sort(None).title("separation"),
            shape=alt.Shape("policy:N").sort(None).title("policy").scale(range=SHAPES),
            tooltip=[
                "case:N",
                _RATIO,
                alt.Tooltip("amplification:Q", format=".4f"),
                alt.Tooltip("flash_pages:Q", format=","),
            ],
        )
        .properties(width=WIDE_WIDTH - 120, height=PANEL_HEIGHT + 60)
    )


def by_tenant(rows: Rows) -> Any:
    """Hit ratio per tenant as dots, one row per case."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    base = alt.Chart(_data(rows)).encode(
        y=alt.Y("case:N").sort(cases).title(None).axis(grid=True, labelLimit=260),
        x=alt.X("hit_ratio:Q").scale(domain=[0, 1]).axis(tickCount=10).title("hit ratio"),
    )
    marks = base.mark_point(filled=True, size=80, opacity=0.9).encode(
        color=alt.Color("tenant:N").sort(None).title("tenant"),
        shape=alt.Shape("tenant:N").sort(None).scale(range=SHAPES).title("tenant"),
        tooltip=["case:N", "tenant:N", _RATIO],
    )
    return marks.properties(width=WIDE_WIDTH - 120, height=alt.Step(24))


def miss_ratio_curves(rows: Rows, sizes: Sequence[int]) -> Any:
    """Miss ratio against cache size, a line per tenant; rules at the sizes run."""
    low, high = min(row["size_bytes"] for row in rows), max(row["size_bytes"] for row in rows)
    tenants = list(dict.fromkeys(row["tenant"] for row in rows))
    scale = alt.Scale(type="log", base=2, nice=False, domain=[low, high], clamp=True)
    x = alt.X("size_bytes:Q", scale=scale, axis=_size_axis("cache size", _powers(low, high)))
    lines = (
        alt.Chart(_data(rows))
        .mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
        .encode(
            x=x,
            y=alt.Y("miss_ratio:Q").scale(domain=[0, 1]).title("miss ratio"),
            color=alt.Color("tenant:N").sort(tenants).title("tenant"),
            strokeDash=alt.condition("datum.tenant == 'all'", alt.value([5, 3]), alt.value([1, 0])),
        )
    )
    marks = [{"size_bytes": size} for size in sizes if low <= size <= high]
    rules = (
        alt.Chart(_data(marks))
        .mark_rule(color="#8a8a8a", strokeDash=[2, 3], strokeWidth=1)
        .encode(x=x)
    )
    return (rules + lines).properties(width=WIDE_WIDTH, height=PANEL_HEIGHT + 60)


def _over_time(rows: Rows) -> alt.Chart:
    tenants = list(dict.fromkeys(row["tenant"] for row in rows))
    return alt.Chart(_data(rows)).encode(
        x=alt.X("seconds:Q").title("seconds").scale(nice=False),
        color=alt.Color("tenant:N").sort(tenants).title("tenant"),
    )


def _by_case(chart: Any, rows: Rows) -> Any:
    cases = list(dict.fromkeys(row["case"] for row in rows))
    if len(cases) == 1:
        return chart.properties(width=WIDE_WIDTH, height=PANEL_HEIGHT)
    return chart.properties(width=WIDE_WIDTH, height=130).facet(
        row=alt.Row("case:N").sort(cases).title(None).header(labelOrient="top", labelAnchor="start")
    )


def hits_over_time(rows: Rows) -> Any:
    """Hit ratio of each tenant per window; a panel per case."""
    lines = (
        _over_time(rows)
        .mark_line(strokeWidth=1.4)
        .encode(y=alt.Y("hit_ratio:Q").scale(domain=[0, 1]).title("hit ratio"))
    )
    return _by_case(lines, rows)


def occupancy(rows: Rows) -> Any:
    """Size held by each tenant at the end of each window, and its quota; a panel per case."""
    top = max(max(row["occupancy_bytes"], row["quota_bytes"]) for row in rows)
    step = 1 << max(0, max(int(top) // 4, 1).bit_length() - 1)
    ticks = list(range(0, int(top) + step, step))
    y = alt.Y("occupancy_bytes:Q").axis(_size_axis("cache held", ticks))
    base = _over_time(rows)
    held = base.mark_line(strokeWidth=1.4).encode(y=y)
    quota = base.mark_line(strokeWidth=1, strokeDash=[4, 3], opacity=0.8).encode(
        y=alt.Y("quota_bytes:Q")
    )
    return _by_case(held + quota, rows)
