"""The page of a command's answers on a dataset: what the volumes show together, a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright.fleet import over
from cachewright.report import fleet
from cachewright.report.figure import Figure
from cachewright.report.page import answered, note, section, whole_page
from cachewright.tables import of_texts

if TYPE_CHECKING:
    from cachewright.tables.volumes import Summed

REPORT_FILE = "report.html"
# Rows of a page; its folder's files have all.
BUSIEST = 100
# Points of a curve over the volumes.
POINTS = 100


def page(command: str, found: Summed, folder: Path) -> str:
    """Return the page of a command's answers in a folder: a row for each of the busiest volumes."""
    unread, table, name = over.unread_in(folder), found.busiest(BUSIEST), folder.resolve().name
    rows = [[file, error] for file, error in unread.failed]
    left_out = len(found.table.rows) - len(table.rows)
    parts: list[str | Figure] = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="lead">{escape(command)} on each volume of a dataset</p>',
        answered("; ".join(filter(None, (found.sentence, unread.sentence())))),
        *figures(found),
        section(table, after=note(f"{over.ROWS} has all volumes") if left_out else ""),
        section(of_texts("files that could not be read", ["file", "error"], rows, 2))
        if rows
        else "",
    ]
    return whole_page(f"{name}: {command} on volumes", parts)


def figures(found: Summed) -> list[Figure]:
    """Return how a measure is spread over the volumes, by scheme; none of fewer than two."""
    spread = found.spread
    if spread is None or max(map(len, spread.values.values()), default=0) < 2:
        return []
    rows = [
        {"size": "", spread.scheme: name, "share": share, "value": value}
        for name, values in spread.values.items()
        for share, value in _steps(sorted(values))
    ]
    title = f"{spread.measure[:1].upper()}{spread.measure[1:]} over the volumes"
    caption = f"The share of volumes whose {spread.measure} is at most a value."
    plot = fleet.spread_plot(rows, spread.scheme, spread.measure, [""])
    return [Figure("spread", title, caption, plot)]


def _steps(values: Sequence[float]) -> list[tuple[float, float]]:
    """Return at most `POINTS` values with the share of volumes up to each, the last among them."""
    step = max(1, len(values) // POINTS)
    places = sorted({*range(0, len(values), step), len(values) - 1} if values else ())
    return [((place + 1) / len(values), values[place]) for place in places]


def write(command: str, found: Summed, folder: Path) -> Path:
    """Write the page into a folder of answers and return its path."""
    from cachewright.report import write_page

    return write_page(page(command, found, folder), figures(found), folder / REPORT_FILE)
