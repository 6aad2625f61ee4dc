"""The whole corpus of bad input."""

from __future__ import annotations

from collections.abc import Iterator

from hostile import others, stacks, traces
from hostile.case import Case


def cases() -> Iterator[Case]:
    """Give every case; names are unique."""
    yield from traces.cases()
    yield from stacks.cases()
    yield from others.cases()
