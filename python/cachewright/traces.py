"""The verbs on whole traces: convert, slice and merge, a batch at a time.

For: traces larger than memory, as numpy columns. Must never know: any format, or polars. Columns
are `time_ns` (nanoseconds in the trace's own epoch), `offset_bytes`, `length_bytes`, `op` (index
into `OPS`) and `volume` (index into the source's `volumes()`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cachewright import _native, targets, words
from cachewright.held import VOLUME_COLUMN
from cachewright.source import TraceOptions
from cachewright.types import PathLike

if TYPE_CHECKING:
    import numpy as np

    from cachewright.types import Columns, Progress

BATCH = 1 << 18
NATIVE_FORMAT, NATIVE_SUFFIX = "parquet", ".parquet"
SYNTHETIC_FORMAT = "synth"


class ColumnSource(Protocol):
    """What gives requests by columns: a reader or a merger."""

    def paths(self) -> Sequence[PathLike]:
        """Return the files that are read."""

    def read(self, limit: int) -> Columns:
        """Return the next requests; empty columns at the end."""

    def volumes(self) -> list[str]:
        """Return the names of the volumes met so far."""

    def skipped(self) -> tuple[int, int, list[str]]:
        """Return how many records were left out, with examples."""

    def notes(self) -> list[str]:
        """Return what was done to the trace beside reading it, and what its content shows."""

    def requests_hint(self) -> int | None:
        """Return how many requests are to come, if known."""


@dataclass(frozen=True)
class Written:
    """What became of the requests of a written trace."""

    requests: int
    left_out: int
    moved_s: int = 0
    """Seconds by which all times were moved back, where the format's clock does not reach them."""

    skipped_bad: int = 0
    skipped_irrelevant: int = 0
    skipped_examples: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Selection:
    """Which requests to keep: times since the trace's first request, and how many at most."""

    from_ns: int = 0
    to_ns: int | None = None
    first: int | None = None
    volume: str | None = None

    def check(self) -> None:
        """Check that requests can be selected at all. Errors: `SpecError`."""
        if self.first is not None and self.first < 1:
            raise _native.SpecError(f"`first`: found {self.first}, expected 1 or more")
        if self.to_ns is not None and self.to_ns <= self.from_ns:
            begin, end = words.duration(self.from_ns), words.duration(self.to_ns)
            raise _native.SpecError(
                f"found a part from {begin} to {end}, expected an end after the beginning"
            )


@dataclass(frozen=True)
class MergeInput:
    """One trace of a merge: where it starts on the merged clock and how its times are scaled."""

    path: PathLike
    name: str
    start_ns: int = 0
    time_scale: float = 1.0
    format: str | None = None


def open_trace(
    path: PathLike | Sequence[PathLike], trace: TraceOptions | None = None
) -> _native.TraceReader:
    """Open a trace, or the files of one recording, for reading by columns.

    Errors: `TraceError`, `SpecError`.
    """
    how = trace or TraceOptions()
    files = (
        os.fspath(path) if isinstance(path, str | os.PathLike) else [os.fspath(one) for one in path]
    )
    return _native.TraceReader(files, how.format, how.on_bad_record, dict(how.options))


def copy(
    source: ColumnSource,
    path: PathLike,
    *,
    selection: Selection | None = None,
    format: str | None = None,
    options: Mapping[str, str] | None = None,
    overwrite: bool = False,
    how: str = targets.OVERWRITE,
    progress: Progress | None = None,
) -> Written:
    """Write what `source` gives, a batch at a time, and return how much that was.

    Without `format` the suffix of `path` names it. An existing file is replaced with `overwrite`
    alone (`how` says so in the refusal), a file that `source` reads never. Nothing is left of a
    file that could not be completed. Errors: `SpecError` also when no request is selected.
    """
    selection = selection or Selection()
    selection.check()
    targets.check(path, source.paths(), overwrite=overwrite, how=how)
    settings = dict(options or {})
    native = format == NATIVE_FORMAT or (format is None and Path(path).suffix == NATIVE_SUFFIX)
    if native and isinstance(source, _native.TraceReader):
        settings.setdefault("times", "recorded" if source.has_times() else "none")
    writer = _native.TraceWriter(os.fspath(path), format, settings)
    watched = _Watched(source, progress)
    written = False
    try:
        for columns in select(watched, selection, BATCH):
            writer.write(*columns, source.volumes())
            written = True
        if not written:
            raise _native.SpecError(watched.nothing(selection))
        targets.check(path, source.paths(), overwrite=overwrite, how=how)
        requests, left_out, moved_s = writer.finish()
    finally:
        writer.discard()
    bad, irrelevant, examples = source.skipped()
    return Written(requests, left_out, moved_s, bad, irrelevant, examples, source.notes())


class _Watched:
    """A source whose progress and times are noted as it is read."""

    def __init__(self, source: ColumnSource, progress: Progress | None) -> None:
        self.source, self.progress = source, progress
        self.hint, self.count = source.requests_hint(), 0
        self.origin = self.latest = 0

    def read(self, limit: int) -> Columns:
        """Return the next requests. Errors: `RunError` when the call-back cancels."""
        columns = self.source.read(limit)
        if len(columns[0]) > 0:
            self.origin = self.origin if self.count else int(columns[0][0])
            self.latest = max(self.latest, int(columns[0].max()))
            self.count += len(columns[0])
            if (
                self.progress is not None
                and self.progress("writing", self.count, self.hint) is False
            ):
                raise _native.RunError("cancelled by the progress call-back")
        return columns

    def paths(self) -> Sequence[PathLike]:
        return self.source.paths()

    def volumes(self) -> list[str]:
        return self.source.volumes()

    def skipped(self) -> tuple[int, int, list[str]]:
        return self.source.skipped()

    def notes(self) -> list[str]:
        return self.source.notes()

    def requests_hint(self) -> int | None:
        return self.hint

    def nothing(self, selection: Selection) -> str:
        """Return why none of the requests that were read is selected."""
        found = ", ".join(os.fspath(path) for path in self.paths())
        end = words.duration(self.latest - self.origin)
        if selection.from_ns > self.latest - self.origin:
            begin = words.duration(selection.from_ns)
            return (
                f"{found}: found no request from {begin} on, expected a time up to {end}, "
                "that of the last request"
            )
        volume = "" if selection.volume is None else f" of volume `{selection.volume}`"
        return (
            f"{found}: found no request{volume} in the part selected, expected one or more "
            f"(the trace lasts {end})"
        )


def merger(
    inputs: Sequence[MergeInput], trace: TraceOptions | None = None, *, common_clock: bool = False
) -> _native.TraceMerger:
    """Open several traces as one, ordered by time; volumes become `NAME/VOLUME`.

    Each begins at zero; with `common_clock` the earliest does, and the others when they did.
    """
    how = trace or TraceOptions()
    rows = [
        (i.name, os.fspath(i.path), i.format or how.format, i.time_scale, i.start_ns)
        for i in inputs
    ]
    return _native.TraceMerger(rows, how.on_bad_record, dict(how.options), common_clock)


def synthetic(path: PathLike, seed: int | None = None) -> _native.TraceReader:
    """Open the seeded tenants described in a TOML file as a trace. Errors: `SpecError`."""
    options = {} if seed is None else {"seed": str(seed)}
    return open_trace(path, TraceOptions(SYNTHETIC_FORMAT, options=options))


def select(
    source: ColumnSource,
    selection: Selection,
    batch: int,
) -> Iterator[Columns]:
    """Yield the selected requests of `source`.

    Times count from the first request read, whatever its volume. Errors: `SpecError` when the
    trace has no such volume.
    """
    origin: int | None = None
    left = selection.first
    chosen = None if selection.volume is None else _native.VolumeChoice(selection.volume)
    while left is None or left > 0:
        limit = batch if left is None or selection != Selection(first=left) else min(batch, left)
        columns = source.read(limit)
        if len(columns[0]) == 0:
            break
        origin = int(columns[0][0]) if origin is None else origin
        wanted = None if chosen is None else chosen.among(source.volumes())
        columns = _kept(columns, selection, origin, wanted)
        if left is not None:
            columns = _head(columns, left)
            left -= len(columns[0])
        if len(columns[0]) > 0:
            yield columns
    if chosen is not None and (left is None or left > 0):
        chosen.refuse_unknown(source.volumes())


def _kept(
    columns: Columns, selection: Selection, origin: int, wanted: Sequence[bool] | None
) -> Columns:
    import numpy as np

    keep: np.ndarray[Any, np.dtype[np.bool_]] | None = None
    if selection.from_ns > 0:
        keep = columns[0] >= origin + selection.from_ns
    if selection.to_ns is not None:
        before = columns[0] < origin + selection.to_ns
        keep = before if keep is None else keep & before
    if wanted is not None:
        same = np.asarray(wanted, dtype=np.bool_)[columns[VOLUME_COLUMN]]
        keep = same if keep is None else keep & same
    if keep is None or bool(keep.all()):
        return columns
    return (
        columns[0][keep],
        columns[1][keep],
        columns[2][keep],
        columns[3][keep],
        columns[4][keep],
    )


def _head(columns: Columns, count: int) -> Columns:
    return (
        columns[0][:count],
        columns[1][:count],
        columns[2][:count],
        columns[3][:count],
        columns[4][:count],
    )
