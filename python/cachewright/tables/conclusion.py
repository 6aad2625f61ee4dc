"""How an answer ends: a paragraph of plain sentences, and the command that follows from it.

For: `compare`, `mrc`, `plan`, `wa`, `advise`, `fleet study`, `plan --fleet`, on the terminal and in
the first box of their pages. Must never know: what was measured. Units: bytes, ratios in 0..1.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from cachewright import words

# The share of the largest cache's hits with which a smaller one is enough.
NEARLY = 0.9
# The hit ratio below which a cache is not worth its space.
HARDLY = 0.01
# Below this span a rate says nothing about a day.
SHORTEST_NS, DAY_NS = 10_000_000_000, 86_400_000_000_000


def paragraph(sentences: Iterable[str]) -> str:
    """Return sentences without their full stops as one paragraph, the empty ones left out."""
    found = [sentence for sentence in sentences if sentence]
    return ". ".join(found) + "." if found else ""


def more_hits(size_bytes: int, hit_ratio: float, larger_bytes: int, larger_ratio: float) -> str:
    """Return what a larger cache would give; nothing where it is not larger."""
    times = larger_bytes / size_bytes if size_bytes else 0.0
    if times <= 1:
        return ""
    gain, factor = words.ratio(max(larger_ratio - hit_ratio, 0.0)), words.significant(times, 2)
    return f"{words.size(larger_bytes)}, {factor} times as much, hits {gain} more"


def of_possible(hit_ratio: float, bound: str, bound_ratio: float) -> str:
    """Return how much of a bound's hits there are; nothing where the bound hits nothing."""
    if bound_ratio <= 0:
        return ""
    share = words.percent(hit_ratio / bound_ratio)
    return f"That is {share} of what is possible ({bound} hits {words.ratio(bound_ratio)})"


def written_per_day(
    written_bytes: float, span_ns: int, where: str, rate: str = "the traces' rate"
) -> str:
    """Return what is written in a day at a rate; nothing where that says nothing."""
    a_day = round(written_bytes * DAY_NS / span_ns) if span_ns >= SHORTEST_NS else 0
    return f"At {rate} it writes {words.size(a_day)} a day to {where}" if a_day else ""


def command(*parts: str | os.PathLike[str]) -> str:
    """Return a command of Cachewright as it is typed."""
    return shlex.join(["cachewright", *(os.fspath(part) for part in parts)])
