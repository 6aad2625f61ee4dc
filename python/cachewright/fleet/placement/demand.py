"""What each volume needs of a host: flash by window of time, writes to flash, requests.

For: rows of a `Problem`, read off a volume's curve. Must never know: hosts, or how volumes are
packed. With one window a volume needs the least cache whose hit ratio over the whole trace is its
goal, for ever. With more, it needs in each window only what its hits in that window need, and what
the next window begins with. Units: blocks, requests per second, bytes per second.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cachewright import api, traces
from cachewright._native import RunError
from cachewright.fleet.placement.fleet_file import DAY_NS, Fleet, Volume
from cachewright.traces import TraceOptions

if TYPE_CHECKING:
    from cachewright.answers import CurvesAnswer
    from cachewright.fleet.placement.problem import Floats, Integers
    from cachewright.types import Progress

POINTS = 1_000
# Share of its hits that a volume may lose where it gives up what a window does not need.
LOST = 0.002
STAGE = "measuring curves of volumes"


@dataclass(frozen=True)
class Curve:
    """A volume's hits by cache size and window; sizes in blocks, rising from 0."""

    sizes: Integers
    hits: Floats
    accesses: int
    write_accesses: int
    span_ns: int

    @property
    def best(self) -> float:
        """Return the hit ratio of a cache that holds everything."""
        return self.ratio(int(self.sizes[-1]))

    def ratio(self, blocks: int) -> float:
        """Return the hit ratio over the whole trace with so many blocks, interpolated."""
        if self.accesses == 0:
            return 0.0
        return float(np.interp(blocks, self.sizes, self.hits.sum(axis=0))) / self.accesses

    def smallest(self, hits: float, window: int | None = None) -> int:
        """Return the least of the sizes with so many hits, in one window or in all."""
        found = self.hits.sum(axis=0) if window is None else self.hits[window]
        return int(self.sizes[min(int(np.searchsorted(found, hits)), len(self.sizes) - 1)])

    def written(self, blocks: int) -> float:
        """Return the blocks that a cache of so many writes to flash in a day.

        Every miss is admitted, and writes hit as often as reads do: curves tell no two kinds apart.
        """
        ratio, span = self.ratio(blocks), max(self.span_ns, 1)
        written = self.accesses * (1 - ratio) + self.write_accesses * ratio
        return written * DAY_NS / span


@dataclass(frozen=True)
class Demand:
    """What a volume needs, and what it gets for it.

    `blocks` has a value per window. `reached` is whether some cache meets the goal.
    """

    volume: Volume
    curve: Curve
    blocks: Integers
    reached: bool
    iops: int = 0
    bandwidth: int = 0

    @property
    def most(self) -> int:
        """Return the blocks of its fullest window."""
        return int(self.blocks.max(initial=0))


def measure(fleet: Fleet, threads: int, progress: Progress | None = None) -> list[Demand]:
    """Return what each volume needs, in the order of the file; each is one task of a pool.

    Errors: `SpecError`, `TraceError`, naming the volume's trace; `RunError` when cancelled.
    """
    done = 0

    def one(volume: Volume) -> tuple[Curve, tuple[Floats, Floats] | None]:
        curve = _curve(fleet, volume)
        asked = fleet.hosts.max_iops is not None or fleet.hosts.max_bandwidth is not None
        return curve, rates(volume, fleet.hosts.peaks) if asked else None

    found = []
    with ThreadPoolExecutor(threads) as pool:
        try:
            for answer in pool.map(one, fleet.volumes):
                found.append(answer)
                done += 1
                if progress is not None and progress(STAGE, done, len(fleet.volumes)) is False:
                    raise RunError("cancelled by the progress call-back")
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    span = max((curve.span_ns for curve, _ in found), default=0)
    windows = fleet.hosts.peaks
    demands = []
    for volume, (curve, rate) in zip(fleet.volumes, found, strict=True):
        least = -(-volume.floor_bytes // fleet.block)
        blocks, reached = needed(curve, volume.goal, windows, span)
        iops, bandwidth = (0, 0) if rate is None else (_ceil(rate[0]), _ceil(rate[1]))
        demands.append(
            Demand(volume, curve, np.maximum(blocks, max(least, 1)), reached, iops, bandwidth)
        )
    return demands


def _ceil(rates: Floats) -> int:
    return int(np.ceil(rates.max(initial=0.0)))


def _curve(fleet: Fleet, volume: Volume) -> Curve:
    options: dict[str, Any] = {"points": POINTS, **fleet.curves}
    windows = fleet.hosts.peaks if fleet.hosts.peaks > 1 else 0
    found = api.mrc(fleet.stack(volume), threads=1, windows=windows, **options)
    return of_answer(found.answer)


def of_answer(answer: CurvesAnswer) -> Curve:
    """Return the curve of an answer of `mrc` about one tenant and one policy."""
    sizes = np.array([0, *answer.sizes_blocks], dtype=np.int64)
    rows = []
    for curve in answer.curves:
        points = np.array([0.0, *(1 - point[1] for point in curve.points)]) * curve.accesses
        known = np.array([0, *(point[0] for point in curve.points)])
        rows.append(np.maximum.accumulate(np.interp(sizes, known, points)))
    tenant = answer.tenants[0]
    writes = -(-tenant.write_bytes // answer.block_bytes)
    return Curve(
        sizes,
        np.array(rows),
        sum(curve.accesses for curve in answer.curves),
        writes,
        tenant.span_ns or 0,
    )


def needed(curve: Curve, goal: float | None, windows: int, span_ns: int) -> tuple[Integers, bool]:
    """Return the blocks needed in each window of `span_ns`, and whether the goal can be met.

    A goal out of reach needs what the best hit ratio needs.
    """
    if goal is None or curve.accesses == 0:
        return np.zeros(windows, dtype=np.int64), goal is None or goal <= 0
    total = float(curve.hits.sum(axis=0)[-1])
    reached = total >= goal * curve.accesses
    if windows == 1:
        return np.array([curve.smallest(min(goal * curve.accesses, total))]), reached
    size = curve.smallest(min(goal * curve.accesses / (1 - LOST), total))
    place = int(np.searchsorted(curve.sizes, size))
    own = [
        curve.smallest((1 - LOST) * float(hits[place]), window)
        for window, hits in enumerate(curve.hits)
    ]
    warmed = np.maximum(own, [*own[1:], 0])
    return _aligned(warmed, curve.span_ns, windows, span_ns), reached


def _aligned(own: Integers, span_ns: int, windows: int, all_ns: int) -> Integers:
    """Return needs by window of the fleet's time: of all own windows that it overlaps."""
    width, part = max(all_ns, 1) / windows, max(span_ns, 1) / len(own)
    found = np.zeros(windows, dtype=np.int64)
    for window in range(windows):
        first = int(window * width / part)
        last = int(np.ceil((window + 1) * width / part))
        found[window] = own[first:last].max(initial=0)
    return found


def rates(volume: Volume, windows: int) -> tuple[Floats, Floats]:
    """Return requests and bytes per second by window, from one pass over the trace.

    With one window the means of whole seconds are taken, so that a burst counts.
    """
    table = volume.table
    how = TraceOptions(table.get("format"), str(table.get("on_bad_record", "fail")))
    reader = traces.open_trace(table["trace"], how)
    second = int(1e9 / float(table.get("time_scale", 1.0)))
    requests: dict[int, int] = {}
    length: dict[int, int] = {}
    wanted, origin = table.get("volume"), None
    while len((columns := reader.read(traces.BATCH))[0]) > 0:
        origin = int(columns[0][0]) if origin is None else origin
        keep = np.ones(len(columns[0]), dtype=np.bool_)
        if wanted is not None:
            names = reader.volumes()
            place = names.index(str(wanted)) if str(wanted) in names else -1
            keep = columns[4].astype(np.int64) == place
        at = (columns[0][keep].astype(np.int64) - origin) // second
        for when, count, total in _summed(at, columns[2][keep]):
            requests[when] = requests.get(when, 0) + count
            length[when] = length.get(when, 0) + total
    return _by_window(requests, windows), _by_window(length, windows)


def _summed(at: Integers, lengths: Any) -> Sequence[tuple[int, int, int]]:
    seconds, inverse = np.unique(at, return_inverse=True)
    counts = np.bincount(inverse, minlength=len(seconds))
    totals = np.bincount(inverse, weights=lengths, minlength=len(seconds))
    return [
        (int(when), int(count), int(total))
        for when, count, total in zip(seconds, counts, totals, strict=True)
    ]


def _by_window(by_second: dict[int, int], windows: int) -> Floats:
    if not by_second:
        return np.zeros(windows)
    last = max(by_second) + 1
    if windows == 1:
        return np.array([max(by_second.values())], dtype=np.float64)
    found = np.zeros(windows)
    for when, value in by_second.items():
        found[min(when * windows // last, windows - 1)] += value
    return found / (last / windows)
