"""Segments kept in files, and cut otherwise than they were measured.

For: studies that measure a tenant alone once and ask it in other granules, other intervals, other
company. Must never know: any study. Units: as `cachewright.train.demand`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cachewright import targets
from cachewright.train.demand import Segments, TenantSegments

if TYPE_CHECKING:
    from numpy.typing import NDArray

ARRAYS = tuple(one.name for one in fields(TenantSegments) if one.name != "name")


def write(segments: Segments, path: Path) -> None:
    """Write the segments of one tenant."""
    tenant = segments.tenants[0]
    numbers = [segments.interval_ns, segments.step_ns, segments.capacity_blocks]
    arrays: dict[str, Any] = {key: getattr(tenant, key) for key in ARRAYS}
    with targets.whole(path) as part, part.open("wb") as file:
        np.savez_compressed(file, numbers=np.array(numbers, dtype=np.int64), **arrays)


def read(path: Path, name: str) -> Segments:
    """Return what `write` wrote."""
    with np.load(path) as found:
        tenant = TenantSegments(name, **{key: found[key] for key in ARRAYS})
        interval_ns, step_ns, capacity_blocks = (int(number) for number in found["numbers"])
    return Segments(interval_ns, step_ns, capacity_blocks, [tenant])


def coarser(segments: Segments, granules: int) -> Segments:
    """Return what so many granules, a divisor of those measured, would have measured."""

    def cut(tenant: TenantSegments) -> TenantSegments:
        step = (len(tenant.response_ns) - 1) // granules
        return replace(tenant, response_ns=tenant.response_ns[::step], hits=tenant.hits[::step])

    return replace(segments, tenants=[cut(tenant) for tenant in segments.tenants])


def regrouped(segments: Segments, steps: int) -> Segments:
    """Return intervals of so many of the same steps, a last one that is not whole left out.

    Distances of writes are then not known (0) unless the intervals stay as they are.
    """
    first = segments.tenants[0]
    if steps * len(first.reuse) == len(first.features):
        return segments

    def cut(tenant: TenantSegments) -> TenantSegments:
        count = len(tenant.features) // steps
        whole = slice(count * steps)
        return replace(
            tenant,
            features=tenant.features[whole],
            requests=tenant.requests[whole],
            accesses=tenant.accesses[whole],
            response_ns=np.ascontiguousarray(tenant.response_ns[:, whole]),
            hits=np.ascontiguousarray(tenant.hits[:, whole]),
            reuse=np.zeros((count, tenant.reuse.shape[1]), dtype=np.uint32),
        )

    tenants = [cut(tenant) for tenant in segments.tenants]
    return replace(segments, interval_ns=segments.step_ns * steps, tenants=tenants)


def together(names: Sequence[str], each: Sequence[Segments]) -> Segments:
    """Return tenants measured apart as one replay of one step per interval; features are left out.

    A tenant that ended sooner sends nothing in the intervals that others still have.
    """
    intervals = max(len(one.tenants[0].reuse) for one in each)

    def padded(rows: NDArray[Any]) -> NDArray[Any]:
        missing = intervals - rows.shape[-1]
        return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, missing)])

    def whole(name: str, tenant: TenantSegments) -> TenantSegments:
        count = len(tenant.reuse)

        def sums(rows: NDArray[Any]) -> NDArray[Any]:
            return padded(rows.reshape(*rows.shape[:-1], count, -1).sum(axis=-1, dtype=rows.dtype))

        return TenantSegments(
            name,
            features=np.zeros((intervals, tenant.features.shape[1]), dtype=np.float32),
            requests=sums(tenant.requests),
            response_ns=sums(tenant.response_ns),
            hits=sums(tenant.hits),
            accesses=sums(tenant.accesses),
            reuse=np.ascontiguousarray(padded(tenant.reuse.T).T),
        )

    tenants = [whole(name, one.tenants[0]) for name, one in zip(names, each, strict=True)]
    interval_ns = each[0].interval_ns
    return Segments(interval_ns, interval_ns, each[0].capacity_blocks, tenants)
