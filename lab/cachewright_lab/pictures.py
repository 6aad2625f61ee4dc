"""Pictures of a paper's page: its claims beside ours, and figures as bars, drawn from its tables.

A picture is an SVG file beside the page, in `pictures/`. It is drawn from what the page itself
holds: the claims with their kept values, or a table as it stands there. So no results are needed to
draw it, and its first line tells by a digest whether it is still of that claim or table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt

from cachewright import words
from cachewright._native import SpecError
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.plots import OFFSET_STEP, Panel, Plot, Rows, Series, distinct
from cachewright_lab import digest

FOLDER, SUFFIX = "pictures", ".svg"
# Height of a bar in a group, in pixels.
BAR = 8
# How many of something a row is about is no measure of it.
COUNTS = {"tenants", "seeds"}
# Rows that say how far a mean can be trusted are no group of a figure.
SPREAD = re.compile(r"leaving one out|spread")
# The number that a cell begins with; sizes in bytes have no axis in common with others.
NUMBER = re.compile(r"[-+]?(\d[\d,]*)?\.?\d+(?![\d.,]*[KMGT]?i?B)")


@dataclass(frozen=True)
class Beside:
    """A claim's value in the paper and here, in percent."""

    name: str
    paper: float
    ours: float


def of_claims(values: Sequence[Beside]) -> Figure:
    """Return the picture of claims: for each a dot of the paper's value and one of ours."""
    rows: Rows = [
        {"claim": one.name, "whose": whose, "value": value}
        for one in values
        for whose, value in (("paper", one.paper), ("here", one.ours))
    ]
    whose = Series("whose", ["paper", "here"], mark="point", shaped=True)
    y = marks.row_names("claim", distinct(rows, "claim"), grid=True)
    tips = [Tip("claim", "claim"), Tip("whose", "whose"), Tip("percent", "value", "number")]
    panel = marks.dots(rows, whose, alt.X("value:Q").title("percent"), y, tips)
    return Figure("claims", "Claims", "", Plot([panel], [whose]))


def of_table(name: str, text: str, columns: Sequence[str]) -> Figure:
    """Return the picture of a table of the page, which is Markdown under a title.

    Without `columns` its columns are of one unit: each row is a group of bars, a bar per column.
    With them each of these columns is a panel, a bar per row. Errors: `SpecError` for a column that
    the table does not have, and for a table without numbers.
    """
    title, headers, cells = _parsed(text)
    for column in columns:
        if column not in headers:
            expected = ", ".join(f"`{header}`" for header in headers if header)
            where = f"picture `{name}`: found column `{column}`"
            raise SpecError(f"{where}, expected one of {expected}")
    holds = [_holds_numbers([row[at] for row in cells]) for at in range(len(headers))]
    first = next((at for at, is_number in enumerate(holds) if at and is_number), len(headers))
    numbers = [at for at in range(first, len(headers)) if holds[at] and headers[at] not in COUNTS]
    wanted = [headers.index(column) for column in columns] or numbers
    rows: Rows = [
        {"row": ", ".join(filter(None, row[:first])), "column": headers[at], "value": value}
        for row in cells
        if not SPREAD.search(row[0])
        for at in wanted
        if (value := _number(row[at])) is not None
    ]
    if not rows:
        raise SpecError(f"picture `{name}`: found a table without numbers, expected some")
    if not columns:
        return Figure("table", title, "", _groups(rows, title))
    each = [_panel([row for row in rows if row["column"] == column], column) for column in columns]
    return Figure("table", title, "", Plot(each, [], columns=min(2, len(each))))


def _groups(rows: Rows, title: str) -> Plot:
    """Return groups of bars: a group per row, in it a bar per column."""
    known = Series("column", distinct(rows, "column"), " ", "box")
    tips = [Tip("row", "row"), Tip("column", "column"), Tip(title, "value", "number")]
    y, x = marks.row_names("row", distinct(rows, "row")), alt.X("value:Q").title(title)
    offset = alt.YOffset("column:N").sort(list(known.names))
    step = BAR * (len(known.names) + 1)
    return Plot([marks.bars(rows, known, x, y, tips, step=step, encodings=[offset])], [known])


def _panel(rows: Rows, column: str) -> Panel:
    """Return the panel of one column: a bar per row."""
    known = Series("column", [column], mark="box")
    tips = [Tip("row", "row"), Tip(column, "value", "number")]
    x, y = alt.X("value:Q").title(column), marks.row_names("row", distinct(rows, "row"))
    return marks.bars(rows, known, x, y, tips, step=2 * OFFSET_STEP)


def _parsed(text: str) -> tuple[str, list[str], list[list[str]]]:
    """Return title, headers and rows of a table of a page."""
    lines = [line for line in text.splitlines() if line.strip()]
    cells = [
        [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    title = "" if lines[0].startswith("|") else lines[0].rstrip(":")
    return title, cells[0], cells[2:]


def _holds_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell not in {"", words.NOTHING}]
    return bool(filled) and all(_number(cell) is not None for cell in filled)


def _number(cell: str) -> float | None:
    found = NUMBER.match(cell)
    return None if found is None else float(found.group().replace(",", ""))


def write(figure: Figure, source: str, path: Path) -> None:
    """Write a picture with the digest of what it was drawn from."""
    path.parent.mkdir(exist_ok=True)
    figure.save(path)
    svg = path.read_text(encoding="utf-8")
    path.write_text(f"<!-- of {digest.text(source)} -->\n{svg}\n", encoding="utf-8")


def is_of(path: Path, source: str) -> bool:
    """Return whether a file is the picture of what it would be drawn from now."""
    try:
        first = path.read_text(encoding="utf-8").partition("\n")[0]
    except OSError:
        return False
    return first == f"<!-- of {digest.text(source)} -->"
