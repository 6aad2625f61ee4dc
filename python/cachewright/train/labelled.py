"""Requests of a workload with an oracle's labels: what a caching model learns from.

For: `Lessons`, `caching_lessons`. Must never know: how networks learn. Features and labels come
from the code that runs the model (`_native.caching_lessons`). Source: Ebrahimi et al., RC-RNN (IEEE
TETC), section 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachewright import _native
from cachewright.stack import Settings, SpecLike, load, pairs
from cachewright.train.labelling import NO_DURATION
from cachewright.train.reports import Agreement, Majority

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

TRIM, LAST = 4, 2
"""Flags of an access of `Lessons.flags`."""


@dataclass(frozen=True)
class Lessons:
    """Every read and write of a workload: features [request, feature] and an oracle's labels."""

    capacity_blocks: int
    names: Sequence[str]
    rows: NDArray[np.float32]
    cached: NDArray[np.uint8]
    duration: NDArray[np.uint8]
    time_ns: NDArray[np.uint64]
    split: int = 0
    """Requests whose labels see nothing beyond the last of them."""

    filled: int = 0
    """Requests until the oracle's cache was full for the first time."""

    blocks: NDArray[np.uint32] | None = None
    """The blocks asked for, one after another, and a byte of flags each; of whole lessons only."""

    flags: NDArray[np.uint8] | None = None
    oracle: tuple[int, int] = (0, 0)
    """Accesses and hits of the oracle behind the split."""

    def part(self, first: int, last: int) -> Lessons:
        """Return the requests from `first` up to `last`, without their blocks."""
        here = slice(first, last)
        return Lessons(
            self.capacity_blocks,
            self.names,
            self.rows[here],
            self.cached[here],
            self.duration[here],
            self.time_ns[here],
        )

    def said(self) -> NDArray[np.uint8]:
        """Return the oracle's labels as a model's would be [request, 2]."""
        import numpy as np

        return np.stack([self.cached, np.minimum(self.duration, NO_DURATION - 1)], axis=1)

    def hit_ratio(
        self, labels: NDArray[np.uint8], first: int, last: int, requeue_hits: bool
    ) -> float | None:
        """Return the hit ratio of the requests from `first` up to `last` under labels of all.

        Nothing where the blocks are not known.
        """
        import numpy as np

        if self.blocks is None or self.flags is None:
            return None
        ends = np.flatnonzero((self.flags & (TRIM | LAST)) == LAST)
        end = int(ends[last - 1]) + 1
        accesses, hits, _ = _native.caching_hits(
            self.blocks[:end],
            self.flags[:end],
            np.ascontiguousarray(labels[:last]),
            capacity_blocks=self.capacity_blocks,
            requeue_hits=requeue_hits,
            uncached_soon=requeue_hits,
            first=first,
            last=last,
        )
        return hits / max(accesses, 1)

    def majority(self) -> Majority:
        """Return how often the most frequent label is the right one."""
        import numpy as np

        def of(column: NDArray[np.uint8]) -> float:
            return float(np.bincount(column).max() / len(column)) if len(column) else 0.0

        return Majority(cached=of(self.cached), duration=of(self.lasting()))

    def lasting(self) -> NDArray[np.uint8]:
        """Return the durations of requests that are cached."""
        import numpy as np

        return np.asarray(self.duration[self.duration != NO_DURATION])

    def agreement(self, content: bytes, own: bool) -> Agreement:
        """Return how often a model says what the oracle does; durations where it caches."""
        import numpy as np

        said = _native.caching_labels(content, np.ascontiguousarray(self.rows), own)
        cached = self.duration != NO_DURATION
        lasting = said[cached, 1] == self.duration[cached]
        return Agreement(
            cached=float(np.mean(said[:, 0] == self.cached)),
            duration=float(np.mean(lasting)) if len(lasting) else 0.0,
            says_cached=float(np.mean(said[:, 0])),
        )


def caching_lessons(
    spec: SpecLike,
    *,
    features: str = "reuse",
    oracle: str = "benefit-oracle",
    labels: str = "remaining",
    share: float | None = None,
    until_ns: int | None = None,
    settings: Settings | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Lessons:
    """Return features and an oracle's labels of every request of a stack's only tenant.

    Labels of the first `share` of the requests, or of those before `until_ns`, see nothing beyond.
    Errors: `SpecError`, `TraceError`, `RunError`.
    """
    stack = load(spec)
    found = _native.caching_lessons(
        stack.text,
        stack.origin,
        pairs(settings),
        {"oracle": oracle, "labels": labels},
        features=features,
        share=share,
        until_ns=until_ns,
        threads=threads,
        progress=progress,
    )
    return Lessons(**found)
