"""A replay as windows: what a model reads, and the label of the interval after it.

For: cutting segments into windows with inputs and labels, earlier ones apart from later ones. Must
never know: models, devices. Units: steps, nanoseconds; labels are shares of the cache. A step
is an interval's `steps`-th part.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from cachewright._native import SpecError
from cachewright.stack import Settings, SpecLike
from cachewright.train.demand import Reading, Segments, TenantSegments

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

FEATURES = ("intensity", "write_ratio", "request_bytes", "unique_ratio")
"""The features of a step, in their order."""

PARTS = 12
"""Parts into which a window is pooled for models without a state."""

LEAST_WINDOWS = 4
"""Fewest windows of each part of a replay that are worth anything."""


def replayed(
    spec: SpecLike | Segments,
    settings: Settings | None,
    granules: int,
    steps: int,
    threads: int,
    progress: Progress | None,
) -> Segments:
    """Replay the tenants of a stack alone with 0, 1, ... granules of the cache.

    Segments that are there already are taken as they are. Errors: `SpecError` for segments of other
    granules or steps, a stack without device or with a closed loop; `TraceError`, `RunError`.
    """
    from cachewright import api

    if not isinstance(spec, Segments):
        return api.segments(
            spec,
            granules=granules,
            steps=steps,
            settings=settings,
            threads=threads,
            progress=progress,
        )
    for tenant in spec.tenants:
        found = len(tenant.response_ns) - 1
        if found != granules:
            raise SpecError(f"segments: found {found} granules, expected {granules}")
        if len(tenant.features) != steps * len(tenant.reuse):
            found = len(tenant.features) // max(len(tenant.reuse), 1)
            raise SpecError(f"segments: found {found} steps per interval, expected {steps}")
    return spec


def span(found: Segments) -> int:
    """Return the steps up to the last request of any tenant: an interval may go on after it."""
    import numpy as np

    busy = np.flatnonzero(sum(tenant.requests.astype(np.int64) for tenant in found.tenants))
    return int(busy[-1]) + 1 if len(busy) else 0


@dataclass(frozen=True)
class Split:
    """Where the labelled intervals of windows begin, in steps; no window spans two parts."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    """The end of the part that trains: says when to stop."""

    test: NDArray[np.int64]
    """What was never seen."""

    learned_steps: int
    """Steps of the part that trains, without its end."""


@dataclass(frozen=True)
class Cutting:
    """How a replay becomes windows."""

    steps: int
    """Steps of an interval."""

    window: int
    """Steps a model reads."""

    stride: int
    """Steps from window to window."""

    share: float
    """Part of the replay's span that trains."""

    validation: float = 0.2
    """Part of that, at its end, that says when to stop."""

    def borders(self, total_steps: int, every: int) -> list[int]:
        """Return the intervals at whose beginning models are updated: `every` so many of them.

        The first is so many after the part that trains, each one before the end.
        """
        first = -(-int(total_steps * self.share) // self.steps)
        return list(range(first + every, -(-total_steps // self.steps), every)) if every else []

    def split(self, total_steps: int, until: int | None = None) -> Split:
        """Return the windows of each part. Errors: `SpecError` when a part has too few.

        `until` ends the part that trains there instead of after `share`.
        """
        import numpy as np

        end = int(total_steps * self.share) if until is None else until
        middle = int(end * (1 - self.validation))

        def starts(first: int, last: int) -> NDArray[np.int64]:
            return np.arange(first + self.window, last - self.steps + 1, self.stride)

        split = Split(starts(0, middle), starts(middle, end), starts(end, total_steps), middle)
        for what, found in (
            ("training", split.train),
            ("validation", split.validation),
            ("test", split.test),
        ):
            if len(found) < LEAST_WINDOWS and (until is None or what != "test"):
                raise SpecError(
                    f"found {len(found)} windows for {what} in {total_steps / self.steps:.1f} "
                    f"intervals, expected at least {LEAST_WINDOWS}; a longer replay, a shorter "
                    "interval or another share gives more"
                )
        return split


def latencies(tenant: TenantSegments, starts: NDArray[np.int64], steps: int) -> NDArray[np.float64]:
    """Return mean responses in ns [window, granules] of the `steps` from each start; 0 of none."""
    import numpy as np

    def sums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
        return np.asarray((total[:, starts + steps] - total[:, starts]).T)

    requests = sums(tenant.requests[None, :].astype(np.float64))
    means = sums(tenant.response_ns) / np.maximum(requests, 1)
    return np.where(requests > 0, means, 0.0)


def labels(
    tenant: TenantSegments,
    starts: NDArray[np.int64],
    steps: int,
    granules: int,
    reading: Reading,
) -> NDArray[np.float32]:
    """Return MBP and OAP [window, 2] of `steps` steps from each start, as shares of the cache."""
    import numpy as np

    points = reading.points(latencies(tenant, starts, steps))
    return np.asarray(points / granules, dtype=np.float32)


def inputs(
    features: NDArray[np.float32], starts: NDArray[np.int64], window: int
) -> NDArray[np.float32]:
    """Return the `window` steps before each start [window, step, feature]."""
    import numpy as np

    places = starts[:, None] + np.arange(-window, 0)[None, :]
    return np.ascontiguousarray(features[places], dtype=np.float32)


def pooled(windows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the means of each feature over 12 parts of each window, [window, part x feature].

    Part `p` of `n` steps is those from `p n / 12` up to `(p + 1) n / 12`, both rounded down.
    """
    import numpy as np

    count = windows.shape[1]
    if count < PARTS:
        raise SpecError(f"`window`: found {count} steps, expected at least {PARTS} to be pooled")
    ends = [part * count // PARTS for part in range(PARTS + 1)]
    parts = [
        windows[:, first:last].mean(axis=1, dtype=np.float64) for first, last in pairwise(ends)
    ]
    return np.concatenate(parts, axis=1).astype(np.float32)


def pooled_names() -> list[str]:
    """Return the names of pooled inputs, the features of the earliest part first."""
    return [f"{feature}.{part}" for part in range(PARTS) for feature in FEATURES]
