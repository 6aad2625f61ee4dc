"""Tables of text, whoever draws them.

For: the pages, terminals and Markdown of reproduced papers. Must never know: what is in a table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; `best` holds the places of the best by column.

    `figure` says where the table belongs, `title` what it shows; the first `texts` columns name
    the row.
    """

    figure: str
    title: str
    headers: list[str]
    rows: list[list[str]]
    best: list[set[int]]
    texts: int = 1

    @property
    def heading(self) -> str:
        """What the table shows and of which figure, for where figures have no section."""
        return f"{self.figure}: {self.title}" if self.figure else self.title


def plain(figure: str, title: str, headers: list[str], rows: list[list[str]], texts: int) -> Table:
    """Return a table in which nothing is best."""
    return Table(figure, title, headers, rows, [set() for _ in headers], texts)
