"""One bad input: the files it lies in, the command that reads it, what the error must name.

For: the corpus modules beside it and the process that runs them. Must never know: how anything is
read. `words` are texts that must stand in the error sentence: the file, line, key or option at
fault. `{}` in an argument is the path of the case's first file.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """A bad input."""

    name: str
    files: dict[str, bytes]
    command: tuple[str, ...]
    words: tuple[str, ...]
    folders: tuple[str, ...] = field(default=())


def text(content: str) -> bytes:
    """Return a file's bytes."""
    return content.encode("utf-8")
