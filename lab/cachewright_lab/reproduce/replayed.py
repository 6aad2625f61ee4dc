"""What one replay on a drive says: bandwidth in each part of it, response times, flash writes.

For: figures of drives over time. Must never know: figures, specs. Units: bytes per second,
nanoseconds; flash writes per host write are a ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from cachewright import timing
from cachewright.answers import Case, ResponseTimes, Timing

NS_PER_S = 1e9
PARTS = 10
"""Equal parts of the bytes of a replay; the traces of the papers' kind write a drive in each."""


@dataclass(frozen=True)
class Phase:
    """The only tenant of one case of a replay's result."""

    case: Case

    @property
    def total(self) -> ResponseTimes:
        """Response times and throughput of all requests that count."""
        return self._timing.total

    @property
    def amplification(self) -> float:
        """Flash writes per host write, of the whole replay."""
        drive = self._timing.drive
        if drive is None:
            raise ValueError("found no drive, expected one that is the whole machine")
        return drive.write_amplification

    @property
    def _timing(self) -> Timing:
        return timing.of(self.case)

    def bandwidths(self) -> list[float]:
        """Return the bytes per second of each of ten equal parts of the bytes answered."""
        series = self._timing.series
        width_ns, ends, done = float(series.width_ns), [0.0], 0
        answered = [size for _, size, _ in series.tenants[0]]
        part = sum(answered) / PARTS
        for place, found in enumerate(answered):
            while len(ends) <= PARTS and found and done + found >= part * len(ends):
                ends.append(width_ns * (place + (part * len(ends) - done) / found))
            done += found
        if not part:
            return [0.0] * PARTS
        return [part * NS_PER_S / max(end - begin, 1.0) for begin, end in pairwise(ends)]

    def later_mean_ns(self) -> float:
        """Return the mean response of the later half of the replay's time."""
        windows = self._timing.series.tenants[0]
        later = windows[len(windows) // 2 :]
        requests = sum(count for count, _, _ in later)
        return sum(count * mean_ns for count, _, mean_ns in later) / max(requests, 1)
