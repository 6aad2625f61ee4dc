"""Figures of response times: where time went, responses over time, curves over cache size.

For: the report of stacks with devices, and the figure of `mrc --latency`. Must never know: HTML.
Units: milliseconds on axes, seconds of simulated time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import summary, timing, words
from cachewright.report import charts, drives
from cachewright.report.figures import Figure

if TYPE_CHECKING:
    from cachewright.result import Curves, Result

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
    bars = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("sum(ms):Q").title("mean response (ms)"),
            y=alt.Y("tenant:N").sort(None).title(None),
            color=alt.Color("part:N").sort(parts).title("where time went"),
            order=alt.Order("order:Q"),
            tooltip=["tenant:N", "part:N", alt.Tooltip("ms:Q", format=".4g"), "share:N"],
        )
        .properties(width=charts.WIDE_WIDTH - 160, height=alt.Step(22))
    )
    return Figure(
        "response-breakdown",
        "Where time went",
        f"Mean response of each tenant, cut into what it was spent on{_order(cases)}.",
        _by_case(bars, cases, result),
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
            "response": words.duration(line[key]),
        }
        for case in cases
        for line in timing.lines(case)
        for name, key in keys.items()
    ]
    dots = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=alt.X("ms:Q").scale(type="log").title("response (ms)"),
            y=alt.Y("tenant:N").sort(None).title(None).axis(grid=True),
            color=alt.Color("percentile:N").sort(list(keys)).title("percentile"),
            shape=alt.Shape("percentile:N").sort(list(keys)).legend(None),
            tooltip=["tenant:N", "percentile:N", "response:N"],
        )
        .properties(width=charts.WIDE_WIDTH - 160, height=alt.Step(22))
    )
    return Figure(
        "response-percentiles",
        "Response times",
        f"Percentiles of each tenant's responses, on a logarithmic axis{_order(cases)}.",
        _by_case(dots, cases, result),
    )


def _order(cases: list[dict[str, Any]]) -> str:
    return "; the fastest cases first and the slowest last" if len(cases) > 1 else ""


def _by_case(chart: Any, cases: list[dict[str, Any]], result: Result) -> Any:
    labels = [_label(result, case) for case in cases]
    if len(cases) == 1:
        return chart
    return chart.facet(
        row=alt.Row("case:N")
        .sort(labels)
        .title(None)
        .header(labelOrient="top", labelAnchor="start")
    )


def _over_time(result: Result, case: dict[str, Any]) -> Figure:
    series = case["timing"]["series"]
    width_s = series["width_ns"] / NS_PER_S
    names = [tenant["name"] for tenant in case["timing"]["tenants"]]
    rows = [
        {
            "tenant": name,
            "seconds": (index + 0.5) * width_s,
            "per_second": requests / width_s,
            "ms": mean_ns / NS_PER_MS,
        }
        for name, bins in zip(names, series["tenants"], strict=True)
        for index, (requests, _, mean_ns) in enumerate(bins)
        if requests
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("seconds:Q").title("seconds").scale(nice=False),
        color=alt.Color("tenant:N").sort(names).title("tenant"),
    )
    line = base.mark_line(strokeWidth=1.4).properties(
        width=charts.WIDE_WIDTH, height=charts.PANEL_HEIGHT - 60
    )
    chart = alt.vconcat(
        line.encode(y=alt.Y("ms:Q").title("mean response (ms)")),
        line.encode(y=alt.Y("per_second:Q").title("answers per second")),
    )
    return Figure(
        "response-over-time",
        "Response and throughput over time",
        f"Fastest case ({_label(result, case)}), in bins of {words.duration(series['width_ns'])}.",
        chart,
    )


def latency_figure(curves: Curves) -> Figure:
    """Return mean and p99 response against cache size, a line per tenant and policy."""
    block = int(curves.document["block_bytes"])
    several = len({curve["policy"] for curve in curves.document["latency"]}) > 1
    rows = [
        {
            "line": f"{curve['tenant']}, {curve['policy']}" if several else curve["tenant"],
            "size_bytes": point["size_blocks"] * block,
            "size": words.size(point["size_blocks"] * block),
            "measure": measure,
            "ms": point[key] / NS_PER_MS,
        }
        for curve in curves.document["latency"]
        for point in curve["points"]
        for measure, key in (("mean", "mean_ns"), ("p99", "p99_ns"))
    ]
    sizes = sorted({row["size_bytes"] for row in rows})
    step = max(1, -(-len(sizes) // 9))
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=1.6, point=alt.OverlayMarkDef(filled=True, size=40))
        .encode(
            x=alt.X("size_bytes:Q")
            .scale(nice=False)
            .axis(values=sizes[::step], labelExpr=charts.SIZE_LABEL, title="cache size"),
            y=alt.Y("ms:Q").title("response (ms)"),
            color=alt.Color("line:N").sort(None).title("tenant"),
            strokeDash=alt.StrokeDash("measure:N").title("measure"),
            tooltip=["line:N", "measure:N", "size:N", alt.Tooltip("ms:Q", format=".4g")],
        )
        .properties(width=charts.WIDE_WIDTH, height=charts.PANEL_HEIGHT + 80)
    )
    return Figure(
        "latency-curves",
        "Response time by cache size",
        "Each tenant alone; size 0 is the cache switched off.",
        chart,
    )
