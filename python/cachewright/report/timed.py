"""Figures of response times: where time went, responses over time, curves over cache size.

For: the report of stacks with devices, and the figure of `mrc --latency`. Must never know: HTML.
Units: milliseconds on axes, seconds of simulated time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import summary, timing, words
from cachewright.report import charts, drives, marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.plots import (
    PANEL_HEIGHT,
    Panel,
    Plot,
    Rows,
    Series,
    distinct,
    extent,
)

if TYPE_CHECKING:
    from cachewright.result import Result

CASES = 6
NS_PER_MS = 1e6
NS_PER_S = 1e9


def figures(result: Result) -> list[Figure]:
    """Return the figures that the result has times for."""
    timed = [case for case in result.document["cases"] if timing.is_timed(case)]
    if not timed:
        return []
    shown = sorted(timed, key=lambda case: (case["timing"]["total"]["mean_ns"], case["case"]))
    shown = shown if len(shown) <= CASES else [*shown[: CASES - 1], shown[-1]]
    responses = [_breakdown(result, shown), _percentiles(result, shown)]
    return [*responses, _over_time(result, shown[0]), *drives.figures(result, shown)]


def _label(result: Result, case: dict[str, Any]) -> str:
    return summary.label(case, result.document["varied"])


def _breakdown(result: Result, cases: list[dict[str, Any]]) -> Figure:
    lines = [line for case in cases for line in timing.lines(case)]
    parts = timing.parts(lines)
    rows = [
        {
            "case": _label(result, case),
            "tenant": line["name"],
            "part": part,
            "order": order,
            "ms": line["breakdown_ns"].get(part, 0.0) / NS_PER_MS,
            "share": words.percent(timing.share(line, part)),
        }
        for case in cases
        for line in timing.lines(case)
        for order, part in enumerate(parts)
    ]
    series = Series("part", parts, "where time went", "box")
    totals = [line["mean_ns"] / NS_PER_MS for case in cases for line in timing.lines(case)]
    x = alt.X("ms:Q").title("mean response (ms)").scale(domain=[0, max(totals)], nice=True)
    tips = [Tip("tenant", "tenant"), Tip("spent on", "part"), Tip("share", "share")]
    tips.append(Tip("time", "ms", "milliseconds"))

    def draw(own: Rows, title: str) -> Panel:
        y, order = marks.row_names("tenant", distinct(own, "tenant")), alt.Order("order:Q")
        return marks.bars(own, series, x, y, tips, title=title, encodings=[order])

    return Figure(
        "response-breakdown",
        "Where time went",
        f"Mean response of each tenant, cut into what it was spent on{_order(cases)}.",
        Plot(_by_case(rows, draw), [series]),
    )


def _percentiles(result: Result, cases: list[dict[str, Any]]) -> Figure:
    keys = {"p50": "p50_ns", "p90": "p90_ns", "p99": "p99_ns", "p99.9": "p999_ns", "max": "max_ns"}
    rows = [
        {
            "case": _label(result, case),
            "tenant": line["name"],
            "percentile": name,
            # A logarithmic axis has no zero: what took no time is drawn at a nanosecond.
            "ms": max(line[key], 1) / NS_PER_MS,
        }
        for case in cases
        for line in timing.lines(case)
        for name, key in keys.items()
    ]
    series = Series("percentile", list(keys), "percentile", "point", shaped=True)
    low, high = extent([row["ms"] for row in rows])
    ticks = marks.decades(low, high)
    scale = alt.Scale(type="log", domain=[ticks[0], ticks[-1]])
    axis = alt.Axis(title="response", labelExpr=marks.MILLISECONDS_LABEL, values=ticks)
    x = alt.X("ms:Q", scale=scale, axis=axis)
    tips = [Tip("tenant", "tenant"), Tip("percentile", "percentile")]
    tips.append(Tip("response", "ms", "milliseconds"))

    def draw(own: Rows, title: str) -> Panel:
        y = marks.row_names("tenant", distinct(own, "tenant"), grid=True)
        return marks.dots(own, series, x, y, tips, title=title)

    return Figure(
        "response-percentiles",
        "Response times",
        f"Percentiles of each tenant's responses, on a logarithmic axis{_order(cases)}.",
        Plot(_by_case(rows, draw), [series]),
    )


def _order(cases: list[dict[str, Any]]) -> str:
    return "; the fastest cases first and the slowest last" if len(cases) > 1 else ""


def _by_case(rows: Rows, draw: Callable[[Rows, str], Panel]) -> list[Panel]:
    """Return a panel per case, titled if there are several."""
    cases = distinct(rows, "case")
    if len(cases) == 1:
        return [draw(rows, "")]
    return [draw([row for row in rows if row["case"] == case], case) for case in cases]


def _over_time(result: Result, case: dict[str, Any]) -> Figure:
    bins = case["timing"]["series"]
    width_s = bins["width_ns"] / NS_PER_S
    names = [tenant["name"] for tenant in case["timing"]["tenants"]]
    rows = [
        {
            "tenant": name,
            "seconds": (index + 0.5) * width_s,
            "per_second": requests / width_s,
            "ms": mean_ns / NS_PER_MS,
        }
        for name, each in zip(names, bins["tenants"], strict=True)
        for index, (requests, _, mean_ns) in enumerate(each)
        if requests
    ]
    series = Series("tenant", names, "tenant")
    tips = [Tip("tenant", "tenant"), Tip("time", "seconds", "seconds")]
    measures = (
        ("mean response (ms)", Tip("mean response", "ms", "milliseconds")),
        ("answers per second", Tip("answers per second", "per_second", "number")),
    )
    panels = [
        marks.lines(
            rows, series, charts.seconds(rows), alt.Y(f"{tip.field}:Q").title(title),
            [*tips, tip], height=PANEL_HEIGHT - 40,
        )
        for title, tip in measures
    ]  # fmt: skip
    return Figure(
        "response-over-time",
        "Response and throughput over time",
        f"Fastest case ({_label(result, case)}), in bins of {words.duration(bins['width_ns'])}.",
        Plot(panels, [series]),
    )


def latency_figure(document: dict[str, Any]) -> Figure:
    """Return mean and p99 response against cache size, a line per tenant and policy."""
    block = int(document["block_bytes"])
    several = len({curve["policy"] for curve in document["latency"]}) > 1
    rows = [
        {
            "line": f"{curve['tenant']}, {curve['policy']}" if several else curve["tenant"],
            "size_bytes": point["size_blocks"] * block,
            "measure": measure,
            "ms": point[key] / NS_PER_MS,
        }
        for curve in document["latency"]
        for point in curve["points"]
        for measure, key in (("mean", "mean_ns"), ("p99", "p99_ns"))
    ]
    sizes = sorted({row["size_bytes"] for row in rows})
    title = "tenant and policy" if several else "tenant"
    series = Series("line", distinct(rows, "line"), title)
    measures = Series("measure", ["mean", "p99"], "measure", coloured=False, dashes={"p99": (4, 3)})
    axis = marks.size_axis("cache size", sizes[:: max(1, -(-len(sizes) // 9))])
    tips = [Tip(title, "line"), Tip("measure", "measure"), Tip("cache size", "size_bytes", "size")]
    panel = marks.lines(
        rows, series, alt.X("size_bytes:Q", axis=axis).scale(nice=False),
        alt.Y("ms:Q").title("response (ms)"), [*tips, Tip("response", "ms", "milliseconds")],
        height=PANEL_HEIGHT + 80, points=True, encodings=[measures.dash()],
    )  # fmt: skip
    return Figure(
        "latency-curves",
        "Response time by cache size",
        "Each tenant alone; size 0 is the cache switched off.",
        Plot([panel], [series, measures]),
    )
