"""Tables of text, whose numbers are measures of a paper, too.

For: the pages, terminals and Markdown of reproduced papers. Must never know: what is in a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cachewright import tables, words


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; `best` holds the places of the best by column.

    `figure` says where the table belongs, `title` what it shows; the first `texts` columns name
    the row, the first `keys` of them (0: all) tell it from the others. `name` tells the table from
    others of its figure; the main one has none.
    """

    figure: str
    title: str
    headers: list[str]
    rows: list[list[str]]
    best: list[set[int]]
    texts: int = 1
    name: str = ""
    keys: int = 0

    @property
    def heading(self) -> str:
        """What the table shows and of which figure, for where figures have no section."""
        return f"{self.figure}: {self.title}" if self.figure else self.title

    @property
    def drawn(self) -> tables.Table[Sequence[str]]:
        """The table as all writers take it."""
        return tables.of_texts(self.heading, self.headers, self.rows, self.texts, self.best)

    def markdown(self) -> str:
        """Return the table as Markdown, the best of a column bold."""
        return tables.markdown(self.drawn)

    def measures(self) -> Iterator[tuple[str, float]]:
        """Give every number of the table as `row/column`, after `name/` where there is one."""
        before = f"{self.name}/" if self.name else ""
        for row in self.rows:
            row_name = ", ".join(cell for cell in row[: self.keys or self.texts] if cell)
            for header, cell in zip(self.headers[self.texts :], row[self.texts :], strict=True):
                value = words.value_of(cell)
                if value is not None:
                    yield f"{before}{row_name}/{header}", float(value)


def markdown(headers: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """Return rows under headers as a Markdown table; the first columns are text."""
    return tables.markdown(tables.of_texts("", headers, rows, texts))


def plain(
    figure: str,
    title: str,
    headers: list[str],
    rows: list[list[str]],
    texts: int,
    name: str = "",
    keys: int = 0,
) -> Table:
    """Return a table in which nothing is best."""
    return Table(figure, title, headers, rows, [set() for _ in headers], texts, name, keys)
