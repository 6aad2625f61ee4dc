"""Native Parquet of every volume of a dataset, divided by time.

For: `dataset convert`. Must never know: any format. A file becomes
`volume=NAME/part-NUMBER-FILE.parquet`, a part per period of the trace's clock. A pass over a file
writes as many volumes as hold `ROWS` rows in the writers' memory; a file of more is read several
times. A request earlier than the period before it stays in the current part, so that the parts one
after the other are the trace. Units: nanoseconds, rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cachewright import _native, traces
from cachewright._native import SpecError
from cachewright.fleet import job
from cachewright.fleet.datasets import files, manifest, measure
from cachewright.fleet.datasets.files import JOURNAL_SUFFIX, MANIFEST
from cachewright.fleet.journal import Journal
from cachewright.traces import TraceOptions

if TYPE_CHECKING:
    from cachewright.types import Columns, Progress

WORK = "cachewright.fleet.datasets.convert:file_parts"
# The manifest of what is converted; files that begin with `_` are no traces of a dataset.
SOURCE = "_source.parquet"
ROWS = 1 << 24
"""Rows that the writers of a pass may hold together: about 400 MiB."""
WRITER_ROWS = 1 << 20
"""Rows that one writer holds at most: a row group."""
MEMORY_BYTES = 1 << 30


@dataclass(frozen=True)
class Converted:
    """What became of a dataset: its manifest, and what failed or cannot be read, with errors."""

    manifest: manifest.Indexed
    failed: Sequence[tuple[str, str]]
    unread: Sequence[tuple[str, str]]
    parts: int
    rates: job.Rates


def convert(
    location: str,
    out: Path,
    *,
    every_ns: int | None = None,
    reading: manifest.Reading | None = None,
    how: job.How | None = None,
    progress: Progress | None = None,
) -> Converted:
    """Write every volume of a location as native Parquet below `out`, with a manifest.

    `every_ns` divides each volume by time. What is done is not done again. Errors: as
    `manifest.index`; `SpecError` when `out` is what is read.
    """
    reading, how = reading or manifest.Reading(), how or job.How()
    if not files.is_url(location) and out.resolve() == Path(location).resolve():
        raise SpecError(f"{out}: found the folder that is read, expected another to write")
    found = manifest.index(location, out / SOURCE, reading=reading, how=how, progress=progress)
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in found.rows.filter(found.rows["error"].is_null()).to_dicts():
        groups.setdefault(row["path"], []).append(row)
    tasks = [
        job.task_of(
            path,
            WORK,
            {
                "path": path,
                "fingerprint": rows[0]["fingerprint"],
                "requests": {row["volume"]: row["requests"] for row in rows},
                "out": str(out.resolve()),
                "every_ns": every_ns,
                **reading.plain(),
            },
            MEMORY_BYTES,
        )
        for path, rows in groups.items()
    ]
    with Journal(out / f"convert{JOURNAL_SUFFIX}") as journal:
        job.run_job(tasks, journal, how, stage="files converted", progress=progress)
        failed = job.failures(tasks, journal)
        parts = sum(value for _, value in job.values(tasks, journal))
        rates = job.rates(tasks, journal)
    made = manifest.index(
        str(out / "volume=*" / "*.parquet"), out / MANIFEST, how=how, progress=progress
    )
    return Converted(made, failed, found.failed, parts, rates)


def file_parts(
    path: str,
    fingerprint: str,
    requests: dict[str, int],
    out: str,
    every_ns: int | None,
    format: str | None,
    on_bad_record: str,
    options: dict[str, str],
) -> int:
    """Write the parts of one file; return how many. Errors: `TraceError`, `OSError`."""
    how = TraceOptions(format, on_bad_record, options)
    # Part of the name, so that parts of files with the same volumes lie beside each other.
    label = blake2b(f"{path} {fingerprint}".encode(), digest_size=6).hexdigest()
    written = 0
    with files.at_hand(path) as local:
        for names in _passes(requests):
            written += _pass(local, how, names, Path(out), label, every_ns)
    return written


def _passes(requests: dict[str, int]) -> Iterator[set[str]]:
    """Divide volumes so that the writers of each pass hold at most `ROWS` rows."""
    names: set[str] = set()
    rows = 0
    for name, count in requests.items():
        held = min(count, WRITER_ROWS)
        if names and rows + held > ROWS:
            yield names
            names, rows = set(), 0
        names.add(name)
        rows += held
    if names:
        yield names


def _pass(
    path: str, how: TraceOptions, names: set[str], out: Path, label: str, every_ns: int | None
) -> int:
    """Write the volumes called `names`; return how many parts that made."""
    reader = traces.open_trace(path, how)
    times = "recorded" if reader.has_times() else "none"
    parts: dict[int, _Parts] = {}
    try:
        while len((columns := reader.read(measure.BATCH))[0]) > 0:
            known = reader.volumes()
            for number, own in measure.by_volume(columns):
                if known[number] not in names:
                    continue
                if number not in parts:
                    folder = out / f"volume={quote(known[number], safe='')}"
                    parts[number] = _Parts(folder, known[number], label, every_ns, times)
                parts[number].write(own)
        for one in parts.values():
            one.close()
    finally:
        for one in parts.values():
            one.discard()
    return sum(one.count for one in parts.values())


class _Parts:
    """The parts of one volume of one file."""

    def __init__(
        self, folder: Path, name: str, label: str, every_ns: int | None, times: str
    ) -> None:
        self.folder, self.name, self.label = folder, name, label
        self.every_ns, self.times = every_ns, times
        self.count, self.period = 0, -1
        self.writer: _native.TraceWriter | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, columns: Columns) -> None:
        """Write requests of the volume in their order."""
        import numpy as np

        if self.every_ns is None:
            self._append(columns, 0)
            return
        # A time that runs backwards stays in the period that has begun.
        periods = np.maximum.accumulate(columns[0] // np.uint64(self.every_ns))
        periods = np.maximum(periods, np.uint64(max(self.period, 0)))
        starts = [0, *(np.flatnonzero(np.diff(periods)) + 1).tolist()]
        for begin, end in zip(starts, [*starts[1:], len(periods)], strict=True):
            own = tuple(column[begin:end] for column in columns)
            self._append(own, int(periods[begin]))  # type: ignore[arg-type]

    def _append(self, columns: Columns, period: int) -> None:
        import numpy as np

        if self.writer is None or period != self.period:
            self.close()
            name = f"part-{self.count:05d}-{self.label}.parquet"
            self.writer = _native.TraceWriter(str(self.folder / name), None, {"times": self.times})
            self.period = period
            self.count += 1
        self.writer.write(*columns[:4], np.zeros(len(columns[0]), np.uint32), [self.name])

    def close(self) -> None:
        """Complete the current part."""
        if self.writer is not None:
            self.writer.finish()
            self.writer.discard()
            self.writer = None

    def discard(self) -> None:
        """Remove a part that is not complete."""
        if self.writer is not None:
            self.writer.discard()
            self.writer = None
