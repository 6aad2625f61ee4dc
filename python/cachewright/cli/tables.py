"""Tables aligned for a terminal, with the best of a column marked.

For: one look of every table. Must never know: what is in it. The best value is bold and carries a
`*`, so that it shows without colour. Nothing is cut: when the terminal is too narrow, headers wrap
first, then further columns follow in a second table beside the same names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cachewright.cli import output

if TYPE_CHECKING:
    from rich.text import Text

BEST = "*"
GAP = 2
# Text wider than this may wrap within its cell.
LONG_TEXT = 32


@dataclass
class Column:
    """One column: its header, whether it holds numbers, and the rows to mark as best."""

    header: str
    cells: list[str]
    numeric: bool = True
    best: Collection[int] = field(default_factory=tuple)

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
    from rich.text import Text

    console = output.out()
    if title:
        console.print(Text(title, style="bold"), soft_wrap=True)
    wrapped = _width(columns, wrapped=False) > console.width
    for part in _parts(columns, console.width) if wrapped else [list(columns)]:
        _draw(part, wrapped)
        output.say()


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


def _draw(columns: Sequence[Column], wrapped: bool) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    headers = [column.header.split() if wrapped else [column.header] for column in columns]
    lines = max(map(len, headers))
    for column, words in zip(columns, headers, strict=True):
        full = [""] * (lines - len(words)) + words
        header = Text("\n".join(_aligned(column, word, wrapped) for word in full))
        drawn.add_column(header, no_wrap=not column.is_long)
    for row in range(len(columns[0].cells)):
        drawn.add_row(*(_cell(column, row, wrapped) for column in columns))
    output.out().print(drawn)


def _aligned(column: Column, text: str, wrapped: bool) -> str:
    """Return a number's text at the right, room for the mark after it (rich strips that)."""
    room = len(BEST) if column.best else 0
    return text.rjust(column.width(wrapped) - room) if column.numeric else text


def _cell(column: Column, row: int, wrapped: bool) -> Text:
    from rich.text import Text

    text = _aligned(column, column.cells[row], wrapped)
    if row in column.best:
        return Text(text + BEST, style="bold", overflow="fold")
    return Text(text, overflow="fold")
