"""The volumes of a dataset, and each as one trace while it is read.

For: tasks of one volume. Must never know: what is done with a volume. A volume is a volume of one
file, or the parts that `dataset convert` made of it; parts become one scratch file, a batch at a
time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native, traces
from cachewright._native import SpecError
from cachewright.fleet import job
from cachewright.fleet.datasets import files, manifest
from cachewright.fleet.datasets.files import MANIFEST
from cachewright.fleet.datasets.measure import BATCH, BLOCK_BYTES
from cachewright.traces import Trace

if TYPE_CHECKING:
    from cachewright.types import Progress

BYTES_PER_ACCESS = 24
"""What an access to a block takes in a replay, at most: its key, number and time."""
ACCESSES_BYTES = 224 << 20
"""What all accesses take in memory, at most: seven columns of 32 MiB; the rest lies in a file."""
FUTURE_BYTES = 12
"""What an access takes in memory where a policy needs the future."""
BYTES_PER_BLOCK = 64
"""What a distinct block takes in a replay, at most: numbering and the state of a cache."""
BASE_BYTES = 192 << 20
"""What a worker takes before it reads anything."""


@dataclass(frozen=True)
class Volume:
    """One volume of a dataset."""

    name: str
    """Unique in the dataset."""

    paths: Sequence[str]
    """Its parts in the order of their times, or the file that it is in."""

    volume: str | None
    """Its name in a file of several volumes; None for all of the file."""

    fingerprints: Sequence[str]
    requests: int
    accesses: int
    """Accesses to blocks, at most."""

    working_set_bytes: int

    def plain(self) -> dict[str, Any]:
        """Return what a task needs to read the volume, and what its value depends on."""
        return {
            "name": self.name,
            "paths": list(self.paths),
            "volume": self.volume,
            "fingerprints": list(self.fingerprints),
        }

    def replay_bytes(self, *, future: bool = False) -> int:
        """Return the memory of a worker that replays the volume, at most.

        `future` is whether a policy needs the future. Else it grows with distinct blocks alone.
        """
        accesses = min(BYTES_PER_ACCESS * self.accesses, ACCESSES_BYTES)
        accesses += FUTURE_BYTES * self.accesses if future else 0
        return BASE_BYTES + accesses + BYTES_PER_BLOCK * self._blocks

    @property
    def study_bytes(self) -> int:
        """What a study weighs a volume by: it replays accesses many times, which takes time."""
        return BASE_BYTES + BYTES_PER_ACCESS * self.accesses + BYTES_PER_BLOCK * self._blocks

    def share_of(self, memory_bytes: int) -> float:
        """Return the share of the volume's blocks that a study with this memory replays."""
        if self.study_bytes <= memory_bytes:
            return 1.0
        return (memory_bytes - BASE_BYTES) / (self.study_bytes - BASE_BYTES)

    @property
    def _blocks(self) -> int:
        return self.working_set_bytes // BLOCK_BYTES


@dataclass(frozen=True)
class Dataset:
    """The volumes of a dataset, and its files that cannot be read, with their errors."""

    volumes: Sequence[Volume]
    failed: Sequence[tuple[str, str]]
    files: int
    """All files, those that cannot be read too."""

    def read_often(self, volumes: int) -> dict[str, int]:
        """Return the files with more than so many volumes; a file is read again for each."""
        found = Counter(one.paths[0] for one in self.volumes if one.volume is not None)
        return {path: count for path, count in found.items() if count > volumes}


def open_dataset(
    location: str,
    out: Path,
    *,
    reading: manifest.Reading,
    how: job.How,
    volume: str | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Return the volumes of a location; it is indexed first, into `out` if it has no manifest.

    `volume` keeps the volumes of that name. Errors: as `manifest.index`; `SpecError` when nothing
    can be read or no volume has the name.
    """
    if Path(location).name == MANIFEST and not files.is_url(location):
        frame = manifest.read(Path(location))
    else:
        own = os.path.join(location, MANIFEST)
        place = None if os.path.isfile(own) else out / MANIFEST
        frame = manifest.index(location, place, reading=reading, how=how, progress=progress).rows
    rows = frame.to_dicts()
    failed = [(row["path"], row["error"]) for row in rows if row["error"] is not None]
    found = _volumes([row for row in rows if row["error"] is None])
    found = [one for one in found if volume in (None, one.volume, one.name)]
    if not found:
        what = f"no volume `{volume}`" if volume is not None else "no trace that can be read"
        why = f" ({failed[0][0]}: {failed[0][1]})" if failed else ""
        raise SpecError(f"{location}: found {what}{why}, expected one")
    return Dataset(found, failed, len({row["path"] for row in rows}))


def _volumes(rows: Sequence[dict[str, Any]]) -> list[Volume]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        is_part = files.volume_of(row["path"]) is not None
        groups.setdefault(("" if is_part else row["path"], row["volume"]), []).append(row)
    names = _names(list(groups), {row["path"]: row["volumes"] for row in rows})
    return [_volume(name, group) for name, group in zip(names, groups.values(), strict=True)]


def _names(keys: Sequence[tuple[str, str]], volumes: dict[str, int]) -> list[str]:
    """Return a short name for each volume: the file's, with the volume's where it has several."""
    short = []
    for path, volume in keys:
        if not path:
            short.append(volume)
        elif volumes[path] == 1:
            short.append(files.stem(path))
        else:
            short.append(f"{files.stem(path)}/{volume}")
    if len(set(short)) == len(short):
        return short
    return [f"{path}#{volume}" if path else volume for path, volume in keys]


def _volume(name: str, rows: Sequence[dict[str, Any]]) -> Volume:
    starts: dict[str, int] = {}
    for row in rows:
        source, start = files.source_of(row["path"]), row["start_ns"] or 0
        starts[source] = min(start, starts.get(source, start))
    sources = sorted(starts, key=lambda source: (starts[source], source))
    # Parts of one file are numbered in the order of its requests.
    ordered = sorted(
        rows, key=lambda row: (sources.index(files.source_of(row["path"])), row["path"])
    )
    several = rows[0]["volumes"] > 1
    return Volume(
        name,
        [row["path"] for row in ordered],
        rows[0]["volume"] if several else None,
        [row["fingerprint"] for row in ordered],
        sum(row["requests"] for row in ordered),
        sum(
            row["requests"] + (row["read_bytes"] + row["write_bytes"]) // BLOCK_BYTES
            for row in ordered
        ),
        max(row["working_set_bytes"] for row in ordered)
        if len(ordered) == 1
        else sum(row["working_set_bytes"] for row in ordered),
    )


@contextmanager
def trace_of(paths: Sequence[str], volume: str | None, reading: dict[str, Any]) -> Iterator[Trace]:
    """Give a volume as a trace that lies here as one file."""
    options = dict(reading["options"])
    if len(paths) == 1:
        with files.at_hand(paths[0]) as path:
            yield Trace(path, reading["format"], reading["on_bad_record"], options, volume)
        return
    with files.scratch() as folder:
        joined = folder / "volume.parquet"
        _join(paths, joined)
        yield Trace(joined)


def _join(paths: Sequence[str], target: Path) -> None:
    """Write native parts one after the other. Errors: `SpecError` when two overlap in time."""
    writer, source, latest = None, "", 0
    try:
        for path in paths:
            with files.at_hand(path) as local:
                reader = traces.open_trace(local)
                if writer is None:
                    times = "recorded" if reader.has_times() else "none"
                    writer = _native.TraceWriter(os.fspath(target), None, {"times": times})
                follows = source in ("", files.source_of(path))
                source = files.source_of(path)
                latest = _append(reader, writer, path, 0 if follows else latest, latest)
        if writer is not None:
            writer.finish()
    finally:
        if writer is not None:
            writer.discard()


def _append(
    reader: _native.TraceReader,
    writer: _native.TraceWriter,
    path: str,
    earliest: int,
    latest: int,
) -> int:
    """Append a part that may begin at `earliest`; return the latest time of all parts."""
    is_first = True
    while len((columns := reader.read(BATCH))[0]) > 0:
        if is_first and reader.has_times() and int(columns[0][0]) < earliest:
            raise SpecError(
                f"{path}: found a part that begins before that of another file ends, expected "
                "files that follow each other in time"
            )
        is_first = False
        latest = max(latest, int(columns[0].max()))
        writer.write(*columns, reader.volumes())
    return latest
