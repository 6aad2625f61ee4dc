"""What models of a tenant's demand learn from: features by step, responses by cache size, labels.

For: `Segments`, which `segments` returns. Must never know: models, how anything is
measured. Units: nanoseconds, block accesses, granules; arrays by size begin with the data cache
switched off. A step is an interval divided by `steps`; requests count in the step they arrive in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cachewright import _native

# L of the paper: the share by which a granule must shorten responses to be worth having.
LEAST_GAIN = 0.05


@dataclass(frozen=True)
class Reading:
    """How labels are read off responses; the defaults are the paper's likeliest reading."""

    from_off: bool = False
    """Whether the step from a cache that is switched off to one granule counts."""

    least_gain: float = LEAST_GAIN
    """A step that gains less than this share is not worth its granule."""

    gain_of: str = "before"
    """Share of what: the response `before` the step, the `largest` gain, the `whole` gain."""

    def points(self, responses: NDArray[np.float64]) -> NDArray[np.uint32]:
        """Return MBP and OAP [rows, 2] in granules of mean responses [rows, 0 to all granules]."""
        return _native.points(
            np.ascontiguousarray(responses),
            self.least_gain,
            self.gain_of,
            from_off=self.from_off,
        )


@dataclass(frozen=True)
class TenantSegments:
    """One tenant alone, step by step: S steps, G granules.

    `features` [S, 4] are requests of at most a page, share of writes, mean bytes and share of
    pages asked for once; `requests` [S] whole requests; `response_ns` [G+1, S] the sum of their
    responses; `accesses` [S] and `hits` [G+1, S] blocks; `reuse` [intervals, 10] how many writes
    came back at which distance.
    """

    name: str
    features: NDArray[np.float32]
    requests: NDArray[np.uint32]
    response_ns: NDArray[np.float64]
    hits: NDArray[np.uint32]
    accesses: NDArray[np.uint32]
    reuse: NDArray[np.uint32]

    def latency_ns(self) -> NDArray[np.float64]:
        """Mean response by interval and size [intervals, G+1]; 0 without requests."""
        intervals = len(self.reuse)
        sums = self.response_ns.reshape(len(self.response_ns), intervals, -1).sum(axis=2)
        requests = self.requests.reshape(intervals, -1).sum(axis=1)
        means: NDArray[np.float64] = (sums / np.maximum(requests, 1)).T
        return means

    def labels(self, reading: Reading | None = None) -> NDArray[np.float64]:
        """MBP and OAP of every interval as shares of the cache [intervals, 2]."""
        granules = len(self.response_ns) - 1
        return (reading or Reading()).points(self.latency_ns()) / granules


@dataclass(frozen=True)
class Segments:
    """What `segments` returns: every tenant of a stack, in its order."""

    interval_ns: int
    step_ns: int
    capacity_blocks: int
    tenants: list[TenantSegments]

    @staticmethod
    def of(found: Mapping[str, Any]) -> Segments:
        """From what the native call returns."""
        return Segments(
            interval_ns=found["interval_ns"],
            step_ns=found["step_ns"],
            capacity_blocks=found["capacity_blocks"],
            tenants=[TenantSegments(**tenant) for tenant in found["tenants"]],
        )
