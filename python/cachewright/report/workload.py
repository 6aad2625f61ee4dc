"""The page of a workload: requests over time and offset, re-use, and what a cache could do.

For: `page`, `figures` and `write` from the answer of `trace report` and `observe`. Units: seconds
or the largest unit below the span on time axes, bytes on size axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import altair as alt

from cachewright import words
from cachewright.answers import Distribution, OffsetMap, Runs, WorkloadAnswer
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.page import answered, section, whole_page
from cachewright.report.plots import (
    COLOURS,
    GREY,
    PANEL_HEIGHT,
    Panel,
    Plot,
    Ramp,
    Rows,
    Series,
    data,
    extent,
)
from cachewright.tables import conclusion as endings
from cachewright.tables import workload as tables

READS, WRITES = "reads", "writes"
KINDS = [READS, WRITES]
MAP_HEIGHT = 230
# Least room for the labels of value axes, so that time axes above each other begin at one place.
LABELS = 56
NS_PER_S = 1e9
# Largest first; a time axis has the first one of which the span has two or more.
UNITS = (("days", 86_400e9), ("hours", 3_600e9), ("minutes", 60e9), ("s", 1e9), ("ms", 1e6))
# Below this share of the hits of the largest cache a curve has not begun to bend.
FLAT = 0.05
DASHED = [5, 3]


def page(found: WorkloadAnswer, keys: Mapping[str, Any] | None = None) -> str:
    """Return the whole page; `keys` of the recommended stack say how the trace is read."""
    name = ", ".join(found.volumes[:3]) if tables.is_stream(found) else Path(found.path).name
    listed = "".join(
        f'<li>{escape(one.sentence)} <span class="note">{escape(one.evidence)}.</span></li>'
        for one in tables.findings(found)
    )
    suggested = tables.stack(found, None, keys)
    parts: list[str | Figure] = [
        f"<h1>{escape(name)}</h1>",
        '<p class="lead">What the requests are like, and what a cache could do</p>',
        answered(tables.conclusion(found)),
        f"<section><h2>Findings</h2><ul>{listed}</ul></section>" if listed else "",
        *figures(found),
        section(tables.facts(found), "The trace", facts=True),
        _stack(suggested),
        _notes(found),
        f"<footer>Cachewright {escape(found.cachewright)}</footer>",
    ]
    return whole_page(f"{name}: workload", parts)


def figures(found: WorkloadAnswer) -> list[Figure]:
    """Return the figures that the answer has numbers for, in the order of the page."""
    return list(_figures(found))


def write(
    found: WorkloadAnswer,
    path: Path,
    kinds: Sequence[str] = (),
    keys: Mapping[str, Any] | None = None,
) -> Path:
    """Write the page, and every figure in each of `kinds` beside it. Errors: `RunError`."""
    from cachewright.report import write_page

    return write_page(page(found, keys), figures(found), path, kinds)


def chart(found: WorkloadAnswer) -> Any:
    """Return the miss-ratio curve as an Altair chart; None for a trace without re-use."""
    return _curve(found).plot.still() if found.curve else None


def _stack(text: str) -> str:
    if not text:
        return ""
    title = "A stack to start from"
    return f"<section><h2>{title}</h2><pre>{escape(text)}</pre></section>"


def _notes(found: WorkloadAnswer) -> str:
    notes = list(found.notes)
    if found.skipped_irrelevant:
        records = words.counted(found.skipped_irrelevant, "record")
        notes.append(f"{records} skipped, no request in it")
    if found.skipped_bad:
        notes.append(f"{words.counted(found.skipped_bad, 'malformed record')} skipped")
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<section><h2>Notes</h2><ul class="note">{listed}</ul></section>' if notes else ""


def _figures(found: WorkloadAnswer) -> Iterator[Figure]:
    if found.curve:
        yield _curve(found)
    if len(found.periods) > 1:
        yield _rates(found)
    if found.has_times and found.offsets:
        yield _offsets(found)
    if len(found.periods) > 1:
        yield _working_set(found)
    if found.read_bytes_each.count or found.write_bytes_each.count:
        yield _sizes(found)
    if found.reuse.cells:
        yield _reuse(found)
    times = _times(found)
    if times is not None:
        yield times
    if found.read_runs.count or found.write_runs.count:
        yield _runs(found)
    if len(found.popularity.ranks) > 1:
        yield _popularity(found)


def _curve(found: WorkloadAnswer) -> Figure:
    """Draw the curve from where it begins to fall, with the knee and the recommended size."""
    sizes, names = found.curve, ["reads and writes"]
    if found.reads and found.writes:
        names.append("reads alone")
    bent = 1 - FLAT * (1 - sizes[-1].miss_ratio)
    start = next((p.blocks for p in sizes if p.miss_ratio < bent), sizes[-1].blocks)
    first = max([p.blocks for p in sizes if 0 < p.blocks < start] or [1])
    each = 1 if found.counts_objects else found.block_bytes
    rows: Rows = []
    for point in sizes:
        if point.blocks < first:
            continue
        ratios = [point.miss_ratio, point.read_miss_ratio]
        rows += [
            {"line": name, "size": point.blocks * each, "miss": ratio}
            for name, ratio in zip(names, ratios, strict=False)
        ]
    series = Series("line", names, "", "line")
    low, high = (rows[0]["size"], rows[-1]["size"])
    title = "cache size (objects)" if found.counts_objects else "cache size"
    ticks = marks.powers(low, high)
    axis = marks.size_axis(title, ticks)
    if found.counts_objects:
        axis = alt.Axis(title=title, format="~s", grid=False, values=ticks)
    domain = [low, high] if low < high else alt.Undefined
    x = alt.X("size:Q", axis=axis, scale=alt.Scale(type="log", base=2, nice=False, domain=domain))
    y = alt.Y("miss:Q").scale(domain=[0, 1]).title("miss ratio")
    kind = "count" if found.counts_objects else "size"
    tips = [Tip("of", "line"), Tip("cache size", "size", kind), Tip("miss ratio", "miss", "ratio")]
    above = []
    for label, blocks, share in _marked(found):
        at = data([{"size": blocks * each, "label": label, "y": share}])
        rule = alt.Chart(at).mark_rule(strokeDash=DASHED, color=GREY).encode(x)
        text = alt.Chart(at).mark_text(align="right", dx=-4, color=GREY, fontSize=11)
        above += [rule, text.encode(x, alt.Y("y:Q"), alt.Text("label:N"))]
    panel = marks.lines(
        rows, series, x, y, tips, height=PANEL_HEIGHT + 60, above=above, interpolate="step-after"
    )
    exact = "exact" if found.sample_rate >= 1 else "of a sample of the blocks"
    return Figure(
        "miss-ratio-curve",
        "What a cache would do",
        f"Share of the block accesses that miss in an LRU cache, {exact}.",
        Plot([panel], [series]),
    )


def _marked(found: WorkloadAnswer) -> Iterator[tuple[str, int, float]]:
    """Give sizes that are marked: a label, the size in blocks, and where the label stands."""
    if found.knee_blocks is not None:
        yield "knee", found.knee_blocks, 0.2
    for one in found.sizes:
        if one.share == endings.NEARLY:
            yield "nine tenths of all hits", one.blocks, 0.12
    if found.distinct_blocks:
        yield "working set", found.distinct_blocks, 0.04


def _unit(found: WorkloadAnswer) -> tuple[str, float]:
    """Return the unit of a time axis and its nanoseconds."""
    span = found.span_ns or 0
    return next(((name, ns) for name, ns in UNITS if span >= 2 * ns), UNITS[-1])


def _time(found: WorkloadAnswer) -> alt.X:
    unit, scale = _unit(found)
    domain = [0, max(found.span_ns or 0, 1) / scale]
    return alt.X("time:Q").title(f"time ({unit})").scale(domain=domain, nice=False)


def _rates(found: WorkloadAnswer) -> Figure:
    unit, scale = _unit(found)
    seconds = found.period_ns / NS_PER_S
    rows: Rows = []
    mix: Rows = []
    starts = [period.start_ns for period in found.periods]
    whole = tables.whole_periods(starts, found.period_ns, found.span_ns)
    for period in found.periods[:whole]:
        counts = (period.reads, period.writes)
        sizes = (period.read_bytes, period.write_bytes)
        time = period.start_ns / scale
        for kind, requests, size in zip(KINDS, counts, sizes, strict=True):
            row = {"kind": kind, "time": time, "rate": requests / seconds}
            rows.append({**row, "bandwidth": size / seconds})
        if sum(counts):
            mix.append({"time": time, "share": period.reads / sum(counts), "line": "share"})
    # Steps end where the last period does.
    end = (starts[whole - 1] + found.period_ns) / scale
    rows += [{**row, "time": end} for row in rows[-len(KINDS) :]]
    series = Series("kind", KINDS, "", "line")
    x = _time(found)
    rate_tips = [Tip("kind", "kind"), Tip(f"time ({unit})", "time", "number")]
    high = max(row["bandwidth"] for row in rows)
    bandwidth = alt.Axis(
        labelExpr=marks.SIZE_LABEL, values=marks.size_ticks(high), minExtent=LABELS
    )
    panels = [
        marks.lines(
            rows, series, x, alt.Y("rate:Q").title("requests per s").axis(minExtent=LABELS),
            [*rate_tips, Tip("requests per s", "rate", "number")],
            height=130, interpolate="step-after",
        ),
        marks.lines(
            rows, series, x, alt.Y("bandwidth:Q", axis=bandwidth).title("bytes per s"),
            [*rate_tips, Tip("bytes per s", "bandwidth", "size")],
            height=130, interpolate="step-after",
        ),
    ]  # fmt: skip
    share = alt.Chart(data(mix)).mark_area(color=COLOURS[0], opacity=0.5, interpolate="step-after")
    y = alt.Y("share:Q").scale(domain=[0, 1]).title("share of reads")
    y = y.axis(format="%", minExtent=LABELS)
    tips = [Tip(f"time ({unit})", "time", "number"), Tip("share of reads", "share", "percent")]
    drawn = marks.tipped(share.encode(x, y), tips)
    panels.append(Panel([drawn], height=90, says=marks.reading(mix, tips)))
    length = words.duration(found.period_ns)
    return Figure(
        "rate-over-time",
        "Requests over time",
        f"Requests and bytes per second, and the share of reads, in periods of {length}.",
        Plot(panels, [series]),
    )


def _offsets(found: WorkloadAnswer) -> Figure:
    panels = [_map(found, one) for one in found.offsets if one.cells]
    several = len(found.volumes) > len(panels)
    which = f" of the {len(panels)} busiest of {len(found.volumes)} volumes" if several else ""
    return Figure(
        "offsets-over-time",
        "Where requests go",
        f"Requests by offset and time{which}; stronger cells have more, on a logarithmic scale.",
        Plot(
            panels,
            [Ramp("requests in a cell", "1", words.short(_most(found)))],
            columns=2 if len(panels) > 1 else 1,
        ),
    )


def _most(found: WorkloadAnswer) -> int:
    return max(cell[2] + cell[3] for one in found.offsets for cell in one.cells)


def _map(found: WorkloadAnswer, one: OffsetMap) -> Panel:
    unit, scale = _unit(found)
    most = math.log1p(_most(found))
    rows: Rows = [
        {
            "time": column * one.column_ns / scale,
            "until": (column + 1) * one.column_ns / scale,
            "offset": one.first_bytes + row * one.row_bytes,
            "end": one.first_bytes + (row + 1) * one.row_bytes,
            "requests": reads + writes,
            "reads": reads,
            "shade": round(math.log1p(reads + writes) / most, 3),
        }
        for column, row, reads, writes in one.cells
    ]
    low, high = min(row["offset"] for row in rows), max(row["end"] for row in rows)
    step = max(1 << (max((high - low) // 5, 1).bit_length()), 1)
    ticks = list(range(-(-low // step) * step, high + 1, step))
    axis = alt.Axis(labelExpr=marks.SIZE_LABEL, values=ticks, title="offset", minExtent=LABELS)
    x = _time(found)
    y = alt.Y("offset:Q", axis=axis, scale=alt.Scale(domain=[low, high], nice=False, zero=False))
    tips = [Tip(f"from ({unit})", "time", "number"), Tip("offset", "offset", "size")]
    tips += [Tip("reads", "reads", "count"), Tip("requests", "requests", "count")]
    return Panel(
        [_cells(rows, x, alt.X2("until:Q"), y, alt.Y2("end:Q"), tips)],
        height=MAP_HEIGHT,
        title=one.volume if len(found.volumes) > 1 else "",
        says=marks.reading(rows, tips),
    )


def _cells(
    rows: Rows, x: alt.X, x2: alt.X2, y: alt.Y, y2: alt.Y2, tips: Sequence[Tip]
) -> alt.Chart:
    """Draw a heat map: the fuller a cell the larger its `shade`, on light and on dark paper."""
    shade = alt.Opacity("shade:Q", scale=alt.Scale(domain=[0, 1], range=[0.05, 1])).legend(None)
    drawn = alt.Chart(data(rows)).mark_rect(color=COLOURS[0], clip=True)
    return marks.tipped(drawn.encode(x, x2, y, y2, shade), tips)


def _working_set(found: WorkloadAnswer) -> Figure:
    unit, scale = _unit(found)
    each = 1 if found.counts_objects else found.block_bytes
    used, new, grown = "used in a period", "used for the first time", "used so far"
    rows: Rows = []
    total = 0.0
    for period in found.periods:
        total += period.new_blocks
        values = {used: period.used_blocks, new: period.new_blocks, grown: total}
        rows += [
            {"line": name, "time": period.start_ns / scale, "size": round(value * each)}
            for name, value in values.items()
        ]
    series = Series("line", [used, new, grown], "", "line", dashes={grown: (5, 3)})
    top = max(row["size"] for row in rows)
    kind = "count" if found.counts_objects else "size"
    title = "objects" if found.counts_objects else "bytes of blocks"
    axis = alt.Axis(
        labelExpr=marks.SIZE_LABEL, values=marks.size_ticks(top), title=title, minExtent=LABELS
    )
    if found.counts_objects:
        axis = alt.Axis(format="~s", title=title)
    y = alt.Y("size:Q", axis=axis)
    tips = [Tip("blocks", "line"), Tip(f"time ({unit})", "time", "number")]
    tips.append(Tip(title, "size", kind))
    panel = marks.lines(
        rows, series, _time(found), y, tips, height=PANEL_HEIGHT, interpolate="step-after",
        encodings=[series.dash()],
    )  # fmt: skip
    return Figure(
        "working-set-over-time",
        "Working set over time",
        f"Distinct blocks in use within each period of {words.duration(found.period_ns)}, those "
        "of them never used before, and all so far.",
        Plot([panel], [series]),
    )


def _sizes(found: WorkloadAnswer) -> Figure:
    lines = {READS: found.read_bytes_each, WRITES: found.write_bytes_each}
    return _cumulative(
        "request-sizes",
        "Request sizes",
        "Share of the requests that are no larger.",
        lines,
        "request size",
        "size",
    )


def _times(found: WorkloadAnswer) -> Figure | None:
    lines = {
        "a request after another": found.arrivals_ns,
        "a block used again": found.reuse.times_ns,
        "a block written again": found.updates.intervals_ns,
    }
    if not any(one.count for one in lines.values()):
        return None
    return _cumulative(
        "times-between",
        "Times between",
        "Share of the requests, re-uses and overwrites that come within a time of the one before.",
        lines,
        "time",
        "milliseconds",
    )


def _cumulative(
    name: str, title: str, caption: str, lines: dict[str, Distribution], axis: str, kind: str
) -> Figure:
    """Draw distributions as shares at or below a value, on a logarithmic axis."""
    rows: Rows = []
    shown = [line for line, one in lines.items() if one.count]
    unit = 1.0 if kind == "size" else 1e6
    for line in shown:
        one, sum_ = lines[line], 0.0
        for end, count in one.histogram:
            sum_ += count
            rows.append({"line": line, "value": max(end, 1) / unit, "share": sum_ / one.count})
    series = Series("line", shown, "", "line")
    low, high = extent([row["value"] for row in rows])
    if kind == "size":
        shown_axis = marks.size_axis(axis, marks.powers(round(low), round(high)))
        scale = alt.Scale(type="log", base=2, nice=False, domain=[low, high])
    else:
        ticks = marks.decades(max(low, 1e-6), high)
        shown_axis = alt.Axis(title=axis, labelExpr=marks.MILLISECONDS_LABEL, values=ticks)
        scale = alt.Scale(type="log", nice=False, domain=[ticks[0], ticks[-1]])
    x = alt.X("value:Q", axis=shown_axis, scale=scale)
    y = alt.Y("share:Q").scale(domain=[0, 1]).title("share at or below").axis(format="%")
    tips = [Tip("of", "line"), Tip(axis, "value", kind), Tip("share", "share", "percent")]
    panel = marks.lines(rows, series, x, y, tips, interpolate="step-after")
    return Figure(name, title, caption, Plot([panel], [series]))


def _reuse(found: WorkloadAnswer) -> Figure:
    """Draw re-uses by how long ago and by how many blocks ago a block was used."""
    each = 1 if found.counts_objects else found.block_bytes
    total = sum(weight for _, _, weight in found.reuse.cells)
    most = math.sqrt(max(weight for _, _, weight in found.reuse.cells))
    rows: Rows = [
        {
            "time": max(time_ns / 2, 0.5) / 1e6,
            "until": time_ns / 1e6,
            "distance": max(distance / 2, 0.5) * each,
            "end": distance * each,
            "share": weight / total,
            "shade": round(math.sqrt(weight) / most, 3),
        }
        for time_ns, distance, weight in found.reuse.cells
    ]
    times = extent([row["time"] for row in rows] + [row["until"] for row in rows])
    sizes = extent([row["distance"] for row in rows] + [row["end"] for row in rows])
    ticks = [one for one in marks.decades(times[0], times[1]) if times[0] <= one <= times[1]]
    x_axis = alt.Axis(
        title="time since the last use", labelExpr=marks.MILLISECONDS_LABEL, values=ticks
    )
    x = alt.X("time:Q", axis=x_axis, scale=alt.Scale(type="log", domain=times, nice=False))
    y_values = marks.powers(round(sizes[0]), round(sizes[1]))
    title = "objects used since" if found.counts_objects else "blocks used since"
    y_axis = alt.Axis(title=title, labelExpr=marks.SIZE_LABEL, values=y_values)
    if found.counts_objects:
        y_axis = alt.Axis(title=title, format="~s", values=y_values)
    scale = alt.Scale(type="log", base=2, domain=sizes, nice=False)
    y = alt.Y("distance:Q", axis=y_axis, scale=scale)
    kind = "count" if found.counts_objects else "size"
    tips = [Tip("used again within", "until", "milliseconds"), Tip("in a cache of", "end", kind)]
    tips.append(Tip("share of re-uses", "share", "percent"))
    panel = Panel(
        [_cells(rows, x, alt.X2("until:Q"), y, alt.Y2("end:Q"), tips)],
        height=MAP_HEIGHT,
        says=marks.reading(rows, tips),
    )
    return Figure(
        "reuse-times-and-distances",
        "When blocks are used again",
        "Re-uses by time and by the blocks used in between, which is the LRU cache that hits; "
        "stronger cells have more.",
        Plot([panel], [Ramp("share of re-uses", "0%", words.percent(most**2 / total))]),
    )


def _runs(found: WorkloadAnswer) -> Figure:
    rows: Rows = []
    for kind, runs in ((READS, found.read_runs), (WRITES, found.write_runs)):
        rows += _bytes_by_run(kind, runs)
    ends = sorted({row["length"] for row in rows})
    labels = [words.size(end) for end in ends]
    for row in rows:
        row["within"] = words.size(row["length"])
    series = Series("kind", [k for k in KINDS if any(r["kind"] == k for r in rows)], "", "box")
    x = alt.X("within:N").sort(labels).title("run of consecutive offsets, up to").axis(labelAngle=0)
    y = alt.Y("share:Q").title("share of its bytes").axis(format="%")
    tips = [Tip("kind", "kind"), Tip("run up to", "length", "size")]
    tips += [Tip("runs", "runs", "count"), Tip("share of its bytes", "share", "percent")]
    chart = alt.Chart(data(rows)).mark_bar()
    chart = chart.encode(x, y, series.colour(), xOffset=alt.XOffset("kind:N").sort(KINDS))
    drawn = marks.tipped(chart, tips)
    panel = Panel([drawn], height=150, series=series.field, says=marks.reading(rows, tips))
    scan = words.size(found.read_runs.scan_bytes)
    return Figure(
        "sequential-runs",
        "Sequential runs",
        f"Share of the bytes read, and of those written, by the length of the run that they are "
        f"part of. Runs of {scan} and more are scans.",
        Plot([panel], [series]),
    )


def _bytes_by_run(kind: str, runs: Runs) -> Rows:
    total = sum(size for _, _, size in runs.histogram)
    return [
        {"kind": kind, "length": end, "runs": count, "share": size / total}
        for end, count, size in runs.histogram
        if total
    ]


def _popularity(found: WorkloadAnswer) -> Figure:
    popular = found.popularity
    lines = ["blocks"]
    rows: Rows = [
        {"line": "blocks", "rank": rank, "accesses": count} for rank, count in popular.ranks
    ]
    if popular.exponent is not None and popular.fit is not None:
        fit = f"rank^-{popular.exponent:.2f}, fit {popular.fit:.2f}"
        lines.append(fit)
        above = [(math.log(r), math.log(c)) for r, c in popular.ranks if c > popular.ranks[-1][1]]
        mean_x = sum(x for x, _ in above) / len(above)
        mean_y = sum(y for _, y in above) / len(above)
        for rank in (popular.ranks[0][0], popular.ranks[-1][0]):
            value = math.exp(mean_y - popular.exponent * (math.log(rank) - mean_x))
            rows.append({"line": fit, "rank": rank, "accesses": value})
    low, high = extent([row["rank"] for row in rows])
    most = max(row["accesses"] for row in rows)
    ranks, counts = marks.decades(low, high, 8), marks.decades(1, max(most, 2), 8)
    x_axis = alt.Axis(title="blocks by accesses, most first", format="~s", values=ranks, grid=False)
    x = alt.X("rank:Q", axis=x_axis, scale=alt.Scale(type="log", domain=[low, high], nice=False))
    y_axis = alt.Axis(title="accesses of the block", format="~s", values=counts)
    y = alt.Y("accesses:Q", axis=y_axis)
    y = y.scale(alt.Scale(type="log", domain=[0.8, counts[-1]], nice=False, clamp=True))
    series = Series("line", lines, "", "line", dashes=dict.fromkeys(lines[1:], (5, 3)))
    tips = [Tip("line", "line"), Tip("rank", "rank", "count")]
    tips.append(Tip("accesses", "accesses", "number"))
    panels = [
        marks.lines(rows, series, x, y, tips, title="accesses by rank", encodings=[series.dash()])
    ]
    shares: Rows = [{"line": "blocks", "share": a, "accesses": b} for a, b in popular.shares]
    share_x = alt.X("share:Q").title("share of the blocks, most used first").axis(format="%")
    share_y = alt.Y("accesses:Q").title("share of the accesses").axis(format="%")
    share_y = share_y.scale(domain=[0, 1])
    tips = [Tip("share of the blocks", "share", "percent")]
    tips.append(Tip("share of the accesses", "accesses", "percent"))
    panels.append(marks.lines(shares, series, share_x, share_y, tips, title="share of accesses"))
    return Figure(
        "popularity",
        "How popular blocks are",
        "Accesses of each block by its rank, with the power law that fits best, and the share of "
        "the accesses that the most used blocks have.",
        Plot(panels, [series], columns=2),
    )
