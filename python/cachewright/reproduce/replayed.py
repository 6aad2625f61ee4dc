"""What one replay on a drive says: bandwidth in each part of it, response times, flash writes.

For: figures of drives over time. Must never know: figures, specs. Units: bytes per second,
nanoseconds; flash writes per host write are a ratio.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

NS_PER_S = 1e9
PARTS = 10
"""Equal parts of the bytes of a replay; the traces of the papers' kind write a drive in each."""


@dataclass(frozen=True)
class Phase:
    """The only tenant of one case of a replay's result."""

    case: Mapping[str, Any]

    @property
    def total(self) -> Mapping[str, Any]:
        """Response times and throughput of all requests that count."""
        found: Mapping[str, Any] = self.case["timing"]["total"]
        return found

    @property
    def amplification(self) -> float:
        """Flash writes per host write, of the whole replay."""
        return float(self.case["timing"]["drive"]["write_amplification"])

    def bandwidths(self) -> list[float]:
        """Return the bytes per second of each of ten equal parts of the bytes answered."""
        series = self.case["timing"]["series"]
        width_ns, ends, done = float(series["width_ns"]), [0.0], 0
        answered = [int(window[1]) for window in series["tenants"][0]]
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
        windows = self.case["timing"]["series"]["tenants"][0]
        later = windows[len(windows) // 2 :]
        requests = sum(int(window[0]) for window in later)
        return sum(int(window[0]) * float(window[2]) for window in later) / max(requests, 1)
