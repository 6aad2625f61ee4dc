"""Records of `info`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class TraceInfo(Record):
    """The answer of `trace info`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
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
    # Share of reads among reads and writes, 0 to 1.
    read_share: float
    # Bytes read.
    read_bytes: int
    # Bytes written.
    write_bytes: int
    # Bytes trimmed.
    trim_bytes: int
    # Distinct blocks read or written.
    distinct_blocks: int
    # Bytes of these blocks.
    working_set_bytes: int
    # Bytes of the blocks that are written.
    written_working_set_bytes: int
    # Requests per second over the span of the whole trace; null without times.
    rate_per_s: float | None = None
    # Path of the trace.
    path: str
    # Name of its format.
    format: str
    # Whether the trace has times.
    has_times: bool
    # Time from the earliest request to the latest; null without times.
    span_ns: int | None = None
    # Bytes of a block for the working set and re-use distances.
    block_bytes: int
    # Whether the trace numbers objects: then each is one block, of the size first asked for.
    counts_objects: bool
    # Requests earlier than one before them.
    out_of_order: int
    # Records that could not be read.
    skipped_bad: int
    # Records that are no block requests.
    skipped_irrelevant: int
    # Some of the records that could not be read, each with its place and reason.
    skipped_examples: tuple[str, ...]
    # What was done to the trace beside reading it, and what its content shows beside its
    # requests, such as units that cannot be meant, in sentences.
    notes: tuple[str, ...]
    # Sizes of reads and writes, in bytes.
    request_bytes: SizeDistribution
    # Re-use distances.
    reuse: Reuse
    # Per bin of time: start in nanoseconds, requests, bytes; empty without times.
    rate: tuple[tuple[int, int, int], ...]
    # Every volume with a request, the busiest first.
    volumes: tuple[VolumeInfo, ...]


class SizeDistribution(Record):
    """Sizes, with a histogram by powers of two."""

    # Mean size, in bytes.
    mean: float
    # Size that half do not exceed, in bytes.
    p50: int
    # Size that 90 % do not exceed, in bytes.
    p90: int
    # Size that 99 % do not exceed, in bytes.
    p99: int
    # Largest size, in bytes.
    max: int
    # Per bin: largest size in bytes, requests.
    histogram: tuple[tuple[int, int], ...]


class Reuse(Record):
    """LRU stack distances over all volumes."""

    # Accesses to blocks.
    accesses: int
    # Accesses to blocks that were not accessed before.
    compulsory: int
    # Per bin: largest distance in blocks, accesses.
    histogram: tuple[tuple[int, int], ...]
    # The LRU curve: cache size in blocks, miss ratio (0 to 1).
    lru_miss_ratio: tuple[tuple[int, float], ...]


class VolumeInfo(Record):
    """One volume of a trace."""

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
    # Share of reads among reads and writes, 0 to 1.
    read_share: float
    # Bytes read.
    read_bytes: int
    # Bytes written.
    write_bytes: int
    # Bytes trimmed.
    trim_bytes: int
    # Distinct blocks read or written.
    distinct_blocks: int
    # Bytes of these blocks.
    working_set_bytes: int
    # Bytes of the blocks that are written.
    written_working_set_bytes: int
    # Requests per second over the span of the whole trace; null without times.
    rate_per_s: float | None = None
    # Name of the volume.
    name: str
