"""The report of `mrc`: miss ratios by cache size, as a page and as figures.

For: `page`, `figures` and `chart` from the document of `Curves`. Must never know: how curves are
made. Units: bytes, ratios in 0..1; bands are the confidence intervals where a curve has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import altair as alt

from cachewright import words
from cachewright.answers import CurvesAnswer, MissRatioCurve
from cachewright.report import marks, timed
from cachewright.report.figure import Figure
from cachewright.report.page import answered, section, whole_page
from cachewright.report.plots import (
    COLOURED,
    PANEL_HEIGHT,
    Panel,
    Plot,
    Rows,
    Series,
    data,
    distinct,
)
from cachewright.tables import curves as tables

ALL = "all"
PANELS = 12
# Curves with more points than this are lines without dots.
DOTTED = 40


def page(answer: CurvesAnswer) -> str:
    """Return the whole page."""
    name, checks = answer.name, tables.checks(answer)
    drawn: list[str | Figure] = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="lead">{escape(_sentence(answer))}</p>',
        answered(tables.answered(answer)),
        *figures(answer),
        *(section(table, table.title) for table in tables.by_size(answer)),
        _notes(answer),
        section(checks) if checks else "",
        f"<footer>Cachewright {escape(answer.cachewright)}</footer>",
    ]
    return whole_page(f"{name}: miss-ratio curves", drawn)


def figures(answer: CurvesAnswer) -> list[Figure]:
    """Return the figures that the document has points for, in the order of the page."""
    found = []
    rows = _rows(answer)
    if rows:
        banded = any("low" in row for row in rows)
        caption = f"Share of block accesses that miss, {_what_lines_are(answer)}."
        caption += " Bands are confidence intervals." if banded else ""
        caption += " Smaller caches, with which no curve falls, are left out."
        left_out = len(_panels(rows)) - PANELS
        caption += f" {left_out} more panels are left out." if left_out > 0 else ""
        plot = _plot(rows, _working_set(answer))
        found.append(Figure("miss-ratio-curves", "Miss-ratio curves", caption, plot))
    if answer.latency:
        found.append(timed.latency_figure(answer))
    return found


def chart(answer: CurvesAnswer) -> Any:
    """Return the miss-ratio figure as one Altair chart: a panel per tenant, a line per policy."""
    return _plot(_rows(answer), _working_set(answer)).still()


def _sentence(answer: CurvesAnswer) -> str:
    curves = answer.curves
    tenants = [one for one in _tenants(curves) if one != ALL]
    policies = _policies(curves)
    return (
        f"Miss ratio by cache size: {words.counted(max(len(tenants), 1), 'tenant')}, "
        f"{', '.join(policies)}; blocks of {words.size(answer.block_bytes)}"
    )


def _working_set(answer: CurvesAnswer) -> int:
    """Return the bytes that all tenants touch, or the only one does."""
    of_all = [curve.distinct for curve in answer.curves if curve.tenant == ALL]
    return max(of_all or [curve.distinct for curve in answer.curves]) * answer.block_bytes


def _tenants(curves: Sequence[MissRatioCurve]) -> list[str]:
    return list(dict.fromkeys(curve.tenant for curve in curves))


def _policies(curves: Sequence[MissRatioCurve]) -> list[str]:
    return list(dict.fromkeys(curve.policy for curve in curves))


def _what_lines_are(answer: CurvesAnswer) -> str:
    curves = answer.curves
    several = len(_policies(curves)) > 1
    own = "one line per policy; one panel per tenant" if several else "one line per tenant"
    if any(curve.window is not None for curve in curves):
        own += ", and per window of time"
    return own


def _rows(answer: CurvesAnswer) -> Rows:
    curves = answer.curves
    block = answer.block_bytes
    several = len({curve.policy for curve in curves}) > 1
    rows = []
    for curve in sorted(curves, key=lambda one: (one.window or 0, one.tenant == ALL)):
        line = curve.policy if several else curve.tenant
        parts = [curve.tenant] if several else []
        if curve.window is not None:
            parts.append(f"window {curve.window + 1}")
        for size, miss, low, high in curve.points:
            if size > 0:
                row = {"panel": ", ".join(parts), "line": line, "size": size * block}
                row |= {"miss": miss, "tenant": curve.tenant, "policy": curve.policy}
                rows.append(row if low is None else {**row, "low": low, "high": high})
    return rows


def _panels(rows: Rows) -> list[str]:
    return distinct(rows, "panel")


def _plot(rows: Rows, working_set: int) -> Plot:
    policies = distinct(rows, "policy")
    titles, lines = _panels(rows), distinct(rows, "line")
    several = len(policies) > 1
    dashes = {} if several else {name: (5, 3) for name in lines if name == ALL}
    rows = [{**row, "curve": f"{row['panel']}/{row['line']}"} for row in rows]
    low = marks.bend(rows, "curve", "size", "miss")
    high = max(working_set, *(row["size"] for row in rows))
    rows = [row for row in rows if row["size"] >= low]
    grey = _background(rows, lines)
    series = Series("line", lines, "policy" if several else "tenant", dashes=dashes, grey=grey)
    x = marks.sizes("size", "cache size", low, high, 5 if len(titles) > 1 else 9)
    mark = marks.rules(x, "size", {working_set: marks.WORKING_SET})
    panels = [
        _panel([row for row in rows if row["panel"] == title], title, series, x, mark)
        for title in titles[:PANELS]
    ]
    return Plot(panels, [series], columns=2 if len(panels) > 1 else 1)


def _background(rows: Rows, lines: Sequence[str]) -> frozenset[str]:
    """Return the lines to draw in grey: of many, those that miss most on average."""
    if len(lines) <= COLOURED:
        return frozenset()
    misses: dict[str, list[float]] = {name: [] for name in lines}
    for row in rows:
        misses[row["line"]].append(row["miss"])
    kept = {name for name in lines if name in (ALL, "lru")}
    others = sorted(
        (name for name in lines if name not in kept),
        key=lambda name: sum(misses[name]) / len(misses[name]),
    )
    return frozenset(others[COLOURED - len(kept) :])


def _panel(rows: Rows, title: str, series: Series, x: alt.X, mark: Sequence[alt.Chart]) -> Panel:
    most = max(sum(row["line"] == name for row in rows) for name in distinct(rows, "line"))
    y = alt.Y("miss:Q").scale(domain=[0, 1]).title("miss ratio")
    tips = [
        marks.Tip("tenant", "tenant"),
        marks.Tip("policy", "policy"),
        marks.Tip("cache size", "size", "size"),
        marks.Tip("miss ratio", "miss", "ratio"),
    ]
    banded = [row for row in rows if "low" in row]
    below = [*mark]
    if banded:
        band = alt.Chart(data(banded)).mark_area(opacity=0.18, clip=True)
        # The legend shows the colours of the lines, not of the pale bands.
        colour = series.colour().legend(None)
        below.append(band.encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour))
        tips.append(marks.Tip("from", "low", "ratio"))
        tips.append(marks.Tip("to", "high", "ratio"))
    encodings = [series.dash()] if series.dashes else []
    return marks.lines(
        rows, series, x, y, tips, title=title, height=PANEL_HEIGHT + 40, points=most <= DOTTED,
        encodings=encodings, below=below,
    )  # fmt: skip


def _notes(answer: CurvesAnswer) -> str:
    block = answer.block_bytes
    notes = list(answer.notes)
    for curve in answer.curves:
        name = f"{curve.tenant}, {curve.policy}"
        if curve.trusted_from_blocks:
            size = words.size(curve.trusted_from_blocks * block)
            notes.append(f"{name}: sizes below {size} are uncertain")
    listed = "".join(f"<li>{escape(note)}</li>" for note in dict.fromkeys(notes))
    if not listed:
        return ""
    return f'<section><h2>Notes</h2><ul class="note">{listed}</ul></section>'
