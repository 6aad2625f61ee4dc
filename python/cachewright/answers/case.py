"""Records of `case`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.answers.drive import CacheDrive
from cachewright.answers.timing import Throughput, Timing
from cachewright.record import Record, absent


class Case(Record):
    """What one combination of settings gave."""

    # Number of the case, from 0.
    case: int
    # The schemes of each stage and the varied keys, as text, by key of the stack file.
    settings: dict[str, str]
    # Capacity of the cache, in blocks.
    capacity_blocks: int
    # Bytes of a block.
    block_bytes: int
    # Counters of all tenants together.
    total: CaseTotal
    # Counters of each tenant, in the order of the stack file.
    tenants: tuple[CaseTenant, ...]
    # The flash drive under the cache; absent without `[flash]`.
    flash: CacheDrive | None = absent()
    # Throughput in windows of a closed loop without devices; absent unless asked for.
    throughput: Throughput | None = absent()
    # Times on devices; absent without `[device]`.
    timing: Timing | None = absent()


class CaseTotal(Record):
    """Counters of all tenants of a case together."""

    # Accesses to blocks, reads and writes.
    accesses: int
    # Accesses that found their block.
    hits: int
    # Accesses that did not.
    misses: int
    # Hits per access, 0 to 1.
    hit_ratio: float
    # Accesses that read.
    read_accesses: int
    # Reads that found their block.
    read_hits: int
    # Hits per read, 0 to 1.
    read_hit_ratio: float
    # Accesses that write.
    write_accesses: int
    # Writes that found their block.
    write_hits: int
    # Bytes that accesses read and wrote; absent where they are not counted, as in the data cache
    # of a drive.
    accessed_bytes: int | None = absent()
    # Bytes of accesses that found their block; absent like `accessed_bytes`.
    hit_bytes: int | None = absent()
    # Hit bytes per byte read or written, 0 to 1; absent like `accessed_bytes`.
    byte_hit_ratio: float | None = absent()
    # Hit bytes of reads per byte read, 0 to 1; absent like `accessed_bytes`.
    read_byte_hit_ratio: float | None = absent()
    # Requests; one touches one block or several.
    requests: int
    # Requests that found all their blocks.
    request_hits: int
    # Requests that went past the cache because their sequential stream had become too long;
    # absent without `cache.sequential_cutoff`.
    cut_off_requests: int | None = absent()
    # Bytes of these requests; absent like them.
    cut_off_bytes: int | None = absent()
    # Blocks admitted after a miss.
    admissions: int
    # Misses whose block was not admitted.
    bypasses: int
    # Blocks evicted.
    evictions: int
    # Dirty blocks written back.
    writebacks: int
    # Blocks dropped because they were trimmed or written around the cache.
    invalidations: int
    # Blocks written to the cache device.
    cache_writes: int
    # Blocks read from the backing device.
    backing_reads: int
    # Blocks written to the backing device.
    backing_writes: int
    # Dirty blocks at the end.
    dirty_blocks: int
    # Tenants with a goal; absent without goals.
    goals: int | None = absent()
    # Goals met over the whole run; absent without goals.
    goals_met: int | None = absent()
    # Divisions of the cache that count; absent where the cache is not divided.
    divisions: int | None = absent()
    # Mean share of the cache that a division moves, 0 to 1; absent like `divisions`.
    moved_mean: float | None = absent()
    # Largest share of the cache that a division moves, 0 to 1; absent like `divisions`.
    moved_most: float | None = absent()
    # Changes of direction of all quotas together; absent like `divisions`.
    turns: int | None = absent()
    # Time from the tenant's start to the last answer; absent in an open loop.
    run_time_ns: int | None = absent()
    # Mean response time.
    mean_response_ns: float | None = absent()
    # Response time that 99 % of the requests do not exceed.
    p99_response_ns: int | None = absent()
    # Requests answered per second.
    throughput_per_s: float | None = absent()
    # When the last request was answered.
    finished_ns: int | None = absent()


class CaseTenant(Record):
    """Counters of one tenant of a case."""

    # Name of the tenant.
    name: str
    # Accesses to blocks, reads and writes.
    accesses: int
    # Accesses that found their block.
    hits: int
    # Accesses that did not.
    misses: int
    # Hits per access, 0 to 1.
    hit_ratio: float
    # Accesses that read.
    read_accesses: int
    # Reads that found their block.
    read_hits: int
    # Hits per read, 0 to 1.
    read_hit_ratio: float
    # Accesses that write.
    write_accesses: int
    # Writes that found their block.
    write_hits: int
    # Bytes that accesses read and wrote; absent where they are not counted, as in the data cache
    # of a drive.
    accessed_bytes: int | None = absent()
    # Bytes of accesses that found their block; absent like `accessed_bytes`.
    hit_bytes: int | None = absent()
    # Hit bytes per byte read or written, 0 to 1; absent like `accessed_bytes`.
    byte_hit_ratio: float | None = absent()
    # Hit bytes of reads per byte read, 0 to 1; absent like `accessed_bytes`.
    read_byte_hit_ratio: float | None = absent()
    # Requests; one touches one block or several.
    requests: int
    # Requests that found all their blocks.
    request_hits: int
    # Requests that went past the cache because their sequential stream had become too long;
    # absent without `cache.sequential_cutoff`.
    cut_off_requests: int | None = absent()
    # Bytes of these requests; absent like them.
    cut_off_bytes: int | None = absent()
    # Blocks admitted after a miss.
    admissions: int
    # Misses whose block was not admitted.
    bypasses: int
    # Blocks evicted.
    evictions: int
    # Dirty blocks written back.
    writebacks: int
    # Blocks dropped because they were trimmed or written around the cache.
    invalidations: int
    # Blocks written to the cache device.
    cache_writes: int
    # Blocks read from the backing device.
    backing_reads: int
    # Blocks written to the backing device.
    backing_writes: int
    # The goal as a hit ratio, 0 to 1; absent without a goal.
    goal_hit_ratio: float | None = absent()
    # The mean response promised, ns; absent without such a goal.
    goal_response_ns: int | None = absent()
    # The 99th percentile of responses promised, ns; absent without such a goal.
    goal_p99_ns: int | None = absent()
    # Whether the goal is met over the whole run; absent without a goal.
    goal_met: bool | None = absent()
    # Blocks with which the goal would have been kept, by the curves of the run; absent where no
    # size keeps it, and where the partitioner does not know.
    goal_blocks: int | None = absent()
    # Blocks that the tenant may hold at the end.
    quota_blocks: int
    # Blocks that the tenant holds at the end.
    occupancy_blocks: int
    # Shares of windows by state; absent for a tenant without a quota of its own.
    states: QuotaStates | None = absent()
    # Number of the pool that the tenant shares; absent where no pool is shared.
    pool: int | None = absent()
    # Blocks that the tenant makes use of by the last division; absent without such a division.
    required_blocks: int | None = absent()
    # Miss ratio with `required_blocks`, 0 to 1; absent like them.
    required_miss_ratio: float | None = absent()
    # Changes of direction of the tenant's quota; absent where the cache is not divided.
    turns: int | None = absent()
    # Time from the tenant's start to the last answer; absent in an open loop.
    run_time_ns: int | None = absent()
    # Mean response time.
    mean_response_ns: float | None = absent()
    # Response time that 99 % of the requests do not exceed.
    p99_response_ns: int | None = absent()
    # Requests answered per second.
    throughput_per_s: float | None = absent()
    # When the last request was answered.
    finished_ns: int | None = absent()


class QuotaStates(Record):
    """Shares of windows by how the blocks held compare with the quota; together 1."""

    # Share of windows that end with more blocks than the quota.
    supply: float
    # Share of windows that end with fewer blocks.
    demand: float
    # Share of windows that end with as many blocks.
    stable: float
