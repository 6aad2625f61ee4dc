"""What a trace file holds, volume by volume, read once and in bounded memory.

For: rows of a manifest. Must never know: any format, where files lie. Memory: a batch of requests,
and the hashes that `distinct` keeps. Units: bytes, blocks of `BLOCK_BYTES`, nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from cachewright import _native, traces
from cachewright.fleet.datasets.distinct import Distinct, blocks_of
from cachewright.traces import OPS, TraceOptions

if TYPE_CHECKING:
    import numpy as np

    from cachewright.types import Columns

BLOCK_BYTES = 4096
BATCH = 1 << 17
READ, WRITE = OPS.index("read"), OPS.index("write")
PIECE_BYTES = 1 << 20


@dataclass
class VolumeCounts:
    """Counts of one volume."""

    requests: int = 0
    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    start_ns: int = 0
    end_ns: int = 0


@dataclass
class FileFacts:
    """Counts of a file's volumes, by number."""

    volumes: dict[int, VolumeCounts] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    distinct: Distinct = field(default_factory=Distinct)
    has_times: bool = True

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per volume, in the order in which the volumes appear."""
        return [self._row(number, counts) for number, counts in self.volumes.items()]

    def _row(self, number: int, counts: VolumeCounts) -> dict[str, Any]:
        blocks, is_exact = self.distinct.count(number)
        both = counts.reads + counts.writes
        times = self.has_times
        return {
            "volume": self.names[number],
            "requests": counts.requests,
            "reads": counts.reads,
            "writes": counts.writes,
            "read_bytes": counts.read_bytes,
            "write_bytes": counts.write_bytes,
            "read_share": counts.reads / both if both else None,
            "start_ns": counts.start_ns if times else None,
            "span_ns": counts.end_ns - counts.start_ns if times else None,
            "working_set_bytes": blocks * BLOCK_BYTES,
            "working_set_exact": is_exact,
        }


def measure(path: str, how: TraceOptions) -> FileFacts:
    """Return what the trace at a local path holds. Errors: `TraceError`, `SpecError`."""
    reader = traces.open_trace(path, how)
    facts = FileFacts(has_times=reader.has_times())
    while True:
        columns = reader.read(BATCH)
        if len(columns[0]) == 0:
            break
        for number, part in by_volume(columns):
            _add(facts, number, part)
    facts.names = reader.volumes()
    return facts


def by_volume(columns: Columns) -> Iterator[tuple[int, Columns]]:
    """Yield the requests of each volume in a batch, in their order."""
    import numpy as np

    volume = columns[4]
    if len(volume) and bool((volume == volume[0]).all()):
        yield int(volume[0]), columns
        return
    order = np.argsort(volume, kind="stable")
    columns = tuple(column[order] for column in columns)  # type: ignore[assignment]
    sorted_volume = columns[4]
    starts = np.flatnonzero(np.diff(sorted_volume, prepend=sorted_volume[0] + 1))
    for begin, end in zip(starts, [*starts[1:], len(sorted_volume)], strict=True):
        part = tuple(column[begin:end] for column in columns)
        yield int(sorted_volume[begin]), part  # type: ignore[misc]


def _add(facts: FileFacts, number: int, columns: Columns) -> None:
    time_ns, offset, length, op, _ = columns
    counts = facts.volumes.get(number)
    if counts is None:
        counts = facts.volumes[number] = VolumeCounts(start_ns=int(time_ns.min()))
    reads, writes = op == READ, op == WRITE
    counts.requests += len(op)
    counts.reads += int(reads.sum())
    counts.writes += int(writes.sum())
    counts.read_bytes += _sum(length, reads)
    counts.write_bytes += _sum(length, writes)
    counts.start_ns = min(counts.start_ns, int(time_ns.min()))
    counts.end_ns = max(counts.end_ns, int(time_ns.max()))
    both = reads | writes
    for blocks in blocks_of(offset[both], length[both], BLOCK_BYTES):
        facts.distinct.add(number, blocks)


def _sum(length: np.ndarray[Any, Any], kept: np.ndarray[Any, Any]) -> int:
    return int(length[kept].sum())


def fingerprint(path: str) -> str:
    """Return a hash of a local file's content (BLAKE2b, 128 bits)."""
    found = blake2b(digest_size=16)
    with open(path, "rb") as file:
        while piece := file.read(PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()


def format_of(path: str, how: TraceOptions) -> str:
    """Return the name of a trace's format. Errors: `TraceError`."""
    return how.format or _native.recognise(path)
