"""One result as rows of measures and as curves, whatever command wrote it.

For: comparing results. Must never know: any command, files. Units: bytes, nanoseconds, ratios in
0..1. A row has a number per measure, and keys that tell it from the other rows of its result. Rows
of two results are of the same thing when the keys that vary in either have equal values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cachewright import words

TENANT, ALL = "tenant", "all"
CAPACITY, OWN_CACHE = "cache.capacity", "cache of its own"
POLICY, PARTITION = "cache.policy", "cache.partition"
HIT_RATIO, AMPLIFICATION = "hit ratio", "write amplification"
SMALLEST = "smallest cache"


class Measure(NamedTuple):
    """A number of rows: its name, how it is written, and whether the highest is best.

    `highest` is None where neither end is best.
    """

    name: str
    show: Callable[[float | None], str]
    highest: bool | None = None


@dataclass(frozen=True)
class Row:
    """Numbers by measure, and the keys that tell the row from others of its result."""

    keys: Mapping[str, str]
    values: Mapping[str, float]


@dataclass(frozen=True)
class Curve:
    """Hit ratio by cache size in bytes, ascending, of one tenant (or `all`) under a policy."""

    tenant: str
    policy: str
    points: Sequence[tuple[int, float]]

    def at(self, size_bytes: int) -> float | None:
        """Return the hit ratio at a size, linear between two points; None outside them."""
        place = bisect_left(self.points, size_bytes, key=lambda point: point[0])
        if place == len(self.points):
            return None
        above, high = self.points[place]
        if above == size_bytes:
            return high
        if place == 0:
            return None
        below, low = self.points[place - 1]
        return low + (high - low) * (size_bytes - below) / (above - below)


@dataclass(frozen=True)
class Reading:
    """What one result holds.

    `settings` are by dotted key, `workload` says per tenant what was replayed. `sizes` are the
    bytes of the caches that it ran; where they are empty the rows at a size come from `curves`.
    """

    label: str
    command: str
    settings: Mapping[str, str]
    measures: Sequence[Measure]
    rows: Sequence[Row]
    curves: Sequence[Curve] = ()
    workload: Mapping[str, str] = field(default_factory=dict)
    sizes: Sequence[int] = ()

    def at_sizes(self, sizes: Sequence[int]) -> list[Row]:
        """Return the rows, those of curves at these sizes; a curve of all is a shared cache."""
        if self.sizes or not sizes:
            return list(self.rows)
        found = list(self.rows)
        for curve in self.curves:
            together = curve.tenant == ALL
            for size in sizes:
                ratio = curve.at(size)
                if ratio is None:
                    continue
                keys = {TENANT: curve.tenant, POLICY: curve.policy}
                keys |= {PARTITION: "shared"} if together else {}
                keys[CAPACITY if together else OWN_CACHE] = exact_size(size)
                found.append(Row(keys, {HIT_RATIO: ratio}))
        return found


def exact_size(size_bytes: int) -> str:
    """Return a size as text that no other size has: `1.5GiB`, or `109724KiB` where that rounds."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        scaled = size_bytes / (1 << shift)
        text = words.significant(scaled)
        if scaled >= 1 and (float(text) if "," not in text else None) == scaled:
            return f"{text}{unit}"
        if size_bytes and size_bytes % (1 << shift) == 0:
            return f"{size_bytes >> shift}{unit}"
    return f"{size_bytes}B"


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Return settings by dotted key as text; those of a list's tables stand under their names."""
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for key, held in value.items():
            found |= flat(held, f"{prefix}.{key}" if prefix else str(key))
        return found
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        found = {}
        for place, held in enumerate(value):
            name = held.get("name", place)
            found |= flat({k: v for k, v in held.items() if k != "name"}, f"{prefix}.{name}")
        return found
    return {prefix: words.NOTHING if value is None else words.setting(value)}
