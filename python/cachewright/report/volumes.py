"""The page of a command's answers on a dataset: what the volumes show together, a row for each."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright.fleet import over
from cachewright.report.page import answered, section, whole_page
from cachewright.tables import Table, of_texts

if TYPE_CHECKING:
    from cachewright.tables.volumes import Summed

REPORT_FILE = "report.html"


def page(command: str, found: Summed, folder: Path) -> str:
    """Return the page of a command's answers in a folder: every volume has its row."""
    whole, unread = found.table, over.unread_in(folder)
    table = Table(whole.title, whole.columns, whole.rows, by_row=whole.by_row)
    rows = [[name, error] for name, error in unread.failed]
    parts = [
        f"<h1>{escape(command)}</h1>",
        answered("; ".join(filter(None, (found.sentence, unread.sentence())))),
        section(table),
        section(of_texts("files that could not be read", ["file", "error"], rows, 2))
        if rows
        else "",
    ]
    return whole_page(f"{command}: volumes", parts)


def write(command: str, found: Summed, folder: Path) -> Path:
    """Write the page into a folder of answers and return its path."""
    from cachewright.report import write_page

    return write_page(page(command, found, folder), [], folder / REPORT_FILE)
