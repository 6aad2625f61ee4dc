"""What is left of a host's flash after all needs, given to the volumes that gain most by it.

For: quotas of volumes beyond their needs. Must never know: packings. Each block goes where the
upper hull of hits by cache size rises most (as in Wang et al., OC-Cache, section III-A). Units:
blocks, hits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cachewright.fleet.placement.demand import Demand
    from cachewright.fleet.placement.problem import Floats, Integers


def quotas(demands: Sequence[Demand], total_blocks: int) -> list[int]:
    """Return each volume's blocks: what it needs, and its part of the rest of `total_blocks`.

    Blocks that no volume gains by are left over.
    """
    found = [demand.most for demand in demands]
    left = total_blocks - sum(found)
    steps = []
    for index, demand in enumerate(demands):
        sizes, hits = _hull(demand.curve.sizes, demand.curve.hits.sum(axis=0), demand.most)
        for low, high, rise in zip(sizes[:-1], sizes[1:], np.diff(hits), strict=True):
            if rise > 0:
                steps.append((-float(rise) / float(high - low), index, int(high - low)))
    for _, index, blocks in sorted(steps):
        if left <= 0:
            break
        given = min(blocks, left)
        found[index] += given
        left -= given
    return found


def _hull(sizes: Integers, hits: Floats, start: int) -> tuple[Integers, Floats]:
    """Return the upper hull of a curve from `start` on."""
    beyond = sizes > start
    xs = np.concatenate([[start], sizes[beyond]])
    ys = np.concatenate([[np.interp(start, sizes, hits)], hits[beyond]])
    kept: list[int] = []
    for point in range(len(xs)):
        while len(kept) > 1:
            first, last = kept[-2], kept[-1]
            straight = (ys[point] - ys[first]) * (xs[last] - xs[first])
            if (ys[last] - ys[first]) * (xs[point] - xs[first]) > straight:
                break
            kept.pop()
        kept.append(point)
    return xs[kept], ys[kept]
