"""Miss-ratio curves of a live server's tenants: what one cache, or one that they share, gives.

For: `cachewright advise` without a recording. Must never know: what is advised, how curves are
sampled. Units: bytes, ratios in 0..1. A curve is a line between two of its points, and flat beyond
the last one.

A shared LRU cache holds what was used within one window of time, the same for all tenants. Each
tenant's part grows with the window at the rate of its misses, so that curves alone say who holds
how much (Xiang et al., HOTL, ASPLOS 2013, sections 2 and 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cachewright.answers import CurvePoint, SampledCurve

# Halvings of an interval: as many as a float has digits.
STEPS = 64


@dataclass(frozen=True)
class Needed:
    """The least size that keeps a hit ratio, and that at the high end of the sample's misses."""

    size_bytes: int
    safe_bytes: int | None


def miss_ratio(curve: SampledCurve, size_bytes: float) -> float:
    """Return the misses per access in a cache of a size."""
    points = curve.points
    for left, right in pairwise(points):
        if size_bytes < right.bytes:
            part = (size_bytes - left.bytes) / (right.bytes - left.bytes)
            return left.miss_ratio + part * (right.miss_ratio - left.miss_ratio)
    return points[-1].miss_ratio


def best_hit_ratio(curve: SampledCurve) -> float:
    """Return the hit ratio of the largest cache."""
    return 1.0 - curve.points[-1].miss_ratio


def needed(curve: SampledCurve, hit_ratio: float, block_bytes: int) -> Needed | None:
    """Return the least size, in whole blocks, that keeps a hit ratio; None if none does.

    Below `trusted_bytes` the sample is too small to tell sizes apart: it is the least answer.
    """
    size = _least_size(curve.points, 1.0 - hit_ratio, lambda point: point.miss_ratio)
    if size is None:
        return None
    safe = _least_size(curve.points, 1.0 - hit_ratio, lambda point: point.high)

    def whole(found: float) -> int:
        blocks = math.ceil(max(found, curve.trusted_bytes) / block_bytes - 1e-9)
        return blocks * block_bytes

    return Needed(whole(size), None if safe is None else whole(safe))


def shared(curves: Sequence[SampledCurve], capacity_bytes: float) -> list[float]:
    """Return the bytes that each tenant holds of an LRU cache that all of them share."""
    last = [float(curve.points[-1].bytes) for curve in curves]
    if sum(last) <= capacity_bytes:
        return last
    low, high = 0.0, 1.0
    while sum(_held(curve, high) for curve in curves) < capacity_bytes:
        low, high = high, 2 * high
        if not math.isfinite(high):
            return last
    for _ in range(STEPS):
        middle = (low + high) / 2
        if sum(_held(curve, middle) for curve in curves) < capacity_bytes:
            low = middle
        else:
            high = middle
    return [_held(curve, high) for curve in curves]


def least(holds: Callable[[int], bool], max_blocks: int) -> int | None:
    """Return the least number of blocks for which something holds; None if none up to the last.

    What holds for one holds for all above it.
    """
    if not holds(max_blocks):
        return None
    low, high = 0, max_blocks
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _least_size(
    points: Sequence[CurvePoint], ratio: float, of: Callable[[CurvePoint], float]
) -> float | None:
    """Return the least size at which `of` the points falls to a ratio."""
    if of(points[0]) <= ratio:
        return float(points[0].bytes)
    for left, right in pairwise(points):
        if of(right) <= ratio:
            part = (of(left) - ratio) / (of(left) - of(right))
            return left.bytes + part * (right.bytes - left.bytes)
    return None


def _held(curve: SampledCurve, window: float) -> float:
    """Return the bytes that a tenant has used within a window.

    Curves count the same time, so that their accesses are rates in one unit. Between two points
    misses fall in a line, and the bytes approach the end by an exponential.
    """
    for left, right in pairwise(curve.points):
        length = right.bytes - left.bytes
        rate = curve.accesses * left.miss_ratio
        change = curve.accesses * (right.miss_ratio - left.miss_ratio)
        if rate <= 0.0:
            return float(left.bytes)
        whole = _window(rate, change, length)
        if window < whole:
            if change == 0.0:
                return left.bytes + rate * window
            return left.bytes + length * rate / change * math.expm1(change / length * window)
        window -= whole
    return float(curve.points[-1].bytes)


def _window(rate: float, change: float, length: float) -> float:
    """Return the window in which a rate of misses that changes in a line fills a length."""
    if change == 0.0:
        return length / rate
    end = rate + change
    return length / change * math.log(end / rate) if end > 0.0 else math.inf
