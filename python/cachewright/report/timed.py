"""The figures of a run on devices: response times, where time and energy went, busy drives.

The figure of `mrc --latency` is here, too. Units: milliseconds on axes, seconds of simulated time,
shares of the replay's time as percentages, joules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    SHAPES,
    Panel,
    Plot,
    Ramp,
    Rows,
    Series,
    data,
    distinct,
    extent,
)
from cachewright.tables import ranking, summary, timing

if TYPE_CHECKING:
    from cachewright.results import RunFrames

CASES = 6
# Drives with more parts than this are not drawn part by part.
MOST_DIES = 1024
NS_PER_MS = 1e6
NS_PER_S = 1e9
# Times that differ by more than this factor have a logarithmic axis.
WIDE = 20
# A logarithmic axis has no zero: shorter responses are drawn at a microsecond.
LEAST_NS = 1e3
# What is left free at both ends of a logarithmic axis, as a factor.
MARGIN = 1.2


def figures(result: RunFrames) -> list[Figure]:
    """Return the figures of response times and devices that the result has."""
    timed = [case for case in result.answer.cases if case.timing]
    if not timed:
        return []
    shown = sorted(timed, key=lambda case: (timing.of(case).total.mean_ns, case.case))
    shown = shown if len(shown) <= CASES else [*shown[: CASES - 1], shown[-1]]
    responses = [*_distribution(result, shown), _breakdown(result, shown)]
    return [*responses, _over_time(result, shown[0]), *_drives(result, shown)]


def _label(result: RunFrames, case: Case) -> str:
    return summary.label(case, result.answer.varied)


def _breakdown(result: RunFrames, cases: list[Case]) -> Figure:
    lines = [line for case in cases for line in _lines(case, cases)]
    parts = timing.parts(lines)
    rows: Rows = [
        {
            "row": line.name if len(cases) == 1 else _label(result, case),
            "part": part,
            "order": order,
            "ms": line.breakdown_ns.get(part, 0.0) / NS_PER_MS,
            "share": words.percent(timing.share(line, part)),
        }
        for case in cases
        for line in _lines(case, cases)
        for order, part in enumerate(parts)
    ]
    series = Series("part", parts, "where time went", "box")
    x = alt.X("ms:Q").title("mean response (ms)")
    x = x.scale(domain=[0, max(line.mean_ns for line in lines) / NS_PER_MS], nice=True)
    tips = [Tip("tenant" if len(cases) == 1 else "case", "row"), Tip("spent on", "part")]
    tips += [Tip("share", "share"), Tip("time", "ms", "milliseconds")]
    y, order = marks.row_names("row", distinct(rows, "row")), alt.Order("order:Q")
    return Figure(
        "response-breakdown",
        "Where time went",
        f"Mean response of {_whose(cases)}, cut into what it was spent on{_order(cases)}.",
        Plot([marks.bars(rows, series, x, y, tips, encodings=[order])], [series]),
    )


def _lines(case: Case, cases: list[Case]) -> list[timing.Line]:
    """Return the tenants of the only case; of several cases what all tenants have together."""
    return timing.lines(case) if len(cases) == 1 else timing.lines(case)[-1:]


def _whose(cases: list[Case]) -> str:
    return "each tenant" if len(cases) == 1 else "all tenants together"


def _distribution(result: RunFrames, cases: list[Case]) -> list[Figure]:
    """Return which share of requests was answered within a time; nothing of older results."""
    field = "tenant" if len(cases) == 1 else "case"
    rows: Rows = []
    for case in cases:
        for line in _lines(case, cases):
            name = line.name if len(cases) == 1 else _label(result, case)
            answered = 0
            for place, (time_ns, requests) in enumerate(line.by_time or ()):
                ms = max(time_ns, LEAST_NS) / NS_PER_MS
                if place == 0:
                    rows.append({field: name, "share": 0.0, "nines": 0.0, "ms": ms})
                answered += requests
                # Nor has an axis of nines an end: the longest stands where all but one are.
                share = min(answered, max(line.requests - 1, 1)) / max(line.requests, 2)
                nines = -math.log10(1.0 - share)
                rows.append({field: name, "share": share, "nines": nines, "ms": ms})
    if not rows:
        return []
    names = distinct(rows, field)
    dashes = {timing.ALL: charts.DASHED} if field == "tenant" else {}
    series = Series(field, names, field, dashes=dashes)
    low, high = extent([row["ms"] for row in rows])
    ticks = marks.decades(low, high)
    x = alt.X(
        "ms:Q",
        scale=alt.Scale(type="log", domain=[low / MARGIN, MARGIN * high], nice=False),
        axis=alt.Axis(title="response", labelExpr=marks.MILLISECONDS_LABEL, values=ticks),
    )
    most = max(row["nines"] for row in rows)
    text = "format(1 - pow(10, -datum.value), '.6~%')"
    values = [-math.log10(0.5), *range(1, 1 + math.ceil(most))]
    axis = alt.Axis(title="share of requests", labelExpr=text, values=values)
    y = alt.Y("nines:Q", axis=axis).scale(zero=True, nice=False)
    tips = [Tip(field, field), Tip("share of requests", "share", "share")]
    tips.append(Tip("answered within", "ms", "milliseconds"))
    panel = marks.lines(
        rows, series, x, y, tips, height=PANEL_HEIGHT + 60, interpolate="step-after",
        encodings=[series.dash()] if dashes else [],
    )  # fmt: skip
    caption = (
        f"The share of requests of {_whose(cases)} that were answered within a time"
        f"{_order(cases)}. Both axes are logarithmic: 99% stands as far above 90% as 99.9% above "
        "99%."
    )
    title = "Response times"
    return [Figure("response-distribution", title, caption, Plot([panel], [series]))]


def _order(cases: list[Case]) -> str:
    return "; the fastest cases first and the slowest last" if len(cases) > 1 else ""


def _response_axis(rows: Rows, title: str = "response") -> alt.Y:
    """Return the axis of times in milliseconds, logarithmic where they differ much."""
    times = [row["ms"] for row in rows if row["ms"] > 0]
    if not times or max(times) < WIDE * min(times):
        return alt.Y("ms:Q").title(f"{title} (ms)")
    ticks = marks.decades(min(times), max(times), 9)
    axis = alt.Axis(title=title, labelExpr=marks.MILLISECONDS_LABEL, values=ticks)
    scale = alt.Scale(type="log", domain=[ticks[0], ticks[-1]], nice=False, clamp=True)
    return alt.Y("ms:Q", axis=axis, scale=scale)


def amplification(result: RunFrames) -> Figure | None:
    """Return write amplification against the mean response, a mark per case.

    None where nothing of a drive is varied.
    """
    answer = result.answer
    keys = [key for key in answer.varied if key.startswith(ranking.DRIVE_KEYS)]
    cases = [case for case in answer.cases if case.timing and ranking.amplification(case)]
    if not keys or len(cases) < 2:
        return None
    rows: Rows = [
        {
            "case": _label(result, case),
            "drive": summary.label(case, keys[:1]),
            "other": summary.label(case, [key for key in answer.varied if key != keys[0]]),
            "ms": timing.of(case).total.mean_ns / NS_PER_MS,
            "p99": timing.of(case).total.p99_ns / NS_PER_MS,
            "amplification": ranking.amplification(case),
        }
        for case in cases
    ]
    drives = Series("drive", distinct(rows, "drive"), "", "point", shaped=len(answer.varied) == 1)
    others = Series(
        "other", distinct(rows, "other"), "other settings", "point", shaped=True, coloured=False
    )
    told = 1 < len(others.names) <= len(SHAPES)
    time = alt.Axis(title="mean response", labelExpr=marks.MILLISECONDS_LABEL)
    means, amplified = ([row[key] for row in rows] for key in ("ms", "amplification"))
    x = alt.X("ms:Q", axis=time, scale=marks.around(means))
    y = alt.Y("amplification:Q", scale=marks.around(amplified)).title("write amplification")
    tips = [Tip("case", "case"), Tip("mean response", "ms", "milliseconds")]
    tips += [Tip("p99 response", "p99", "milliseconds")]
    tips.append(Tip("write amplification", "amplification", "ratio"))
    panel = marks.dots(
        rows, drives, x, y, tips, height=PANEL_HEIGHT + 60,
        encodings=[others.shape()] if told else [],
    )  # fmt: skip
    return Figure(
        "write-amplification-by-response",
        "Write amplification and response",
        "Pages programmed to flash per page written to it, against the mean response, a mark per "
        "case: good ones lie low and to the left. The axes do not start at zero.",
        Plot([panel], [drives, *([others] if told else [])]),
    )


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
    # A logarithmic axis has no zero: without a cache a point stands left of all sizes.
    smallest = next((size for size in sizes if size), 1)
    none = smallest // 2 if sizes[0] == 0 else smallest
    for row in rows:
        row["size"] = words.size(row["size_bytes"])
        row["size_bytes"] = row["size_bytes"] or none
    x = marks.sizes("size_bytes", "cache size", none, max(sizes[-1], none + 1))
    label = f"datum.value == {none} ? 'none' : {marks.SIZE_LABEL}" if sizes[0] == 0 else ""
    if label:
        values = [none, *(at for at in marks.powers(smallest, max(sizes[-1], smallest)))]
        x = x.axis(title="cache size", labelExpr=label, grid=False, values=values)
    tips = [Tip(title, "line"), Tip("measure", "measure"), Tip("cache size", "size")]
    panel = marks.lines(
        rows, series, x, _response_axis(rows), [*tips, Tip("response", "ms", "milliseconds")],
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
