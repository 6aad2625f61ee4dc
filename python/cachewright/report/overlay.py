"""Curves of many results in one figure.

For: comparing volumes by their miss-ratio curves. Must never know: files, commands. Units: bytes on
the size axis, ratios in 0..1. Of a result with several tenants the curve of all is drawn, unless it
is the only result.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import altair as alt

from cachewright._native import SpecError
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.page import whole_page
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series
from cachewright.side_by_side import ALL, Curve, Reading

TITLE = "Curves"
# Lines of the figure.
SHOWN = 48


def page(readings: Sequence[Reading]) -> str:
    """Return the page of the curves of some results. Errors: `SpecError` without any."""
    named = ", ".join(reading.label for reading in readings)
    return whole_page(
        TITLE, [f"<h1>{TITLE}</h1>", f'<p class="lead">{escape(named)}</p>', figure(readings)]
    )


def figure(readings: Sequence[Reading]) -> Figure:
    """Return one figure with a line per result, tenant and policy.

    Errors: `SpecError` where no result has a curve.
    """
    several = len(readings) > 1
    lines = [line for reading in readings for line in _lines(reading, several)]
    if not lines:
        raise SpecError("found no curves, expected results of `mrc`, or of `run` and `compare`")
    shown = lines[:SHOWN]
    rows: Rows = [
        {"line": name, "size": size, "miss": 1.0 - ratio}
        for name, curve in shown
        for size, ratio in curve.points
    ]
    sizes = [row["size"] for row in rows]
    axis = marks.size_axis("cache size", marks.powers(min(sizes), max(sizes)))
    domain = [min(sizes), max(sizes)] if min(sizes) < max(sizes) else alt.Undefined
    x = alt.X("size:Q", axis=axis, scale=alt.Scale(type="log", base=2, nice=False, domain=domain))
    y = alt.Y("miss:Q").scale(domain=[0, 1]).title("miss ratio")
    tips = [Tip("curve", "line"), Tip("cache size", "size", "size")]
    tips.append(Tip("miss ratio", "miss", "ratio"))
    series = Series("line", [name for name, _ in shown], "curve")
    panel = marks.lines(rows, series, x, y, tips, height=2 * PANEL_HEIGHT)
    more = f" {len(lines) - SHOWN} more curves are left out." if len(lines) > SHOWN else ""
    caption = f"Share of block accesses that miss.{more}"
    return Figure("curves", "Miss-ratio curves", caption, Plot([panel], [series]))


def _lines(reading: Reading, several: bool) -> list[tuple[str, Curve]]:
    curves = [curve for curve in reading.curves if curve.points]
    together = [curve for curve in curves if curve.tenant == ALL]
    drawn = together if several and together else curves
    policies = {curve.policy for curve in drawn}
    found = []
    for curve in drawn:
        parts = [reading.label] if several else []
        parts += [] if several and together else [curve.tenant]
        parts += [curve.policy] if len(policies) > 1 else []
        found.append((", ".join(parts), curve))
    return found
