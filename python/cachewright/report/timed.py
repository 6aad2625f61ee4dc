"""The figures of a run on devices: response times, where time and energy went, busy drives.

The figure of `mrc --latency` is here, too. Units: milliseconds on axes, seconds of simulated time,
shares of the replay's time as percentages, joules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import words
from cachewright.answers import Case, CurvesAnswer, Dies
from cachewright.report import charts, marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.plots import (
    COLOURS,
    PANEL_HEIGHT,
    Panel,
    Plot,
    Ramp,
    Rows,
    Series,
    data,
    distinct,
    extent,
)
from cachewright.tables import summary, timing

if TYPE_CHECKING:
    from cachewright.results import RunFrames

CASES = 6
# Drives with more parts than this are not drawn part by part.
MOST_DIES = 1024
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
    return [*responses, _over_time(result, shown[0]), *_drives(result, shown)]


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


def _drives(result: RunFrames, cases: list[Case]) -> list[Figure]:
    """Return the figures of timed cases, the fastest first."""
    label = summary.label(cases[0], result.answer.varied)
    of_case = f"Fastest case ({label}): " if len(cases) > 1 else ""
    found = [
        _busy(name, drive, of_case)
        for name, drive in timing.drives(cases[0])
        if len(drive.dies.busy) <= MOST_DIES
    ]
    spent = [case for case in cases if timing.energy(case)]
    return [*found, _energy(result, spent)] if spent else found


def _busy(name: str, drive: timing.Drive, of_case: str) -> Figure:
    channels, dies = drive.channels.busy, drive.dies
    unit, per_channel = dies.unit, len(dies.busy) // len(channels)
    parts = [
        {"channel": at // per_channel, "place": at % per_channel, "busy": share}
        for at, share in enumerate(dies.busy)
    ]
    stages = list(dies.stages)
    series = Series("stage", stages, "spent on", "box")
    busiest = max(*dies.busy, 1e-9)
    ramp = Ramp(f"{unit} busy", words.percent(0.0), words.percent(busiest))
    height = max(90, min(14 * per_channel, 260))
    key = "" if name == "drive" else f"-{name.replace(' ', '-')}"
    title = "How busy the flash was" if name == "drive" else f"How busy the flash of {name} was"
    caption = (
        f"{of_case}What the {unit}s spent their time on, on average; the share of the time that "
        f"each channel was taken; and that each {unit} worked."
    )
    panels = [_stages(dies, series), _channels(channels), _grid(parts, unit, busiest, height)]
    return Figure(f"drive-busy{key}", title, caption, Plot(panels, [series, ramp]))


def _channels(channels: Sequence[float]) -> Panel:
    rows = [{"channel": at, "busy": share} for at, share in enumerate(channels)]
    tips = [Tip("channel", "channel"), Tip("busy", "busy", "percent")]
    bars = alt.Chart(data(rows)).mark_bar(color=COLOURS[0])
    bars = bars.encode(_channel(), alt.Y("busy:Q").title("channel busy").axis(format="%"))
    return Panel([marks.tipped(bars, tips)], height=100, says=marks.reading(rows, tips))


def _channel() -> alt.X:
    return alt.X("channel:O").title("channel").axis(labelAngle=0)


def _grid(rows: list[dict[str, Any]], unit: str, busiest: float, height: int) -> Panel:
    """Draw a cell per die, the fuller the busier: so it reads on light and on dark paper."""
    tips = [Tip("channel", "channel"), Tip(f"{unit} of the channel", "place")]
    tips.append(Tip("busy", "busy", "percent"))
    scale = alt.Scale(domain=[0, busiest], range=[0, 1])
    shade = alt.Opacity("busy:Q", scale=scale).title(f"{unit} busy").legend(format="%")
    cells = alt.Chart(data(rows)).mark_rect(color=COLOURS[0])
    cells = cells.encode(_channel(), alt.Y("place:O").title(f"{unit} of the channel"), shade)
    return Panel([marks.tipped(cells, tips)], height=height, says=marks.reading(rows, tips))


def _stages(dies: Dies, series: Series) -> Panel:
    rows = [
        {"what": f"{dies.unit}s", "stage": stage, "order": order, "share": share}
        for order, (stage, share) in enumerate(dies.stages.items())
    ]
    x = alt.X("share:Q").title("share of the time").axis(format="%")
    tips = [Tip("spent on", "stage"), Tip("share of the time", "share", "percent")]
    y = marks.row_names("what", [f"{dies.unit}s"])
    return marks.bars(rows, series, x, y, tips, encodings=[alt.Order("order:Q")])


def _energy(result: RunFrames, cases: list[Case]) -> Figure:
    varied = result.answer.varied
    rows = [
        {
            "case": summary.label(case, varied),
            "part": f"{device.name}: {part}",
            "order": order,
            "joules": joules,
            "text": timing.quantity(joules, "J"),
        }
        for case in cases
        for device in timing.of(case).devices
        if device.energy
        for order, (part, joules) in enumerate(device.energy.parts.items())
    ]
    series = Series("part", distinct(rows, "part"), "where it went", "box")
    y = marks.row_names("case", distinct(rows, "case"))
    if len(cases) == 1:
        y = y.axis(labels=False, ticks=False)
    tips = [Tip("case", "case")] if len(cases) > 1 else []
    tips += [Tip("spent on", "part"), Tip("energy", "text")]
    x, order = alt.X("joules:Q").title("energy (J)"), alt.Order("order:Q")
    bars = marks.bars(rows, series, x, y, tips, encodings=[order])
    return Figure(
        "energy",
        "Energy",
        "What devices spent over the whole replay, by device and part; devices whose power is not "
        "given are left out.",
        Plot([bars], [series]),
    )
