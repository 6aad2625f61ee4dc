"""The page of `characterize`: what runs on a trace, period by period.

Units: seconds since the trace's first request, shares in 0..1, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import altair as alt

from cachewright import characterized, words
from cachewright.answers import CharacterizeAnswer
from cachewright.report import charts, marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.page import answered, section, whole_page
from cachewright.report.plots import PANEL_HEIGHT, Panel, Plot, Rows, Series, distinct

NS_PER_S = 1e9
CLASSES = ("sequential", "overlapped", "strided", "random")
TIME = Tip("from", "seconds", "seconds")


def page(found: CharacterizeAnswer, drawn: Sequence[Figure]) -> str:
    """Return the whole page."""
    title = f"{Path(found.path).name}: characterize"
    table = characterized.by_period(found)
    return whole_page(
        title,
        [
            f"<h1>{escape(title)}</h1>",
            answered(sentence(found)),
            *drawn,
            section(table),
            f"<footer>Cachewright {escape(found.cachewright)}</footer>",
        ],
    )


def sentence(found: CharacterizeAnswer) -> str:
    """Return what the whole trace is like."""
    total = found.total
    most = max(CLASSES, key=lambda name: getattr(total.classes, name))
    return (
        f"{words.counted(total.reads + total.writes, 'request')}, "
        f"{words.percent(total.read_share)} reads, {words.size(round(total.mean_bytes))} on "
        f"average, over a working set of {words.size(total.working_set_bytes)}. "
        f"{words.percent(getattr(total.classes, most))} of them are {most}."
    )


def figures(found: CharacterizeAnswer) -> list[Figure]:
    """Return the figures over time, in the order of the page; none of a single period."""
    if len(found.periods) < 2:
        return []
    drawn = [_mix(found), _classes(found)]
    return [*drawn, _kinds(found)] if any(one.judged for one in found.periods) else drawn


def _mix(found: CharacterizeAnswer) -> Figure:
    """Return rate, working set and request size, a panel each."""
    rows: Rows = []
    for one in found.periods:
        shares = {"reads": one.read_share, "writes": 1.0 - one.read_share}
        rows += [
            {"seconds": one.start_ns / NS_PER_S, "what": what, "rate": share * one.rate_per_s}
            for what, share in shares.items()
        ]
    kinds = Series("what", ["reads", "writes"])
    rate = marks.lines(
        rows,
        kinds,
        charts.seconds(rows),
        alt.Y("rate:Q").title("requests per second"),
        [Tip("kind", "what"), TIME, Tip("per second", "rate", "number")],
        height=PANEL_HEIGHT - 40,
    )
    sizes: Rows = [
        {"seconds": one.start_ns / NS_PER_S, "what": "all", "working_set": one.working_set_bytes,
         "mean": one.mean_bytes}
        for one in found.periods
    ]  # fmt: skip
    panels = [
        rate,
        _sizes(sizes, "working_set", "working set of the period"),
        _sizes(sizes, "mean", "mean request"),
    ]
    caption = "Of each period; all share one axis of time."
    return Figure("requests-over-time", "Requests over time", caption, Plot(panels, [kinds]))


def _sizes(rows: Rows, field: str, title: str) -> Panel:
    top = max(row[field] for row in rows)
    axis = marks.size_axis(title, marks.size_ticks(top))
    y = alt.Y(f"{field}:Q", axis=axis).scale(domain=[0, max(top, 1)], nice=False)
    series = Series("what", distinct(rows, "what"))
    tips = [TIME, Tip(title, field, "size")]
    return marks.lines(rows, series, charts.seconds(rows), y, tips, height=PANEL_HEIGHT - 40)


def _classes(found: CharacterizeAnswer) -> Figure:
    """Return the shares of requests that are sequential, overlapped, strided and random."""
    rows: Rows = [
        {"seconds": one.start_ns / NS_PER_S, "class": name, "share": getattr(one.classes, name)}
        for one in found.periods
        for name in CLASSES
    ]
    series = Series("class", CLASSES, "class", "box")
    tips = [Tip("class", "class"), TIME, Tip("share of requests", "share", "percent")]
    y = alt.Y("share:Q").scale(domain=[0, 1]).title("share of requests").axis(format="%")
    panel = marks.layers(rows, series, charts.seconds(rows), y, tips)
    caption = "How requests follow each other; a share of the reads and writes of each period."
    return Figure("classes-over-time", "Order of the requests", caption, Plot([panel], [series]))


def _kinds(found: CharacterizeAnswer) -> Figure:
    """Return the kind of workload at the end of each period, a dot per volume."""
    rows: Rows = [
        {
            "seconds": one.start_ns / NS_PER_S,
            "volume": _volume(found, judged.volume),
            "kind": judged.kind,
            "confidence": judged.confidence,
        }
        for one in found.periods
        for judged in one.judged
    ]
    series = Series("volume", distinct(rows, "volume"), "volume", "point", shaped=True)
    y = marks.row_names("kind", list(found.kinds), grid=True)
    tips = [Tip("volume", "volume"), TIME, Tip("kind", "kind")]
    tips.append(Tip("confidence", "confidence", "percent"))
    panel = marks.dots(rows, series, charts.seconds(rows), y, tips)
    caption = f"As {found.characterizer} judges the last requests of each period."
    return Figure("kinds-over-time", "Kind of workload", caption, Plot([panel], [series]))


def _volume(found: CharacterizeAnswer, number: int) -> str:
    return found.volumes[number] if number < len(found.volumes) else str(number)
