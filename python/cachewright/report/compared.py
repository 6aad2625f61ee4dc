"""The page of several results: settings that differ, figures and tables of what they share.

A page of curves alone overlays those of many results in one figure; of a result with several
tenants the curve of all is drawn there, unless it is the only result. Units: bytes on size axes,
ratios in 0..1.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import altair as alt

from cachewright._native import SpecError
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.page import heading, note, section, whole_page
from cachewright.report.plots import PANEL_HEIGHT, Panel, Plot, Rows, Series, distinct
from cachewright.tables.side_by_side import ALL, Comparison, Curve, MeasureTable, Reading

CURVES_TITLE = "Curves"
# Lines of the figure.
LINES = 48
TITLE = "Results side by side"
# Rows of a table and of a figure, panels of curves, and measures that are drawn.
SHOWN, DRAWN, PANELS, FIGURES = 40, 16, 8, 4
# Kinds of numbers by measure; others are drawn as plain numbers.
KINDS = {"hit ratio": "ratio", "read hit ratio": "ratio", "write amplification": "ratio"}
BYTES, TIMES = "smallest cache", ("mean response", "p99 response", "run time")
NS_PER_MS = 1e6


def page(found: Comparison) -> str:
    """Return the whole page."""
    parts: list[str | Figure] = [
        f"<h1>{TITLE}</h1>",
        f'<p class="lead">{escape(sentence(found))}</p>',
        _settings(found),
        _workloads(found),
        *figures(found),
        *(_table(table) for table in found.tables),
    ]
    return whole_page(TITLE, parts)


def sentence(found: Comparison) -> str:
    """Return what is compared, in a sentence."""
    named = ", ".join(f"{one.label} ({one.command})" for one in found.readings)
    measures = ", ".join(table.measure.name for table in found.tables)
    return f"{named}. In common: {measures}."


def figures(found: Comparison) -> list[Figure]:
    """Return the figures that the results share points for, in the order of the page."""
    drawn = [figure for figure in [_curves(found)] if figure]
    tables = [table for table in found.tables if table.matched and _differs(table)]
    return drawn + [_measured(table) for table in tables[:FIGURES]]


def _differs(table: MeasureTable) -> bool:
    return any(
        len({value for value in values if value is not None}) > 1 for _, values in table.rows
    )


def _curves(found: Comparison) -> Figure | None:
    """Return the curves of every tenant that two results have."""
    tenants = list(found.curves)[:PANELS]
    if not tenants:
        return None
    lines = {tenant: _lines(found.curves[tenant]) for tenant in tenants}
    names = list(dict.fromkeys(name for own in lines.values() for name, _ in own))
    series = Series("line", names, "result")
    sizes = [size for own in lines.values() for _, curve in own for size, _ in curve.points]
    axis = marks.size_axis("cache size", marks.powers(min(sizes), max(sizes), 7))
    domain = [min(sizes), max(sizes)] if min(sizes) < max(sizes) else alt.Undefined
    x = alt.X("size:Q", axis=axis, scale=alt.Scale(type="log", base=2, nice=False, domain=domain))
    panels = [_curve_panel(tenant, lines[tenant], series, x) for tenant in tenants]
    left_out = len(found.curves) - len(tenants)
    more = f" {left_out} more tenants are left out." if left_out else ""
    return Figure(
        "curves-side-by-side",
        "Miss-ratio curves",
        f"One line per result and policy; one panel per tenant.{more}",
        Plot(panels, [series], columns=2 if len(panels) > 1 else 1),
    )


def _lines(curves: Sequence[tuple[str, Curve]]) -> list[tuple[str, Curve]]:
    policies = {curve.policy for _, curve in curves}
    return [
        (f"{label}, {curve.policy}" if len(policies) > 1 else label, curve)
        for label, curve in curves
    ]


def _curve_panel(
    tenant: str, lines: Sequence[tuple[str, Curve]], series: Series, x: alt.X
) -> Panel:
    rows: Rows = [
        {"line": name, "size": size, "miss": 1.0 - ratio}
        for name, curve in lines
        for size, ratio in curve.points
    ]
    y = alt.Y("miss:Q").scale(domain=[0, 1]).title("miss ratio")
    tips = [Tip("result", "line"), Tip("cache size", "size", "size")]
    tips.append(Tip("miss ratio", "miss", "ratio"))
    return marks.lines(rows, series, x, y, tips, title=tenant, height=PANEL_HEIGHT + 40)


def _measured(table: MeasureTable) -> Figure:
    """Return a dot per result and row that results share; those rows come first."""
    name = table.measure.name
    scale, kind, unit = _kind(name)
    rows: Rows = [
        {"row": ", ".join(part for part in key if part) or name, "result": label,
         "value": value / scale}
        for key, values in table.shown_rows[: min(table.matched, DRAWN)]
        for label, value in zip(table.labels, values, strict=True)
        if value is not None
    ]  # fmt: skip
    series = Series("result", list(table.labels), "result", "point", shaped=True)
    x = alt.X("value:Q").scale(zero=False).title(f"{name}{unit}")
    if kind == "size":
        x = x.axis(labelExpr=marks.SIZE_LABEL)
    y = marks.row_names("row", distinct(rows, "row"), grid=True)
    tips = [Tip("result", "result"), Tip("of", "row"), Tip(name, "value", kind)]
    left_out = table.matched - DRAWN
    more = f" {left_out} more rows are left out." if left_out > 0 else ""
    return Figure(
        f"{name.replace(' ', '-')}-side-by-side",
        name[:1].upper() + name[1:],
        f"One mark per result, of cases in two results. The axis does not start at zero.{more}",
        Plot([marks.dots(rows, series, x, y, tips)], [series]),
    )


def _kind(name: str) -> tuple[float, str, str]:
    """Return by what a measure is divided to be drawn, its kind, and the unit of the axis."""
    if name in TIMES:
        return NS_PER_MS, "milliseconds", " (ms)"
    return 1.0, "size" if name == BYTES else KINDS.get(name, "number"), ""


def _settings(found: Comparison) -> str:
    table = found.unlike_settings
    return (
        section(table)
        if table.rows
        else f"<section><h2>{heading(table)}</h2><p>None.</p></section>"
    )


def _workloads(found: Comparison) -> str:
    """Return a table of tenants whose requests differ; nothing where all are alike."""
    table = found.unlike_workloads
    warning = "The results replay different requests: their numbers are of different work."
    return section(table, before=note(warning)) if table.rows else ""


def _table(one: MeasureTable) -> str:
    table = one.table(rows=SHOWN)
    before = note(f"{table.left_out} more rows are left out.") if table.left_out else ""
    if not one.matched:
        before += note("No row is of the same case in two results.")
    return section(table, f"{heading(table)}: table", before=before)


def curves_page(readings: Sequence[Reading]) -> str:
    """Return the page of the curves of some results. Errors: `SpecError` without any."""
    named = ", ".join(reading.label for reading in readings)
    lead = f'<p class="lead">{escape(named)}</p>'
    return whole_page(CURVES_TITLE, [f"<h1>{CURVES_TITLE}</h1>", lead, curves_figure(readings)])


def curves_figure(readings: Sequence[Reading]) -> Figure:
    """Return one figure with a line per result, tenant and policy.

    Errors: `SpecError` where no result has a curve.
    """
    several = len(readings) > 1
    lines = [line for reading in readings for line in _lines_of(reading, several)]
    if not lines:
        raise SpecError("found no curves, expected results of `mrc`, or of `run` and `compare`")
    shown = lines[:LINES]
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
    more = f" {len(lines) - LINES} more curves are left out." if len(lines) > LINES else ""
    caption = f"Share of block accesses that miss.{more}"
    return Figure("curves", "Miss-ratio curves", caption, Plot([panel], [series]))


def _lines_of(reading: Reading, several: bool) -> list[tuple[str, Curve]]:
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
