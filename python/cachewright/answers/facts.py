"""Records of `facts`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class TenantFacts(Record):
    """The trace of one tenant, as block accesses."""

    # Name of the tenant.
    name: str
    # The trace as the stack file names it.
    trace: str
    # Name of the trace's format.
    format: str
    # Requests of all kinds.
    requests: int
    # Requests that read.
    reads: int
    # Requests that write.
    writes: int
    # Requests that trim.
    trims: int
    # Requests that flush.
    flushes: int
    # Bytes read.
    read_bytes: int
    # Bytes written.
    write_bytes: int
    # Bytes trimmed.
    trim_bytes: int
    # Accesses to single blocks.
    block_accesses: int
    # Distinct blocks.
    distinct_blocks: int
    # Time of the last request, in nanoseconds since the first.
    span_ns: int
    # Records that could not be read.
    skipped_bad: int
    # Records that are no block requests.
    skipped_irrelevant: int
    # Some of the records that could not be read, each with its place and reason.
    skipped_examples: tuple[str, ...]
    # Requests earlier than the one before them.
    out_of_order: int
    # Whether the trace has times.
    has_times: bool
    # Volumes of the trace that the tenant has requests of.
    volumes: int
    # What was done to the trace beside reading it, and what its content shows beside its
    # requests, such as units that cannot be meant, in sentences.
    notes: tuple[str, ...]


class DriveTenantFacts(Record):
    """The trace of one tenant, as requests to a drive."""

    # Name of the tenant.
    name: str
    # `load` for a trace that is replayed first and not counted, else `run`.
    part: str
    # The trace as the stack file or the option names it.
    trace: str
    # Name of the trace's format.
    format: str
    # Requests of all kinds.
    requests: int
    # Requests that read.
    reads: int
    # Requests that write.
    writes: int
    # Requests that trim.
    trims: int
    # Requests that flush.
    flushes: int
    # Records that could not be read.
    skipped_bad: int
    # Records that are no block requests.
    skipped_irrelevant: int
    # Some of the records that could not be read, each with its place and reason.
    skipped_examples: tuple[str, ...]
    # Requests earlier than the one before them.
    out_of_order: int
    # Whether the trace has times.
    has_times: bool
    # Volumes of the trace that the tenant has requests of.
    volumes: int
    # What was done to the trace beside reading it, and what its content shows beside its
    # requests, such as units that cannot be meant, in sentences.
    notes: tuple[str, ...]
