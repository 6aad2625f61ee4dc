"""Figures of response times: where time went, responses over time, curves over cache size.

For: the report of stacks with devices, and the figure of `mrc --latency`. Must never know: HTML.
Units: milliseconds on axes, seconds of simulated time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import altair as alt

from cachewright import summary, timing, words
from cachewright.answers import Case, CurvesAnswer
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
    from cachewright.results import RunFrames

CASES = 6
NS_PER_MS = 1e6
NS_PER_S = 1e9


def figures(result: RunFrames) -> list[Figure]:
    """Return the figures that the result has times for."""
    timed = [case for case in result.answer.cases if case.timing]
    if not timed:
        return []
    shown = sorted(timed, key=lambda case: (timing.of(case).total.mean_ns, case.case))
    shown = shown if len(shown) <= CASES else [*shown[: CASES - 1], shown[-1]]
    responses = [_breakdown(result, shown), _percentiles(result, shown)]
    return [*responses, _over_time(result, shown[0]), *drives.figures(result, shown)]


def _label(result: RunFrames, case: Case) -> str:
    return summary.label(case, result.answer.varied)


def _breakdown(result: RunFrames, cases: list[Case]) -> Figure:
    lines = [line for case in cases for line in timing.lines(case)]
    parts = timing.parts(lines)
    rows: Rows = [
        {
            "case": _label(result, case),
            "tenant": line.name,
            "part": part,
            "order": order,
            "ms": line.breakdown_ns.get(part, 0.0) / NS_PER_MS,
            "share": words.percent(timing.share(line, part)),
        }
        for case in cases
        for line in timing.lines(case)
        for order, part in enumerate(parts)
    ]
    series = Series("part", parts, "where time went", "box")
    totals = [line.mean_ns / NS_PER_MS for case in cases for line in timing.lines(case)]
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


def _percentiles(result: RunFrames, cases: list[Case]) -> Figure:
    shares = [(name, of) for name, of in timing.PERCENTILES if name != "mean"]
    rows: Rows = [
        {
            "case": _label(result, case),
            "tenant": line.name,
            "percentile": name,
            # A logarithmic axis has no zero: what took no time is drawn at a nanosecond.
            "ms": max(of(line), 1) / NS_PER_MS,
        }
        for case in cases
        for line in timing.lines(case)
        for name, of in shares
    ]
    series = Series("percentile", [name for name, _ in shares], "percentile", "point", shaped=True)
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


def _order(cases: list[Case]) -> str:
    return "; the fastest cases first and the slowest last" if len(cases) > 1 else ""


def _by_case(rows: Rows, draw: Callable[[Rows, str], Panel]) -> list[Panel]:
    """Return a panel per case, titled if there are several."""
    cases = distinct(rows, "case")
    if len(cases) == 1:
        return [draw(rows, "")]
    return [draw([row for row in rows if row["case"] == case], case) for case in cases]


def _over_time(result: RunFrames, case: Case) -> Figure:
    bins = timing.of(case).series
    width_s = bins.width_ns / NS_PER_S
    names = [tenant.name for tenant in timing.of(case).tenants]
    rows: Rows = [
        {
            "tenant": name,
            "seconds": (index + 0.5) * width_s,
            "per_second": requests / width_s,
            "ms": mean_ns / NS_PER_MS,
        }
        for name, each in zip(names, bins.tenants, strict=True)
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
        f"Fastest case ({_label(result, case)}), in bins of {words.duration(bins.width_ns)}.",
        Plot(panels, [series]),
    )


def latency_figure(answer: CurvesAnswer) -> Figure:
    """Return mean and p99 response against cache size, a line per tenant and policy."""
    curves = answer.latency or ()
    several = len({curve.policy for curve in curves}) > 1
    rows: Rows = [
        {
            "line": f"{curve.tenant}, {curve.policy}" if several else curve.tenant,
            "size_bytes": point.size_blocks * answer.block_bytes,
            "measure": measure,
            "ms": time_ns / NS_PER_MS,
        }
        for curve in curves
        for point in curve.points
        for measure, time_ns in (("mean", point.mean_ns), ("p99", point.p99_ns))
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
