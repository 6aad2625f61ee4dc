"""Records of `status`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class LiveStatus(Record):
    """The status of a live server."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Path of the stack file.
    stack: str
    # The process of the server, to which SIGHUP says that the stack file has changed.
    process: int
    # How often a changed stack was looked at since the start.
    reloads: int
    # Why the last one was refused; null if it was taken over.
    refused_reload: str | None = None
    # Seconds since the start of the server.
    uptime_seconds: float
    # Seconds to which the recent counts belong.
    recent_seconds: float
    # The replacement policy.
    policy: str
    # The partitioner.
    partition: str
    # The write mode.
    write: str
    # What carries input and output out: `io_uring` or `threads`.
    engine: str
    # Bytes of a block.
    block_bytes: int
    # Bytes of the cache.
    capacity_bytes: int
    # Bytes that only the cache has.
    dirty_bytes: int
    # Clients that are connected.
    connections: int
    # Bytes of requests under way and of answers that are not sent.
    held_bytes: int
    # Bytes per second that work which no request waits for may move now; null without a bound.
    background_bytes_per_second: int | None = None
    # Bytes that such work has moved or written back.
    background_bytes: int
    # The log that holds the cache.
    log: LogStatus
    # Recordings of what is decided; null where the stack asks for none.
    recordings: RecordingStatus | None = None
    # The tenants, in the order of the stack file.
    tenants: tuple[TenantStatus, ...]


class LogStatus(Record):
    """The log of a live server."""

    # Why it takes nothing any more; null while it works.
    failed: str | None = None
    # Segments of all devices.
    segments: int
    # Segments that hold nothing.
    free_segments: int
    # Bytes that requests have written to it or filled.
    written_bytes: int
    # Bytes that cleaning has copied.
    moved_bytes: int
    # Bytes that cleaning has dropped instead.
    dropped_bytes: int
    # Segments that were cleaned.
    cleaned_segments: int
    # Bytes that went to the log for each that requests wrote or filled.
    write_amplification: float
    # Requests that were refused because the log had no space.
    refused_requests: int
    # Clean blocks whose content was damaged: read from the backing device instead.
    damaged_clean: int
    # Reads of dirty blocks whose content was damaged: they failed.
    damaged_dirty: int
    # Dirty blocks that could not be written back and stay in the log.
    stranded: int


class RecordingStatus(Record):
    """Recordings of a live server, since its start."""

    # The folder of all recordings.
    folder: str
    # The file that the recording under way becomes; null while none could begin.
    under_way: str | None = None
    # Recordings that were finished.
    files: int
    # Requests in them, with the flushes at which they begin and end.
    requests: int
    # Requests that are in none.
    dropped_requests: int
    # Old recordings that were removed.
    removed_files: int
    # Requests of the recording under way that are found after a kill.
    kept_requests: int
    # Unfinished recordings of servers that were killed, found up to what was kept of them.
    recovered_files: int
    # Unfinished recordings of which nothing was kept, which were removed.
    abandoned_files: int
    # Recordings that could not be written, and files that could not be removed.
    errors: int
    # The last of these errors; null without any.
    last_error: str | None = None


class TenantStatus(Record):
    """A tenant of a live server."""

    # The name of the tenant.
    name: str
    # The name of its volume for clients.
    export: str
    # The size of its volume.
    volume_bytes: int
    # How it is served: `cached`, `bypassed` (past a cache that has failed), `read-only` (the
    # same, reads only), `waiting` (what the cache has alone is written back first), `failed` (its
    # backing device fails; requests get errors), `reviving` (the same device is tried again),
    # `leaving` (removed; what the cache has alone is written back).
    state: str
    # Bytes that it may hold; null where tenants share the cache.
    quota_bytes: int | None = None
    # Bytes that it holds.
    cached_bytes: int
    # Bytes of them that its backing device does not have; null where tenants share a pool.
    dirty_bytes: int | None = None
    # The hit ratio that it is to reach, or that stands for its latency; null without a goal of
    # these kinds.
    goal_hit_ratio: float | None = None
    # Whether it met its goal of late, whatever the goal is about; null without a goal, and where
    # nothing was measured.
    goal_met: bool | None = None
    # Its goal, and what was measured; null without a goal.
    goal: GoalStatus | None = None
    # How often its clients had done all that `max_iops` or `max_bandwidth` allow at one time.
    caps_exhausted: int
    # Accesses to blocks since the start.
    blocks: BlockCounts
    # The same, recent.
    recent: BlockCounts
    # Blocks that left otherwise than to make space, by reason.
    losses: tuple[LossCount, ...]
    # Requests of clients by kind.
    requests: tuple[RequestStatus, ...]
    # Misses by cache size, of the last hour; null where no curves are sampled.
    curve: SampledCurve | None = None


class GoalStatus(Record):
    """The goal of a tenant, judged by the last `recent_seconds`."""

    # The key of the stack file that gives it: `goal_hit_ratio`, `goal_latency`, `goal_response`
    # or `goal_p99`.
    key: str
    # The unit of `promised` and `measured`: `ratio` or `us`.
    unit: str
    # The least hit ratio, or the longest time.
    promised: float
    # The same of late: the hit ratio; the mean time of an access, by the hit ratio and the times
    # of a hit and a miss; the mean, or the 99th percentile (at most an eighth too high), from the
    # arrival of a read or write to its answer. Null where nothing was measured.
    measured: float | None = None
    # Accesses to blocks, or reads and writes, that were measured.
    samples: int
    # Whether the goal was met; null where nothing was measured. Of a 99th percentile: at most one
    # request in a hundred was later or failed, which is counted exactly.
    met: bool | None = None


class BlockCounts(Record):
    """Accesses to blocks."""

    # Blocks read.
    reads: int
    # Blocks read from the cache.
    read_hits: int
    # Blocks written.
    writes: int
    # Blocks written that were in the cache.
    write_hits: int
    # Blocks that entered the cache.
    admissions: int
    # Misses that did not enter the cache.
    bypasses: int
    # Requests that went past the cache because their sequential stream had become too long.
    cut_off_requests: int
    # Bytes of these requests.
    cut_off_bytes: int
    # Blocks that left to make space, or because the quota shrank.
    evictions: int
    # Dirty blocks that were written to the backing device when they left.
    writebacks: int


class LossCount(Record):
    """Blocks that left for a reason."""

    # The reason: `trim`, `invalidation`, `fetch`, `fill`, `checksum`, `device`, `cleaning`,
    # `removal`.
    reason: str
    # Blocks that left.
    blocks: int
    # Those of them that were dirty.
    dirty: int


class RequestStatus(Record):
    """Requests of one kind."""

    # The kind: `read`, `write`, `flush`, `trim`, `zero`, `prefetch`.
    kind: str
    # Requests answered, those with errors included.
    count: int
    # Bytes that they asked for.
    bytes: int
    # Requests answered with an error.
    errors: int
    # Seconds from the arrival of a request to its answer, summed up over all.
    seconds: float
    # Requests by the time to their answer.
    buckets: tuple[LatencyBucket, ...]
    # Recent requests.
    recent: RecentRequests


class LatencyBucket(Record):
    """Requests whose time to the answer is below a bound, and not below the one before."""

    # The bound; null: there is none.
    below_seconds: float | None = None
    # Requests.
    count: int


class RecentRequests(Record):
    """Recent requests of one kind. Percentiles are at most an eighth too high."""

    # Requests answered.
    count: int
    # The mean time to the answer.
    mean_us: float
    # The median.
    p50_us: float
    # The time that 99 % do not exceed.
    p99_us: float
    # The time that 99.9 % do not exceed.
    p999_us: float


class SampledCurve(Record):
    """The miss-ratio curve of a tenant of a live server, estimated from a sample of its blocks."""

    # The policy whose misses it counts: `lru`, or that of the cache.
    policy: str
    # Seconds of requests that it counts: at most the last 70 minutes.
    seconds: float
    # Accesses to blocks that it counts.
    accesses: int
    # The smallest size for which the sample is large enough; 0 where every size is exact.
    trusted_bytes: int
    # Sizes in ascending order, at most 128; beyond the last one the curve is flat. Between two of
    # them it is a line.
    points: tuple[CurvePoint, ...]


class CurvePoint(Record):
    """A point of a sampled curve."""

    # Bytes of the cache.
    bytes: int
    # Misses per access, 0 to 1.
    miss_ratio: float
    # The low end of its 95 % confidence interval.
    low: float
    # The high end.
    high: float
