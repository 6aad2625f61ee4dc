"""One volume of a study: its character, hit ratios by policy and size, and write amplification.

For: workers. Must never know: other volumes, engines. Hit ratios come from miniature simulations on
spatially hashed samples (Waldspurger et al., "Cache Modeling and Optimization using Miniature
Simulations", ATC'17). Policies whose sampled hit ratio is within `close` of the best, or whose band
reaches it, are simulated exactly at that size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachewright import _native, api, characterized
from cachewright.answers import CurvesAnswer
from cachewright.documents import dump
from cachewright.fleet.datasets.reduce import begun, sampled
from cachewright.fleet.datasets.volumes import trace_of
from cachewright.fleet.over import character_row
from cachewright.traces import Trace

THREADS = 1
MOSTLY = 0.8
"""Share of reads, or of writes, from which a volume is mostly that."""

Hits = dict[str, dict[str, Any]]


def volume(
    volume: dict[str, Any],
    requests: int,
    share: float,
    reading: dict[str, Any],
    policies: list[str],
    sizes: list[str],
    rate: float,
    close: float,
    block: str,
    drive: dict[str, Any] | None,
) -> dict[str, Any]:
    """Return what a study says of one volume: `facts`, `sizes`, `drive`.

    Of a volume with a `share` below 1 that share of blocks is replayed. Of `requests` the first
    `reduce.HEAD_REQUESTS` are characterized.
    """
    with trace_of(volume["paths"], volume["volume"], reading) as whole:
        with begun(whole, requests) as head:
            facts = character_row(characterized.characterize(head))
        facts["share"] = share
        facts["class"] = facts["kind"] or class_of(facts)
        with sampled(whole, share) as trace:
            # A smaller sample of a sample is as large as one of the whole.
            curves = _curves(
                trace, policies, sizes, block, method="mini", rate=min(1.0, rate / share)
            )
            found = _by_size(curves, policies, sizes)
            near = [_near(hits, close) for hits in found]
            _settle(trace, found, near, policies, sizes, block)
            if share < 1:
                _mark_sampled(found)
            facts["reuse"] = _reuse(curves)
            sizes_found = zip(sizes, found, strict=True)
            return {
                "facts": facts,
                "sizes": [{"size": size, "policies": hits} for size, hits in sizes_found],
                "drive": None if drive is None else _drive(trace, drive),
            }


def class_of(facts: Mapping[str, Any]) -> str:
    """Return a volume's class by its mix of requests and how it moves over its blocks.

    >>> class_of({"read_share": 0.9, "sequential": 0.7, "strided": 0.0, "overlapped": 0.0})
    'reads, sequential'
    """
    share = facts["read_share"]
    mix = "reads" if share >= MOSTLY else "writes" if share <= 1 - MOSTLY else "mixed"
    ordered = facts["sequential"] + facts["strided"] + facts["overlapped"]
    return f"{mix}, {'sequential' if ordered >= 0.5 else 'random'}"


def _curves(
    trace: Trace, policies: Sequence[str], sizes: Sequence[str], block: str, **how: Any
) -> CurvesAnswer:
    # A sample whose rate would be all is exact.
    if how.get("rate") == 1:
        how = {"method": "exact"}
    return api.mrc(trace, policies, sizes=sizes, block=block, threads=THREADS, **how).answer


def _by_size(answer: CurvesAnswer, policies: Sequence[str], sizes: Sequence[str]) -> list[Hits]:
    """Return for each size the hit ratio of each policy with its band.

    Sizes that are as many blocks share a point.
    """
    blocks = _blocks(answer, sizes)
    curves = {curve.policy: {point[0]: point for point in curve.points} for curve in answer.curves}
    found: list[Hits] = []
    for size in blocks:
        hits: Hits = {}
        for policy in policies:
            point = curves[policy].get(size)
            if point is None:
                continue
            _, miss, low, high = point
            hits[policy] = {
                "blocks": size,
                "hit_ratio": 1 - miss,
                "low": None if high is None else 1 - high,
                "high": None if low is None else 1 - low,
                "exact": low is None,
            }
        found.append(hits)
    return found


def _blocks(answer: CurvesAnswer, sizes: Sequence[str]) -> list[int]:
    """Return the sizes in blocks, in the order in which they were asked for."""
    known = sorted(answer.sizes_blocks)
    distinct = max(curve.distinct for curve in answer.curves)
    wanted = [_in_blocks(size, distinct, answer.block_bytes) for size in sizes]
    return [min(known, key=lambda one: (abs(one - size), one)) for size in wanted]


def _in_blocks(size: str, distinct: int, block_bytes: int) -> float:
    if size.endswith("%wss"):
        return float(size.removesuffix("%wss")) / 100 * distinct
    return _native.parse_bytes(size) / block_bytes


def _near(hits: Hits, close: float) -> list[str]:
    """Return the policies that may be the best; none when that is known."""
    best = max((one["hit_ratio"] for one in hits.values()), default=0.0)
    near = [
        policy
        for policy, one in hits.items()
        if max(one["hit_ratio"] + close, one["high"] or 0.0) >= best
    ]
    return near if len(near) > 1 and any(not hits[policy]["exact"] for policy in near) else []


def _settle(
    trace: Trace,
    found: list[Hits],
    near: Sequence[Sequence[str]],
    policies: Sequence[str],
    sizes: Sequence[str],
    block: str,
) -> None:
    """Simulate exactly where policies are close; replaces what was sampled there."""
    wanted = [policy for policy in policies if any(policy in names for names in near)]
    at = [index for index, names in enumerate(near) if names]
    if not wanted:
        return
    some = [sizes[index] for index in at]
    exact = _by_size(_curves(trace, wanted, some, block, method="exact"), wanted, some)
    for index, hits in zip(at, exact, strict=True):
        found[index].update(hits)


def _mark_sampled(found: list[Hits]) -> None:
    """Mark what is exact of a sample as sampled."""
    for hits in found:
        for hit in hits.values():
            hit["exact"] = False


def _reuse(answer: CurvesAnswer) -> float:
    """Return accesses per distinct block."""
    curve = answer.curves[0]
    return curve.accesses / curve.distinct if curve.distinct else 0.0


def _drive(trace: Trace, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the write amplification by separation, or why there is none.

    A volume that writes too little for a drive is an answer, not a failure.
    """
    try:
        found = api.wa(trace, threads=THREADS, **options).answer
    except _native.SpecError as error:
        return {"amplification": {}, "why": str(error).removeprefix("stack: ")}
    return {
        "amplification": {case.separation: case.write_amplification for case in found.cases},
        "why": None,
        "notes": dump(found.warnings),
    }
