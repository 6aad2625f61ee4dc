"""Tables: columns that say of each row what stands in it.

A table is declared once, beside the answer that it is of. A terminal, a page, Markdown and CSV each
have one writer here; results set side by side are a table, too. The best of a column is marked so
that it shows without colour.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TextIO, TypeVar

from cachewright import words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

R = TypeVar("R")
S = TypeVar("S")
Better = Literal["high", "low"]

BEST = "*"
GAP = 2
PIPE_WIDTH = 120
# Text wider than this may wrap within its cell.
LONG_TEXT = 32


class Html(str):
    """Text that is HTML already: a page takes it as it is."""

    __slots__ = ()


class Column(NamedTuple, Generic[R]):
    """One column: its heading, what it has of a row, and how that is shown.

    Without `show` it holds texts; those that are numbers nevertheless are told by `numeric`.
    `better` is which value is best, `best` the places of the best where they are known already. A
    `plot` is drawn with characters, for terminals alone.
    """

    heading: str
    of: Callable[[R], Any]
    show: Callable[[Any], str] | None = None
    better: Better | None = None
    numeric: bool = False
    best: Collection[int] = ()
    plot: bool = False

    def text(self, row: R) -> str:
        """Return what stands in the cell of a row; of nothing a dash."""
        value = self.of(row)
        if value is None:
            return words.NOTHING
        if self.show is not None:
            return self.show(value)
        # Text keeps what it knows of itself: a number its value, HTML that it is HTML.
        return value if isinstance(value, str) else str(value)

    def value(self, row: R) -> float | None:
        """Return the number by which the cell is compared; that of a text is what it was made of.

        None where there is none.
        """
        value = self.of(row)
        return words.value_of(value) if isinstance(value, str) else value

    def on(self, part: Callable[[S], R | None]) -> Column[S]:
        """Return the column for rows that hold what it is of; empty where they do not."""

        def of(row: S) -> Any:
            found = part(row)
            return None if found is None else self.of(found)

        return Column(self.heading, of, *self[2:])


class Table(Generic[R]):
    """Rows under columns.

    The first `shown` rows are for people. Rows that are no `choice` (a bound) are never marked as
    best. With `by_row` the best of each row is marked among its columns.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[Column[R]],
        rows: Sequence[R],
        *,
        shown: int | None = None,
        choice: Callable[[R], bool] | None = None,
        by_row: bool = False,
    ) -> None:
        """Make a table; nothing is computed before it is written."""
        self.title, self.columns, self.rows = title, columns, rows
        self.shown = len(rows) if shown is None else min(shown, len(rows))
        self._choice, self.by_row = choice, by_row

    @property
    def left_out(self) -> int:
        """How many rows are not shown."""
        return len(self.rows) - self.shown

    def written(self, *, plots: bool = False) -> list[Written]:
        """Return the columns as texts, with the places of the best among the rows shown."""
        best = self._best()
        return [
            Written(
                column.heading,
                [column.text(row) for row in self.rows[: self.shown]],
                column.show is not None or column.numeric,
                {place for place in best[at] if place < self.shown},
            )
            for at, column in enumerate(self.columns)
            if plots or not column.plot
        ]

    def _best(self) -> list[set[int]]:
        if self.by_row:
            return self._best_by_row()
        return [self._best_of(column) for column in self.columns]

    def _best_of(self, column: Column[R]) -> set[int]:
        if column.better is None:
            return set(column.best)
        choice = self._choice
        values = [
            None if choice is not None and not choice(row) else column.value(row)
            for row in self.rows
        ]
        return best_index(values, column.better == "high")

    def _best_by_row(self) -> list[set[int]]:
        compared = [at for at, column in enumerate(self.columns) if column.better]
        best: list[set[int]] = [set() for _ in self.columns]
        for place, row in enumerate(self.rows):
            values = [self.columns[at].value(row) for at in compared]
            highest = any(self.columns[at].better == "high" for at in compared)
            for found in best_index(values, highest):
                best[compared[found]].add(place)
        return best


class Written(NamedTuple):
    """A column as texts: its heading, a text per row, and the rows in which it is the best."""

    heading: str
    cells: list[str]
    numeric: bool
    best: Collection[int]

    @property
    def is_key(self) -> bool:
        """Whether the column names the row: text, or a rank without heading."""
        return not self.numeric or not self.heading

    @property
    def is_long(self) -> bool:
        """Whether the column holds sentences."""
        return not self.numeric and max(map(len, self.cells), default=0) > LONG_TEXT

    def width(self, wrapped: bool) -> int:
        """Return the characters the column takes, its mark included."""
        headings = self.heading.split() if wrapped else [self.heading]
        longest = max(map(len, [*headings, *self.cells]), default=0)
        return longest + (len(BEST) if self.best else 0)

    def aligned(self, text: str, wrapped: bool) -> str:
        """Return a number's text at the right, with a place for the mark after it."""
        mark = len(BEST) if self.best else 0
        return text.rjust(self.width(wrapped) - mark) if self.numeric else text


def best_index(values: Sequence[float | None], highest: bool) -> set[int]:
    """Return where the best value stands (all places when equal), empty if nothing differs."""
    known = [value for value in values if value is not None]
    if len(known) < 2 or min(known) == max(known):
        return set()
    best = max(known) if highest else min(known)
    return {index for index, value in enumerate(values) if value == best}


def rank(rows: Sequence[R]) -> Column[R]:
    """Return the column of ranks, from 1, without a heading."""
    numbers = {id(row): str(place) for place, row in enumerate(rows, 1)}
    return Column("", lambda row: numbers[id(row)], numeric=True)


def of_texts(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: int,
    best: Sequence[Collection[int]] = (),
) -> Table[Sequence[str]]:
    """Return rows of texts under headings; the first `texts` columns are no numbers."""
    columns = [
        Column(heading, _item(at), numeric=at >= texts, best=best[at] if best else ())
        for at, heading in enumerate(headings)
    ]
    return Table(title, columns, rows)


def _item(at: int) -> Callable[[Sequence[str]], str]:
    return lambda row: row[at]


def facts(name: str, pairs: Sequence[tuple[str, str]]) -> Table[Sequence[str]]:
    """Return names and what is said of them as a table, its names under `name`."""
    return of_texts("", [name, ""], pairs, 2)


class Beside(NamedTuple):
    """A row of results side by side: what names it, and each result's number; None without one."""

    keys: Sequence[str]
    values: Sequence[float | None]

    def change(self, place: int) -> str | None:
        """Return how far a result is from the first; None without both numbers."""
        base, value = self.values[0], self.values[place]
        return None if base is None or value is None else words.change(value, base)


def beside(
    title: str,
    keys: Sequence[str],
    labels: Sequence[str],
    rows: Sequence[Beside],
    show: Callable[[float | None], str],
    *,
    better: Better | None = None,
    changes: bool = True,
    shown: int | None = None,
) -> Table[Beside]:
    """Return one measure of several results: a column per result, then each change from the first.

    The best of each row is marked.
    """
    columns: list[Column[Beside]] = [Column(key, _key_of(at)) for at, key in enumerate(keys)]
    columns += [Column(label, _value_of(at), show, better) for at, label in enumerate(labels)]
    if changes:
        columns += [
            Column(f"{label}, change", _change_of(at), numeric=True)
            for at, label in enumerate(labels)
            if at
        ]
    return Table(title, columns, rows, shown=shown, by_row=True)


def _key_of(at: int) -> Callable[[Beside], str]:
    return lambda row: row.keys[at]


def _value_of(at: int) -> Callable[[Beside], float | None]:
    return lambda row: row.values[at]


def _change_of(at: int) -> Callable[[Beside], str | None]:
    return lambda row: row.change(at)


# --- Plots of one line, drawn with block characters; where the output cannot encode them, `#` and
# digits stand in.

BAR_WIDTH = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = " ▁▂▃▄▅▆▇█"


def _unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "ascii").lower().startswith("utf")


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """Return a bar as long as `share` (0..1) of `width` characters."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    if not _unicode():
        return "#" * round(eighths / 8)
    rest = _EIGHTHS[eighths % 8].strip()
    return "█" * (eighths // 8) + rest


def spark(values: Sequence[float]) -> str:
    """Return one character per value, as high as its share of the largest."""
    top = max(values, default=0)
    if top <= 0:
        return ""
    steps = [0 if v <= 0 else max(1, round(v / top * 8)) for v in values]
    return "".join(_LEVELS[s] if _unicode() else "0123456789"[s] for s in steps)


# --- Terminals. Nothing is cut: when a table is too wide, headings wrap first, then further columns
# follow in a second table beside the same names. Piped tables are plain text at most `PIPE_WIDTH`
# wide, but for sentences, which stay on one line.


def lines(table: Table[Any]) -> list[str]:
    """Return a table as lines of plain text, an empty one after each part."""
    columns = table.written(plots=True)
    wrapped = _width(columns, wrapped=False) > PIPE_WIDTH
    if any(column.is_long for column in columns):
        wrapped = False
    found = [table.title] if table.title else []
    for part in _parts(columns, PIPE_WIDTH) if wrapped else [columns]:
        found += [
            _line(part, line, wrapped) for line in zip(*_headings(part, wrapped), strict=True)
        ]
        found.append(_line(part, ["-" * column.width(wrapped) for column in part], wrapped))
        for row in range(table.shown):
            found.append(_line(part, [column.cells[row] for column in part], wrapped, row))
        found.append("")
    return found


def draw(table: Table[Any], console: Console) -> None:
    """Print a table to a terminal, as wide as that is; the best is bold, too."""
    from rich.text import Text

    columns = table.written(plots=True)
    if table.title:
        console.print(Text(table.title, style="bold"), soft_wrap=True)
    wrapped = _width(columns, wrapped=False) > console.width
    for part in _parts(columns, console.width) if wrapped else [columns]:
        _draw(part, wrapped, console)
        print()


def _width(columns: Sequence[Written], wrapped: bool) -> int:
    return sum(column.width(wrapped) + GAP for column in columns)


def _parts(columns: Sequence[Written], limit: int) -> list[list[Written]]:
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


def _headings(columns: Sequence[Written], wrapped: bool) -> list[list[str]]:
    """Return each column's heading as lines, as many for all, the last of them filled."""
    headings = [column.heading.split() if wrapped else [column.heading] for column in columns]
    most = max(map(len, headings))
    return [[""] * (most - len(parts)) + parts for parts in headings]


def _line(columns: Sequence[Written], texts: Sequence[str], wrapped: bool, row: int = -1) -> str:
    """Return texts in their columns; numbers end where the others of their column end."""
    cells = []
    for column, text in zip(columns, texts, strict=True):
        mark = BEST if row in column.best else ""
        cells.append(f"{column.aligned(text, wrapped)}{mark}".ljust(column.width(wrapped)))
    return (" " * GAP).join(cells).rstrip()


def _draw(columns: Sequence[Written], wrapped: bool, console: Console) -> None:
    from rich import box
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for column, parts in zip(columns, _headings(columns, wrapped), strict=True):
        heading = Text("\n".join(column.aligned(part, wrapped) for part in parts))
        drawn.add_column(heading, no_wrap=not column.is_long)
    for row in range(len(columns[0].cells)):
        drawn.add_row(*(_cell(column, row, wrapped) for column in columns))
    console.print(drawn)


def _cell(column: Written, row: int, wrapped: bool) -> Text:
    from rich.text import Text

    # The text is filled up here: rich strips what it aligns itself.
    text = column.aligned(column.cells[row], wrapped)
    if row in column.best:
        return Text(text + BEST, style="bold", overflow="fold")
    return Text(text, overflow="fold")


# --- Pages.


def html(table: Table[Any]) -> str:
    """Return a table as HTML without its title; it scrolls where it is wider than the page."""
    columns = table.written()
    head = "".join(_html_cell("th", column, column.heading, False) for column in columns)
    body = "".join(
        "<tr>"
        + "".join(
            _html_cell("td", column, column.cells[row], row in column.best) for column in columns
        )
        + "</tr>"
        for row in range(table.shown)
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _html_cell(tag: str, column: Written, text: str, best: bool) -> str:
    from html import escape

    kind = ' class="n"' if column.numeric else ""
    content = text if isinstance(text, Html) else escape(text)
    if best:
        content = f'<b class="top">{content}</b>'
    return f"<{tag}{kind}>{content}</{tag}>"


# --- Markdown.


def markdown(table: Table[Any]) -> str:
    """Return a table as Markdown without its title, the best of a column bold."""
    columns = table.written()
    rules = ["--:" if column.numeric else "---" for column in columns]
    rows = [
        [
            f"**{column.cells[row]}**" if row in column.best else column.cells[row]
            for column in columns
        ]
        for row in range(table.shown)
    ]
    heads = [column.heading for column in columns]
    return "\n".join([_markdown_line(heads), f"|{'|'.join(rules)}|", *map(_markdown_line, rows)])


def _markdown_line(cells: Sequence[str]) -> str:
    # A cell is on one line: a line break would end the row.
    plain = [" ".join(cell.splitlines()).replace("|", "\\|") for cell in cells]
    return "| " + " | ".join(plain) + " |"


# --- CSV, for programs: all rows, and numbers as they are, in the units of their names.


def of_records(
    records: Iterable[Mapping[str, Any]], keys: Iterable[str] = ()
) -> Table[Mapping[str, Any]]:
    """Return a table with a column per key, in the order of first sight.

    Tables inside a record become columns named `outer_inner`; lists of records are left out. `keys`
    are there without records, too.
    """
    flat = [dict(_flat(record)) for record in records]
    names = dict.fromkeys([*keys, *(key for record in flat for key in record)])
    return Table("", [Column(name, _named(name)) for name in names], flat)


def _named(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda record: record.get(name)


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}_")
        elif isinstance(value, list | tuple):
            if all(isinstance(item, str) for item in value):
                yield name, "; ".join(value)
        elif isinstance(value, bool):
            yield name, str(value).lower()
        else:
            yield name, value


def write_csv(table: Table[Any], file: TextIO) -> None:
    """Write all rows as CSV under the headings; what is not known is an empty cell."""
    import csv

    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([column.heading for column in table.columns])
    writer.writerows([column.of(row) for column in table.columns] for row in table.rows)
