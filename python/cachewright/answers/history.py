"""Records of `history`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class LiveHistory(Record):
    """What a live server sampled in its last hour, the oldest first."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Seconds between two samples.
    every_seconds: float
    # When each sample was taken: seconds since the start of the server.
    uptime_seconds: tuple[float, ...]
    # Bytes that only the cache had.
    dirty_bytes: tuple[int, ...]
    # Segments of the log that held nothing.
    free_segments: tuple[int, ...]
    # The tenants that are served, in the order of the status; at most the first 64.
    tenants: tuple[TenantHistory, ...]


class TenantHistory(Record):
    """A tenant in the last hour. Where it was not served yet, its values are null."""

    # The name of the tenant.
    name: str
    # Hits over accesses since the sample before; null without accesses.
    hit_ratio: tuple[float | None, ...]
    # Bytes that it held.
    cached_bytes: tuple[int | None, ...]
    # The 99th percentile of reads since the sample before; null without reads.
    read_p99_us: tuple[float | None, ...]
    # The 99th percentile of writes since the sample before; null without writes.
    write_p99_us: tuple[float | None, ...]
    # Whether its goal was met since the sample before; null without a goal, and where nothing was
    # measured.
    goal_met: tuple[bool | None, ...]
