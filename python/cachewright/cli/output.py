"""What the command line shows: tables with the best marked, sentences, CSV, JSON, errors.

Tables and results go to standard output, everything else to standard error. Colours follow the
terminal and `NO_COLOR`. `rich` is imported only where something is shown on a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from cachewright import tables

if TYPE_CHECKING:
    from rich.console import Console

    from cachewright.answers import AmplificationAnswer, RunAnswer

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def be_quiet(quiet: bool) -> None:
    """Leave out notes and progress from here on, in this command; or show them again."""
    _quiet.set(quiet)


def is_quiet() -> bool:
    """Return whether notes and progress are left out."""
    return _quiet.get()


def terminal() -> Console | None:
    """Return standard output as a console; None when it is no terminal."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def say(sentence: str = "") -> None:
    """Print a line to standard output as it is."""
    print(sentence)


def note(sentence: str) -> None:
    """Print a remark to standard error, unless the command is quiet."""
    if is_quiet():
        return
    sys.stdout.flush()
    print(f"note: {sentence}", file=sys.stderr)


def kept(answer: RunAnswer | AmplificationAnswer) -> None:
    """Say how many cases were not run again because the result folder held their answers."""
    if answer.reused:
        cases = len(answer.cases)
        note(f"{answer.reused} of {cases} cases kept from before, not run again")


def error(sentence: str) -> None:
    """Print `error: ` and the sentence to standard error."""
    sentence = sentence.rstrip()
    sys.stdout.flush()
    if not sys.stderr.isatty():
        print(f"error: {sentence}", file=sys.stderr)
        return
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble(("error: ", "bold red"), sentence)
    Console(stderr=True, highlight=False).print(line, soft_wrap=True)


def print_json(document: Any) -> None:
    """Print a document, a record or a list of records as indented JSON."""
    import json

    from cachewright.documents import dump

    print(json.dumps(dump(document), indent=2, ensure_ascii=False))


def print_csv(records: Iterable[Mapping[str, Any]], keys: Iterable[str] = ()) -> None:
    """Print records as CSV, a column per key; `keys` are there without records, too."""
    tables.write_csv(tables.of_records(records, keys), sys.stdout)


def show(table: tables.Table[Any]) -> None:
    """Print a table: as wide as the terminal, or as plain text into a pipe."""
    console = terminal()
    if console is not None:
        tables.draw(table, console)
        return
    for line in tables.lines(table):
        say(line)


def conclude(paragraph: str) -> None:
    """Print the answer; nothing where there is none."""
    if paragraph:
        say(paragraph)


def follow(command: str) -> None:
    """Print the command that follows from the answer; nothing where none does."""
    if command:
        say(f"next: {command}")


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two aligned columns."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        say(f"{name:<{width}}  {value}".rstrip())
