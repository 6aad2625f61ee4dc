"""How many distinct blocks each volume of a stream has, in bounded memory.

For: working sets of manifests. Must never know: traces. A volume keeps the hashes below a threshold
(adaptive sampling: Wegman; analysed by Flajolet, "On adaptive sampling", Computing 43, 1990). When
it holds more than its limit, the threshold is halved. The count is exact until then; later its
relative standard error is about 1.2 / sqrt(limit), 0.3 % at the first limit. When all volumes
together hold more than `BUDGET` hashes, the limit is halved as well, down to `LEAST_LIMIT`. Units:
blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Hashes = np.ndarray[Any, np.dtype[np.uint64]]

LIMIT = 1 << 17
LEAST_LIMIT = 1 << 10
BUDGET = 1 << 24
"""Hashes of all volumes together: 128 MiB."""
FULL = 1 << 64
PIECE = 1 << 19
"""Blocks of requests that are hashed at a time."""


class _Kept:
    """The hashes of one volume below a threshold, some of them twice."""

    def __init__(self) -> None:
        self.parts: list[Hashes] = []
        self.held, self.unique = 0, 0
        self.threshold = FULL

    def add(self, hashes: Hashes) -> None:
        import numpy as np

        if self.threshold < FULL:
            hashes = hashes[hashes < np.uint64(self.threshold)]
        hashes = np.unique(hashes)
        self.parts.append(hashes)
        self.held += len(hashes)

    def settle(self, limit: int) -> None:
        """Keep each hash once, and at most `limit` of them."""
        import numpy as np

        kept = np.unique(np.concatenate(self.parts)) if self.parts else np.empty(0, np.uint64)
        while len(kept) > limit:
            self.threshold >>= 1
            # Sorted, so that those below come first.
            kept = kept[: np.searchsorted(kept, np.uint64(self.threshold))].copy()
        self.parts, self.held, self.unique = [kept], len(kept), len(kept)


class Distinct:
    """Distinct blocks by volume."""

    def __init__(self) -> None:
        self.limit, self.held = LIMIT, 0
        self.volumes: dict[int, _Kept] = {}

    def add(self, volume: int, blocks: Hashes) -> None:
        """Take the blocks that a volume accessed."""
        kept = self.volumes.setdefault(volume, _Kept())
        before = kept.held
        kept.add(hashed(blocks))
        if kept.held > 2 * max(kept.unique, self.limit // 2):
            kept.settle(self.limit)
        self.held += kept.held - before
        if self.held > BUDGET and self.limit > LEAST_LIMIT:
            self._shrink()

    def _shrink(self) -> None:
        """Keep each hash once, and fewer of each volume until half of the budget is free."""
        self._settle()
        while self.held > BUDGET // 2 and self.limit > LEAST_LIMIT:
            self.limit //= 2
            self._settle()

    def _settle(self) -> None:
        for kept in self.volumes.values():
            kept.settle(self.limit)
        self.held = sum(kept.held for kept in self.volumes.values())

    def count(self, volume: int) -> tuple[int, bool]:
        """Return a volume's distinct blocks, and whether that is exact."""
        kept = self.volumes.get(volume)
        if kept is None:
            return 0, True
        kept.settle(self.limit)
        return round(kept.unique * (FULL / kept.threshold)), kept.threshold == FULL


def hashed(blocks: Hashes) -> Hashes:
    """Return a 64-bit hash of each block (the finaliser of SplitMix64)."""
    import numpy as np

    with np.errstate(over="ignore"):
        mixed = (blocks + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def blocks_of(offset_bytes: Hashes, length_bytes: Hashes, block_bytes: int) -> Iterator[Hashes]:
    """Yield every block that requests touch; see `touched`."""
    for _, blocks in touched(offset_bytes, length_bytes, block_bytes):
        yield blocks


def touched(
    offset_bytes: Hashes, length_bytes: Hashes, block_bytes: int
) -> Iterator[tuple[np.ndarray[Any, np.dtype[np.int64]], Hashes]]:
    """Yield every block that requests touch with the place of its request, `PIECE` at a time.

    A request of no bytes touches none.
    """
    import numpy as np

    size = np.uint64(block_bytes)
    some = np.flatnonzero(length_bytes)
    offset_bytes, length_bytes = offset_bytes[some], length_bytes[some]
    first = offset_bytes // size
    counts = (offset_bytes + (length_bytes - np.uint64(1))) // size - first + np.uint64(1)
    if len(counts) == 0 or int(counts.max()) == 1:
        yield some, first
        return
    ends = np.cumsum(counts)
    for start in range(0, int(ends[-1]), PIECE):
        steps = np.arange(start, min(start + PIECE, int(ends[-1])), dtype=np.uint64)
        place = np.searchsorted(ends, steps, side="right")
        yield some[place], first[place] + (steps - (ends[place] - counts[place]))
