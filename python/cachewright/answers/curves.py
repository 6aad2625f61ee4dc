"""Records of `curves`, generated: see `cachewright.answers`."""

from __future__ import annotations

from typing import Any

from cachewright.answers.facts import TenantFacts
from cachewright.record import Record, absent


class CurvesAnswer(Record):
    """The answer of `mrc`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Name of the stack.
    name: str
    # The stack file with every default filled in.
    spec: Any
    # Bytes of a block.
    block_bytes: int
    # The method that was asked for.
    method: str
    # The sizes of all curves, ascending.
    sizes_blocks: tuple[int, ...]
    # The trace of each tenant, in the order of the stack file.
    tenants: tuple[TenantFacts, ...]
    # The curves by policy, tenant and window.
    curves: tuple[MissRatioCurve, ...]
    # What a reader must know of the curves, one sentence for many of them.
    notes: tuple[str, ...]
    # Curves compared with exact simulation; empty unless asked for.
    verify: tuple[CurveCheck, ...]
    # Response times by cache size; absent unless asked for.
    latency: tuple[LatencyCurve, ...] | None = absent()


class MissRatioCurve(Record):
    """One miss-ratio curve."""

    # Name of the tenant; `all` for all together.
    tenant: str
    # Name of the policy.
    policy: str
    # Number of the window of time; null for a curve of the whole trace.
    window: int | None = None
    # How the curve was measured.
    method: str
    # Accesses to blocks.
    accesses: int
    # Distinct blocks.
    distinct: int
    # Size from which a sample is large enough.
    trusted_from_blocks: int
    # Points: size in blocks, miss ratio, low and high end of its band (null where exact).
    points: tuple[tuple[int, float, float | None, float | None], ...]


class CurveCheck(Record):
    """A point of a curve compared with exact simulation."""

    # Name of the tenant; `all` for all together.
    tenant: str
    # Name of the policy.
    policy: str
    # Size of the cache.
    size_blocks: int
    # Miss ratio of the curve, 0 to 1.
    curve: float
    # Miss ratio of the simulation, 0 to 1.
    exact: float
    # `curve` minus `exact`.
    error: float


class LatencyCurve(Record):
    """Response times of one tenant alone by cache size."""

    # Name of the tenant.
    tenant: str
    # Name of the policy.
    policy: str
    # How volumes lie on the backing devices.
    layout: str
    # The points by size, from a cache that is switched off.
    points: tuple[LatencyPoint, ...]


class LatencyPoint(Record):
    """Response times at one cache size."""

    # Requests answered.
    requests: int
    # Mean response time.
    mean_ns: float
    # Response time that half of the requests do not exceed.
    p50_ns: int
    # Response time that 90 % of the requests do not exceed.
    p90_ns: int
    # Response time that 99 % of the requests do not exceed.
    p99_ns: int
    # Response time that 99.9 % of the requests do not exceed.
    p999_ns: int
    # Longest response time.
    max_ns: int
    # Reads answered.
    reads: int
    # Mean response time of reads.
    read_mean_ns: float
    # Response time that 99 % of the reads do not exceed.
    read_p99_ns: int
    # Writes answered.
    writes: int
    # Mean response time of writes.
    write_mean_ns: float
    # Response time that 99 % of the writes do not exceed.
    write_p99_ns: int
    # Requests answered per second, from the first arrival to the last answer.
    throughput_per_s: float
    # Bytes read and written per second, over the same time.
    bytes_per_s: float
    # When the last request was answered.
    finished_ns: int
    # Mean time per request by part, in nanoseconds; the parts that are not zero.
    breakdown_ns: dict[str, float]
    # Size of the cache; 0 for a cache that is switched off.
    size_blocks: int
    # Hits per access, 0 to 1.
    hit_ratio: float
