"""The page of several results: settings that differ, figures and tables of what they share.

For: `page` and `figures` of a `Comparison`. Must never know: files, commands. Changes are against
the first result. Units: bytes on size axes, ratios in 0..1.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import altair as alt

from cachewright import words
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.page import html_table, marked, whole_page
from cachewright.report.plots import PANEL_HEIGHT, Panel, Plot, Rows, Series, distinct
from cachewright.side_by_side import Comparison, Curve, MeasureTable, Reading
from cachewright.side_by_side.comparison import key_name
from cachewright.summary import best_index

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
        _unlike("Settings that differ", "setting", found.labels, found.differences),
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
        for key, values in table.rows[: min(table.matched, DRAWN)]
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


def _unlike(
    title: str, name: str, labels: Sequence[str], rows: Sequence[tuple[str, list[str | None]]]
) -> str:
    if not rows:
        return f"<section><h2>{title}</h2><p>None.</p></section>"
    cells = [
        [escape(key), *(escape(words.NOTHING if text is None else text) for text in values)]
        for key, values in rows
    ]
    drawn = html_table([name, *labels], cells, len(labels) + 1)
    return f"<section><h2>{title}</h2>{drawn}</section>"


def _workloads(found: Comparison) -> str:
    """Return a table of tenants whose requests differ; nothing where all are alike."""
    if not found.workloads:
        return ""
    labels = [one.label for one in found.readings if one.workload]
    warning = "The results replay different requests: their numbers are of different work."
    table = _unlike("Workloads that differ", "tenant", labels, found.workloads)
    return table.replace("</h2>", f'</h2><p class="note">{warning}</p>', 1)


def changes(table: MeasureTable, values: Sequence[float | None]) -> list[str]:
    """Return how far each result after the first is from it; `-` without both numbers."""
    base = values[0]
    return [
        words.NOTHING if value is None or base is None else words.change(value, base)
        for value in values[1:]
    ]


def _table(table: MeasureTable) -> str:
    keys = [key_name(key) for key in table.keys]
    change = [f"{label}, change" for label in table.labels[1:]] if table.matched else []
    rows = []
    for key, values in table.rows[:SHOWN]:
        best: set[int] = set()
        if table.measure.highest is not None:
            best = best_index(values, table.measure.highest)
        shown = marked([table.measure.show(value) for value in values], best)
        cells = [escape(part) for part in key]
        rows.append([*cells, *shown, *(changes(table, values) if change else [])])
    name = table.measure.name
    left_out = len(table.rows) - SHOWN
    note = f'<p class="note">{left_out} more rows are left out.</p>' if left_out > 0 else ""
    if not table.matched:
        note += '<p class="note">No row is of the same case in two results.</p>'
    drawn = html_table([*keys, *table.labels, *change], rows, len(keys))
    return f"<section><h2>{escape(name[:1].upper() + name[1:])}: table</h2>{note}{drawn}</section>"


def tables_of(found: Reading) -> list[str]:
    """Return the rows of one result as sections with a table per measure."""
    sections = []
    for measure in found.measures:
        rows = [row for row in found.rows if measure.name in row.values]
        keys = list(dict.fromkeys(key for row in rows for key in row.keys))
        cells = [
            [*(escape(row.keys.get(key, "")) for key in keys),
             measure.show(row.values[measure.name])]
            for row in rows
        ]  # fmt: skip
        name = measure.name
        drawn = html_table([*(key_name(key) for key in keys), name], cells, len(keys))
        sections.append(f"<section><h2>{escape(name[:1].upper() + name[1:])}</h2>{drawn}</section>")
    return sections
