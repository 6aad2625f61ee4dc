"""Tables aligned for a terminal, with the best of a column marked.

For: one look of every table. Must never know: what is in it. The best value carries a `*`, so that
it shows without colour; on a terminal it is bold too. Nothing is cut: when a table is too wide,
headers wrap first, then further columns follow in a second table beside the same names. Piped
tables are plain text at most `PIPE_WIDTH` wide, but for sentences, which stay on one line.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cachewright.cli import output

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

BEST = "*"
GAP = 2
PIPE_WIDTH = 120
# Text wider than this may wrap within its cell.
LONG_TEXT = 32


class Column(NamedTuple):
    """One column: its header, whether it holds numbers, and the rows to mark as best."""

    header: str
    cells: list[str]
    numeric: bool = True
    best: Collection[int] = ()

    @property
    def is_key(self) -> bool:
        """Whether the column names the row: text, or a rank without header."""
        return not self.numeric or not self.header

    @property
    def is_long(self) -> bool:
        """Whether the column holds sentences."""
        return not self.numeric and max(map(len, self.cells), default=0) > LONG_TEXT

    def width(self, wrapped: bool) -> int:
        """Return the characters the column takes, its mark included."""
        words = self.header.split() if wrapped else [self.header]
        longest = max(map(len, [*words, *self.cells]), default=0)
        return longest + (len(BEST) if self.best else 0)


def table(title: str, columns: Sequence[Column]) -> None:
    """Print columns of equal length side by side under `title`."""
    console = output.terminal()
    if title:
        _title(title, console)
    width = PIPE_WIDTH if console is None else console.width
    wrapped = _width(columns, wrapped=False) > width
    if console is None and any(column.is_long for column in columns):
        wrapped = False
    for part in _parts(columns, width) if wrapped else [list(columns)]:
        if console is None:
            _plain(part, wrapped)
        else:
            _draw(part, wrapped, console)
        output.say()


def _title(title: str, console: Console | None) -> None:
    if console is None:
        output.say(title)
        return
    from rich.text import Text

    console.print(Text(title, style="bold"), soft_wrap=True)


def _width(columns: Sequence[Column], wrapped: bool) -> int:
    return sum(column.width(wrapped) + GAP for column in columns)


def _parts(columns: Sequence[Column], limit: int) -> list[list[Column]]:
    """Return the columns in groups that fit, each beginning with those that name the rows."""
    keys = [column for column in columns if column.is_key]
    if any(column.is_long for column in columns):
        return [list(columns)]
    parts = [list(keys)]
    for column in columns:
        if column.is_key:
            continue
        if len(parts[-1]) > len(keys) and _width([*parts[-1], column], wrapped=True) > limit:
            parts.append(list(keys))
        parts[-1].append(column)
    return parts


def _headers(columns: Sequence[Column], wrapped: bool) -> list[list[str]]:
    """Return each column's header as lines, as many for all, the last of them filled."""
    headers = [column.header.split() if wrapped else [column.header] for column in columns]
    lines = max(map(len, headers))
    return [[""] * (lines - len(words)) + words for words in headers]


def _plain(columns: Sequence[Column], wrapped: bool) -> None:
    for line in zip(*_headers(columns, wrapped), strict=True):
        output.say(_line(columns, line, wrapped))
    output.say(_line(columns, ["-" * column.width(wrapped) for column in columns], wrapped))
    for row in range(len(columns[0].cells)):
        output.say(_line(columns, [column.cells[row] for column in columns], wrapped, row))


def _line(columns: Sequence[Column], texts: Sequence[str], wrapped: bool, row: int = -1) -> str:
    """Return texts in their columns; numbers end where the others of their column end."""
    cells = []
    for column, text in zip(columns, texts, strict=True):
        mark = BEST if row in column.best else ""
        cells.append(f"{_aligned(column, text, wrapped)}{mark}".ljust(column.width(wrapped)))
    return (" " * GAP).join(cells).rstrip()


def _draw(columns: Sequence[Column], wrapped: bool, console: Console) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for column, words in zip(columns, _headers(columns, wrapped), strict=True):
        header = Text("\n".join(_aligned(column, word, wrapped) for word in words))
        drawn.add_column(header, no_wrap=not column.is_long)
    for row in range(len(columns[0].cells)):
        drawn.add_row(*(_cell(column, row, wrapped) for column in columns))
    console.print(drawn)


def _aligned(column: Column, text: str, wrapped: bool) -> str:
    """Return a number's text at the right, with a place for the mark after it (rich strips it)."""
    mark = len(BEST) if column.best else 0
    return text.rjust(column.width(wrapped) - mark) if column.numeric else text


def _cell(column: Column, row: int, wrapped: bool) -> Text:
    from rich.text import Text

    text = _aligned(column, column.cells[row], wrapped)
    if row in column.best:
        return Text(text + BEST, style="bold", overflow="fold")
    return Text(text, overflow="fold")
