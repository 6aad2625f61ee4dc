"""What write amplification costs in time: bandwidth over the replay, then response times.

For: `cachewright_lab.report.reproduced`. Must never know: how numbers were measured, HTML. Units:
MB/s are millions of bytes; response times of the last part of a trace at its own times.
"""

from __future__ import annotations

from collections.abc import Callable

import altair as alt

from cachewright import words
from cachewright.answers import ResponseTimes
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.parts import Table, plain
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series
from cachewright_lab.reproduce.drive_replays import DriveReplays, ReplaysSpec, Scheme
from cachewright_lab.reproduce.replayed import PARTS

MB, NS_PER_US = 1e6, 1e3
Of = Callable[[ResponseTimes], float]
QUANTILES: dict[str, Of] = {
    "p50": lambda found: found.p50_ns,
    "p90": lambda found: found.p90_ns,
    "p99": lambda found: found.p99_ns,
    "p99.9": lambda found: found.p999_ns,
}
# Where each percentile stands on an axis of the share of requests that take longer.
BEYOND = {"p50": 0.5, "p90": 0.1, "p99": 0.01, "p99.9": 0.001}


def notes(what: DriveReplays) -> list[str]:
    """Return what to know before the numbers."""
    last = words.percent(float(what.about["last"]))
    return [
        f"Bandwidth is of all bytes answered, {what.about['queue_depth']} requests under way, in "
        f"ten equal parts of them. Response times are of the last {last} of a trace's time, its "
        f"times stretched {words.significant(float(what.about['time_scale']))} times."
    ]


def shared(what: DriveReplays) -> list[Table]:
    """Return no table: every figure has its own."""
    return []


def shown(what: DriveReplays, figure: ReplaysSpec) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    if figure.shows == "predictions":
        return [_predictions(what, figure)]
    found: list[Table | Figure] = [
        _bandwidth(what, figure),
        _bandwidth_chart(what, figure),
        _responses(what, figure),
        _responses_chart(what, figure),
    ]
    return found


def _base(figure: ReplaysSpec) -> Scheme:
    return next(one for one in figure.schemes if one.title == figure.base)


def _bandwidth(what: DriveReplays, figure: ReplaysSpec) -> Table:
    rows = []
    for name in figure.workloads:
        last = {
            scheme: what.phase(scheme, name, timed=False).bandwidths()[-1]
            for scheme in figure.schemes
        }
        base = last[_base(figure)]
        rule = max((last[scheme] for scheme in figure.schemes if scheme.rule), default=0.0)
        for scheme in figure.schemes:
            phase = what.phase(scheme, name, timed=False)
            parts = phase.bandwidths()
            cells = [words.significant(one / MB) for one in parts]
            whole = words.significant(phase.total.bytes_per_s / MB)
            cells += [whole, words.change(parts[-1], base), words.change(parts[-1], rule)]
            cells.append(words.fixed(phase.amplification, 3))
            rows.append([name, scheme.title, *cells])
    headers = ["trace", "scheme", *(f"part {at + 1}" for at in range(PARTS))]
    headers += ["all, MB/s", f"last part beside {figure.base}", "last part beside the best rule"]
    headers.append("F/U")
    caption = "MB/s in each tenth of the bytes, as fast as the drive goes"
    return plain(figure.heading, caption, headers, rows, 2, "bandwidth")


def _bandwidth_chart(what: DriveReplays, figure: ReplaysSpec) -> Figure:
    points = [
        {"trace": name, "scheme": scheme.title, "part": at + 1, "mb": found / MB}
        for name in figure.workloads
        for scheme in figure.schemes
        for at, found in enumerate(what.phase(scheme, name, timed=False).bandwidths())
    ]
    tips = [Tip("scheme", "scheme"), Tip("part", "part"), Tip("MB/s", "mb", "number")]
    x = alt.X("part:Q").title("tenth of the bytes").axis(tickCount=PARTS)
    y = alt.Y("mb:Q").title("bandwidth (MB/s)")
    plot = _panels(figure, points, x, y, tips)
    caption = "bandwidth in each tenth of the bytes"
    return Figure(f"{figure.name}-bandwidth", "Bandwidth", caption, plot)


def _panels(figure: ReplaysSpec, points: Rows, x: alt.X, y: alt.Y, tips: list[Tip]) -> Plot:
    """Draw a panel per trace, a line per scheme."""
    series = Series("scheme", [one.title for one in figure.schemes], "scheme")
    panels = [
        marks.lines(
            [one for one in points if one["trace"] == name],
            series, x, y, tips, title=name, height=PANEL_HEIGHT, points=True,
        )
        for name in figure.workloads
    ]  # fmt: skip
    return Plot(panels, [series])


def _responses(what: DriveReplays, figure: ReplaysSpec) -> Table:
    rows = []
    for name in figure.workloads:
        base = what.phase(_base(figure), name, timed=True).total
        for scheme in figure.schemes:
            found = what.phase(scheme, name, timed=True).total
            times = (found.mean_ns, *(of(found) for of in QUANTILES.values()))
            cells = [words.significant(one / NS_PER_US) for one in times]
            change = words.change(found.mean_ns, base.mean_ns)
            rows.append([name, scheme.title, *cells, change])
    headers = ["trace", "scheme", "mean, us", *(f"{one}, us" for one in QUANTILES)]
    headers.append(f"mean beside {figure.base}")
    caption = "response times of the last part, at the trace's own times"
    return plain("", caption, headers, rows, 2, "responses")


def _responses_chart(what: DriveReplays, figure: ReplaysSpec) -> Figure:
    points = [
        {
            "trace": name,
            "scheme": scheme.title,
            "percentile": label,
            "beyond": BEYOND[label],
            "us": of(what.phase(scheme, name, timed=True).total) / NS_PER_US,
        }
        for name in figure.workloads
        for scheme in figure.schemes
        for label, of in QUANTILES.items()
    ]
    tips = [Tip("scheme", "scheme"), Tip("percentile", "percentile")]
    tips.append(Tip("response (us)", "us", "number"))
    scale = alt.Scale(type="log", reverse=True, nice=False)
    x = alt.X("beyond:Q", scale=scale).title("share of requests that take longer")
    y = alt.Y("us:Q", scale=alt.Scale(type="log", nice=True)).title("response (us)")
    plot = _panels(figure, points, x, y, tips)
    caption = "response times by the share of requests that take longer"
    return Figure(f"{figure.name}-responses", "Response times", caption, plot)


def _predictions(what: DriveReplays, figure: ReplaysSpec) -> Table:
    rows = []
    for depth in figure.depths:
        for scheme in figure.schemes:
            cells = []
            for size in figure.sizes:
                own = what.writes(scheme, size, depth).later_mean_ns()
                base = what.writes(_alike(figure, scheme), size, depth).later_mean_ns()
                cells += [words.significant(own / NS_PER_US), words.change(own, base)]
            rows.append([f"{depth} under way", scheme.title, *cells])
    headers = ["", "scheme"]
    for size in figure.sizes:
        headers += [f"{size}, us", f"{size}, beside {figure.base}"]
    caption = "mean response of random writes, later half of the replay"
    return plain(figure.heading, caption, headers, rows, 2, "predictions")


def _alike(figure: ReplaysSpec, scheme: Scheme) -> Scheme:
    """Return the scheme without predictions whose drive has the same pages."""
    page = dict(scheme.device).get("page")
    plain_ones = [one for one in figure.schemes if one.title.startswith(figure.base)]
    return next(one for one in plain_ones if dict(one.device).get("page") == page)
