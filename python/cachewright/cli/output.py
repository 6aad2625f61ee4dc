"""What the command line shows: tables with the best marked, sentences, errors.

For: one look of every command. Must never know: how results are made. Tables and results go to
standard output, everything else to standard error. The best value of a column is bold and carries a
`*`, so that it shows without colour; colours follow the terminal and `NO_COLOR`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 400


def out() -> Console:
    """Return standard output as a console; wide when it is not a terminal, so nothing is cut."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def say(sentence: str = "") -> None:
    """Print a line to standard output as it is."""
    print(sentence)


def note(sentence: str) -> None:
    """Print a remark to standard error."""
    sys.stdout.flush()
    print(f"note: {sentence}", file=sys.stderr)


def kept(document: dict[str, Any]) -> None:
    """Say how many cases were not run again because the result folder held their answers."""
    found, cases = document.get("reused", 0), len(document["cases"])
    if found:
        note(f"{found} of {cases} cases kept from before, not run again")


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
    """Print a document as indented JSON."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two aligned columns."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        say(f"{name:<{width}}  {value}".rstrip())
