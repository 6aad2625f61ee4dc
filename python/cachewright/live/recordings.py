"""Recordings that a live server keeps in a folder: the last of them as one trace.

For: `cachewright advise`. Must never know: what a recording is replayed for. Units: nanoseconds;
names of recordings say when they began, in milliseconds UTC. A server writes a file for each span
(`serve.record_span`); each begins at a time 0 of its own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright import _native, traces, words
from cachewright._native import RunError, SpecError
from cachewright.live import watching
from cachewright.traces import OPS

if TYPE_CHECKING:
    from cachewright.answers import LiveStatus
    from cachewright.types import Columns, PathLike

NAME = "%Y-%m-%dT%H-%M-%S.%fZ"
NS_PER_MS = 1_000_000
# Kinds of requests that count as accesses, as `TraceReader.read` numbers them.
READ, WRITE = OPS.index("read"), OPS.index("write")


@dataclass(frozen=True)
class Recording:
    """A finished recording."""

    path: Path
    begin_ms: int


@dataclass(frozen=True)
class Joined:
    """Recordings as one trace: its file, the recordings, and their volumes.

    `volumes` have reads or writes; `silent` are known to the recordings and have none.
    """

    path: Path
    recordings: tuple[Path, ...]
    volumes: tuple[str, ...]
    silent: tuple[str, ...]


def found(folder: PathLike) -> list[Recording]:
    """Return the finished recordings in a folder, oldest first. Errors: `SpecError`."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        expected = "expected a folder of recordings"
        raise SpecError(f"{os.fspath(folder)}: {words.reason(error)}; {expected}") from error
    begins = [(name, _begin_ms(name)) for name in names]
    return [Recording(Path(folder) / name, ms) for name, ms in begins if ms is not None]


def finish(target: str, before: LiveStatus) -> LiveStatus:
    """Let the server at `target` finish the recording under way; return its status then.

    `before` is its status now, which has recordings. Errors: `RunError` when the server belongs to
    another user, or cannot write the recording; as of `watching.signalled`.
    """
    at_first = before.recordings
    assert at_first is not None

    def is_done(now: LiveStatus) -> bool:
        found = now.recordings
        return found is None or found.errors > at_first.errors or found.files > at_first.files

    status = watching.signalled(target, signal.SIGUSR1, is_done)
    now = status.recordings
    if now is None or now.errors > at_first.errors:
        why = (now and now.last_error) or "nothing is recorded any more"
        raise RunError(f"found a server that could not finish its recording: {why}")
    return status


def joined(recordings: Sequence[Recording], last_ns: int, part: Path) -> Joined:
    """Return the newest recordings that together reach back `last_ns`, as one trace.

    Recordings are taken whole. One alone is that trace itself; several are written to `part`, each
    as much later than the first as their names say, and never before the one ahead of it ends.
    Errors: `SpecError` without recordings, `TraceError` for one that cannot be read.
    """
    if not recordings:
        raise SpecError("found no finished recording, expected one or more")
    newest = recordings[-1]
    last = _read(newest)
    end_ns = newest.begin_ms * NS_PER_MS + last.length_ns
    taken = [one for one in recordings if one.begin_ms * NS_PER_MS >= end_ns - last_ns]
    older = [one for one in recordings if one.begin_ms * NS_PER_MS < end_ns - last_ns]
    # The one that was under way when the time begins.
    taken = [*older[-1:], *taken] if taken and older else taken or [newest]
    if taken == [newest]:
        return Joined(newest.path, (newest.path,), last.busy, last.silent)
    return _written(taken, part)


def _written(taken: Sequence[Recording], part: Path) -> Joined:
    import numpy as np

    names: list[str] = []
    busy: set[str] = set()
    writer = _native.TraceWriter(os.fspath(part), traces.NATIVE_FORMAT, {"times": "recorded"})
    start_ns, end_ns = 0, 0
    try:
        for one in taken:
            start_ns = max(end_ns, (one.begin_ms - taken[0].begin_ms) * NS_PER_MS)
            reader = traces.open_trace(one.path)
            while len((columns := reader.read(traces.BATCH))[0]) > 0:
                volumes = reader.volumes()
                names += [name for name in volumes if name not in names]
                busy |= _accessed(columns, volumes)
                places = np.array([names.index(name) for name in volumes], dtype=np.uint32)
                times = columns[0] + np.uint64(start_ns)
                end_ns = int(times[-1]) + 1
                writer.write(times, *columns[1:4], places[columns[4]], names)
        writer.finish()
    finally:
        writer.discard()
    return Joined(part, tuple(one.path for one in taken), *_parted(names, busy))


@dataclass(frozen=True)
class _Content:
    """What is in one recording."""

    busy: tuple[str, ...]
    silent: tuple[str, ...]
    length_ns: int


def _read(recording: Recording) -> _Content:
    """Return a recording's volumes, and the time of its last request."""
    reader = traces.open_trace(recording.path)
    busy: set[str] = set()
    last_ns = 0
    while len((columns := reader.read(traces.BATCH))[0]) > 0:
        busy |= _accessed(columns, reader.volumes())
        last_ns = int(columns[0][-1])
    return _Content(*_parted(reader.volumes(), busy), last_ns)


def _accessed(columns: Columns, volumes: Sequence[str]) -> set[str]:
    """Return the volumes that some requests read or write.

    Every recording begins and ends with a flush of the first volume, so that flushes say nothing.
    """
    import numpy as np

    ops, places = columns[3], columns[4]
    is_access = (ops == np.uint8(READ)) | (ops == np.uint8(WRITE))
    return {volumes[int(place)] for place in np.unique(places[is_access])}


def _parted(volumes: Sequence[str], busy: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the busy volumes and the silent ones, each in the order of `volumes`."""
    silent = tuple(name for name in volumes if name not in busy)
    return tuple(name for name in volumes if name in busy), silent


def _begin_ms(name: str) -> int | None:
    """Return when a recording of this name began; None for any other file."""
    stem, dot, suffix = name.rpartition(".")
    if not dot or f".{suffix}" != traces.NATIVE_SUFFIX or name.startswith("."):
        return None
    try:
        began = datetime.strptime(stem, NAME).replace(tzinfo=UTC)
    except ValueError:
        return None
    since = began - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
