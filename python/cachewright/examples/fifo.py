"""FIFO, exact, on numpy batches.

For: showing how a policy in Python can be fast. Must never know: traces. Unit: blocks.

Every admitted block draws a ticket: 1, 2, 3, ... A FIFO cache of `capacity` blocks holds exactly
those whose last ticket is above `issued - capacity`, so that nothing needs to be moved or
evicted: one comparison answers a whole batch. Within a batch of at most `capacity` accesses
- a block that is absent at the start misses once, when first met, and then stays: certain;
- a block whose ticket stays above the line even if everything else misses hits: certain;
- only a block near the line depends on the misses before it. Those few are decided one by one.

    run = cachewright.simulate_python(Fifo, "trace.csv.zst", "64MiB")
    print(run.hit_ratio)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LARGEST_STEP = 1 << 15
SMALLEST_STEP = 64
NEVER = np.iinfo(np.int64).min // 2


class Fifo:
    """The block admitted first leaves."""

    def __init__(self, capacity_blocks: int) -> None:
        self.capacity = capacity_blocks
        self.issued = 0
        self.tickets: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.first_met: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def access_batch(self, ids: NDArray[np.uint32], writes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Use the blocks in order and return, for each, whether it was resident."""
        if len(ids) == 0 or self.capacity == 0:
            return np.zeros(len(ids), dtype=np.bool_)
        self._make_room(int(ids.max()) + 1)
        if self.capacity < SMALLEST_STEP:
            return self._one_by_one(ids)
        step = min(self.capacity, LARGEST_STEP)
        parts = [self._step(ids[start : start + step]) for start in range(0, len(ids), step)]
        return np.concatenate(parts)

    def _make_room(self, count: int) -> None:
        if count > len(self.tickets):
            more = max(count, 2 * len(self.tickets)) - len(self.tickets)
            self.tickets = np.concatenate([self.tickets, np.full(more, NEVER)])
            self.first_met = np.concatenate([self.first_met, np.zeros(more, dtype=np.int64)])

    def _step(self, ids: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Answer at most `capacity` accesses."""
        line = self.issued - self.capacity
        tickets = self.tickets[ids]
        hits = tickets > line
        absent = np.flatnonzero(~hits)
        misses = self._first_of_each(ids, absent)
        hits[absent] = True
        hits[misses] = False
        near = np.flatnonzero((tickets > line) & (tickets <= line + len(ids)))
        # No more misses can come before an access than the certain ones and all near ones before.
        certain = np.searchsorted(misses, near)
        at_risk = tickets[near] <= line + certain + np.arange(len(near))
        self._decide(ids, near[at_risk], tickets[near[at_risk]] - certain[at_risk] - line, hits)
        missed = ids[~hits]
        self.tickets[missed] = np.arange(self.issued + 1, self.issued + 1 + len(missed))
        self.issued += len(missed)
        return hits

    def _first_of_each(self, ids: NDArray[np.uint32], places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those of `places` where a block stands for the first time."""
        blocks = ids[places]
        # Of a repeated index numpy keeps the last value: backwards, that is the first place.
        self.first_met[blocks[::-1]] = places[::-1]
        first: NDArray[np.bool_] = self.first_met[blocks] == places
        return places[first]

    def _decide(
        self,
        ids: NDArray[np.uint32],
        places: NDArray[np.intp],
        margins: NDArray[np.int64],
        hits: NDArray[np.bool_],
    ) -> None:
        """Settle accesses in order; one misses when the others' misses use up its margin."""
        more = 0
        readmitted: set[int] = set()
        blocks = ids[places].tolist()
        for place, block, margin in zip(places.tolist(), blocks, margins.tolist(), strict=True):
            if margin <= more and block not in readmitted:
                hits[place] = False
                readmitted.add(block)
                more += 1

    def _one_by_one(self, ids: NDArray[np.uint32]) -> NDArray[np.bool_]:
        hits = np.zeros(len(ids), dtype=np.bool_)
        for place, block in enumerate(ids.tolist()):
            if self.tickets[block] > self.issued - self.capacity:
                hits[place] = True
            else:
                self.issued += 1
                self.tickets[block] = self.issued
        return hits
