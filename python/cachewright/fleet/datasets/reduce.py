"""A large volume made small enough for a worker's memory: a sample of its blocks, or its beginning.

For: studies, whose tasks may need no more memory for a longer trace. Must never know: what is
measured. A sample keeps every access to the blocks whose hash is below a threshold (SHARDS:
Waldspurger et al., FAST'15). A cache of a share of the sample's working set then behaves like one
of that share of the whole (miniature simulation, ATC'17). Units: shares 0 to 1, requests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cachewright import _native, traces
from cachewright.fleet.datasets.distinct import FULL, hashed, touched
from cachewright.fleet.datasets.files import scratch
from cachewright.fleet.datasets.measure import BATCH, BLOCK_BYTES
from cachewright.traces import Selection, Trace

HEAD_REQUESTS = 4_000_000
"""Requests of the beginning that is characterized."""


@contextmanager
def sampled(trace: Trace, share: float) -> Iterator[Trace]:
    """Give the accesses to a `share` of a trace's blocks as a trace; all of it for 1."""
    if share >= 1:
        yield trace
        return
    with scratch() as folder:
        yield _sample(trace, share, folder / "sample.parquet")


@contextmanager
def begun(trace: Trace, requests: int, limit: int = HEAD_REQUESTS) -> Iterator[Trace]:
    """Give the first `limit` requests of a trace that has `requests`; all of it if it has less."""
    if requests <= limit:
        yield trace
        return
    with scratch() as folder:
        target = folder / "beginning.parquet"
        reader = traces.open_trace(_path(trace), trace.how())
        traces.copy(reader, target, selection=Selection(first=limit, volume=trace.volume))
        yield Trace(target)


def _sample(trace: Trace, share: float, target: Path) -> Trace:
    import numpy as np

    reader = traces.open_trace(_path(trace), trace.how())
    times = "recorded" if reader.has_times() else "none"
    writer = _native.TraceWriter(os.fspath(target), None, {"times": times})
    below = np.uint64(int(share * FULL))
    try:
        for columns in traces.select(reader, Selection(volume=trace.volume), BATCH):
            time_ns, offset, length, op, volume = columns
            for place, blocks in touched(offset, length, BLOCK_BYTES):
                kept = hashed(blocks) < below
                rows, offsets = place[kept], blocks[kept] * np.uint64(BLOCK_BYTES)
                writer.write(
                    time_ns[rows],
                    offsets,
                    np.full(len(offsets), BLOCK_BYTES, np.uint64),
                    op[rows],
                    volume[rows],
                    reader.volumes(),
                )
        writer.finish()
    finally:
        writer.discard()
    return Trace(target)


def _path(trace: Trace) -> str:
    return os.fspath(trace.path)  # type: ignore[arg-type]
