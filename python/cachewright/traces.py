"""Traces: how they are named and opened, as frames, and the verbs on whole ones.

Columns are `time_ns` (nanoseconds in the trace's own epoch), `offset_bytes`, `length_bytes`, `op`
and `volume`: in frames words and names, in columns of numpy indices into `OPS` and into the
`volumes()` of the source.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

from cachewright import _native, targets, words
from cachewright._native import SpecError
from cachewright.types import PathLike

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from cachewright.types import Columns, Progress

Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame"
FRAME = "frame"
FRAME_FORMAT = "parquet"
"""The format in which frames are handed over; its options are those of frames."""
_LAZY = "LazyFrame"
# Files of a recording that are named; more are counted.
_NAMED = 3


@dataclass(frozen=True)
class TraceOptions:
    """How to read a trace; the defaults recognise the format and fail on a malformed record."""

    format: str | None = None
    on_bad_record: str = "fail"
    options: Mapping[str, str] = field(default_factory=dict)
    volume: str | None = None
    by_volume: bool = False

    def tenant_keys(self) -> dict[str, Any]:
        """Return the keys of a `[[tenant]]` table that say the same."""
        keys: dict[str, Any] = {"on_bad_record": self.on_bad_record}
        if self.format is not None:
            keys["format"] = self.format
        if self.volume is not None:
            keys["volume"] = self.volume
        if self.by_volume:
            keys["by_volume"] = True
        if self.options:
            keys["options"] = dict(self.options)
        return keys


@dataclass(frozen=True)
class Trace:
    """A trace and how to read it.

    `path` is a file, a polars frame, or a list of files (or a pattern such as `x.blktrace.*`) that
    are one recording: read by time on their common clock, volumes of one name as one. `format` is
    a name of `cachewright.list("formats")`, recognised from the content when left out; `options`
    are that format's. `volume` takes one volume of the trace, or some (`"4,9"`); with `by_volume`
    each volume is a tenant of its own where a stack is made of the trace. `on_bad_record` is `fail`
    or `skip`. A plain path, or a plain frame, means `Trace(path)`.
    """

    path: PathLike | Sequence[PathLike] | Frame
    format: str | None = None
    on_bad_record: str = "fail"
    options: Mapping[str, str] = field(default_factory=dict)
    volume: str | None = None
    by_volume: bool = False

    def how(self) -> TraceOptions:
        """Return how to read it."""
        return TraceOptions(
            self.format, self.on_bad_record, self.options, self.volume, self.by_volume
        )

    def _repr_html_(self) -> str:
        from cachewright.report import notebook

        return notebook.of_trace(self)


OWN_KEYS = ("format", "on_bad_record", "volume")
"""What a trace may say beside options of its format."""

_SUFFIX = re.compile(r"(?P<path>.+?):(?P<pairs>[a-z_]+=.*)", re.DOTALL)
_MAP, _ROLES = "columns", ("time", "op", "offset", "length", "volume", "count")


def split_options(text: PathLike) -> tuple[str, dict[str, str]]:
    """Return the path of a trace on a command line, and what it says of its own.

    A file whose name holds all of that is that file.

    >>> split_options("t.csv:format=csv,columns=time=1,offset=2,time_unit=us")
    ('t.csv', {'format': 'csv', 'columns': 'time=1,offset=2', 'time_unit': 'us'})
    >>> split_options("a:b.csv")
    ('a:b.csv', {})
    """
    name = os.fspath(text)
    found = _SUFFIX.fullmatch(name)
    if found is None or os.path.exists(name):
        return name, {}
    pairs: dict[str, str] = {}
    last = ""
    for piece in found["pairs"].split(","):
        key, has_value, value = piece.partition("=")
        # A comma may belong to the value before it: a map of columns, a list of words.
        is_role = last == _MAP and key in _ROLES
        if last and (not has_value or is_role or not key.isidentifier()):
            pairs[last] += f",{piece}"
        else:
            last = key
            pairs[key] = value
    return found["path"], pairs


def opened_as(text: PathLike, how: TraceOptions) -> tuple[str, TraceOptions]:
    """Return the path of a trace, and how it is opened: as `how` says, but for what it says itself.

    Errors: `SpecError` for a value of `on_bad_record` that is none.
    """
    path, own = split_options(text)
    return path, merged(how, own)


def merged(how: TraceOptions, own: Mapping[str, str]) -> TraceOptions:
    """Return how a trace is opened that says `own` of itself."""
    if not own:
        return how
    bad = own.get("on_bad_record", how.on_bad_record)
    if bad not in ("fail", "skip"):
        raise SpecError(f"`on_bad_record`: found `{bad}`, expected fail or skip")
    options = {key: value for key, value in own.items() if key not in OWN_KEYS}
    return replace(
        how,
        format=own.get("format", how.format),
        on_bad_record=bad,
        options={**how.options, **options},
        volume=own.get("volume", how.volume),
    )


TraceLike: TypeAlias = "PathLike | Sequence[PathLike] | Trace | Frame"


@dataclass(frozen=True)
class Opened:
    """A trace as a path that can be read while this value lives."""

    path: str | list[str]
    how: TraceOptions
    name: str
    """What it is called: the path or paths as given, or `frame`."""

    held: object = None
    """What keeps a frame's rows readable."""

    @property
    def stem(self) -> str:
        """The file's name (of several, the first one's) up to the first dot."""
        first = self.path[0] if isinstance(self.path, list) else self.name
        return Path(first).name.split(".")[0] or "trace"


def is_frame(value: object) -> bool:
    """Return whether `value` is a table: a polars frame, or anything that streams Arrow."""
    if hasattr(value, "__arrow_c_stream__"):
        return True
    return type(value).__name__ == _LAZY and type(value).__module__.startswith("polars")


def is_trace(value: object) -> bool:
    """Return whether `value` is a `Trace` or a frame, which can be nothing but a trace."""
    return isinstance(value, Trace) or is_frame(value)


def opened(trace: TraceLike, how: TraceOptions | None = None) -> Opened:
    """Return a trace as a path and how to read it; `how` is for a path without a `Trace`.

    Errors: `SpecError` for something else than a trace, or a frame without the columns of one.
    """
    if isinstance(trace, Trace):
        path, how = trace.path, trace.how()
    else:
        path, how = trace, how or TraceOptions()
    if isinstance(path, str | os.PathLike):
        return Opened(os.fspath(path), how, os.fspath(path))
    if isinstance(path, list | tuple):
        return _parts(path, how)
    if not is_frame(path):
        raise SpecError(
            f"found a value of type {type(path).__name__}, expected a trace: a path, a list of "
            "paths, a frame or a Trace"
        )
    if how.format not in (None, FRAME_FORMAT):
        raise SpecError(f"found format `{how.format}` of a frame, expected none")
    as_it_is = bool(how.options) or how.on_bad_record != "fail"
    held = held_in_memory(path, as_it_is=as_it_is)
    return Opened(held.path, how, FRAME, held)


def _parts(files: Sequence[object], how: TraceOptions) -> Opened:
    """Return the files of one recording as one trace. Errors: `SpecError` for none, or no paths."""
    paths = [os.fspath(one) for one in files if isinstance(one, str | os.PathLike)]
    if not paths or len(paths) < len(files):
        raise SpecError(f"found {list(files)!r}, expected paths of the files of one recording")
    more = len(paths) - _NAMED
    named = ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return Opened(paths[0] if len(paths) == 1 else paths, how, named)


COLUMNS = ("time_ns", "offset_bytes", "length_bytes", "op", "volume")
OPS = ("read", "write", "trim", "flush")
SHORT_OPS = ("r", "w", "t", "f")
OP_WORDS = {
    word: number
    for number, words in enumerate(
        (
            ("r", "read", "rs"),
            ("w", "write", "ws"),
            ("t", "d", "trim", "discard", "unmap"),
            ("f", "s", "flush", "sync", "fsync"),
        )
    )
    for word in words
}
"""Words of operations in lower case, those of the `csv` format, and the indices into `OPS`."""

UNIT_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000}
DAY_NS = 86_400 * 10**9
EXPECTED_WHOLE = "whole numbers from 0"
EXPECTED_TIME = "a time from 1970-01-01 (or zero) and below 2^64 nanoseconds"
VOLUME_COLUMN = 4
VERSION_KEY, VERSION = "cachewright.version", "1"
VOLUMES_KEY = "cachewright.volumes"
FIRST_NUMBER = 512
"""First number of the files in which frames are handed over."""


class HeldInMemory:
    """A frame as a trace in memory, readable under `path` while this value lives.

    It is a native trace, checked here, unless the frame is to be read `as_it_is`, as the Parquet
    file that it would be: with columns told by options, or with bad rows counted.
    """

    def __init__(self, frame: pl.DataFrame, *, as_it_is: bool = False) -> None:
        import polars as pl

        if as_it_is:
            self._hold(frame, {})
            return
        known: dict[str, int] = {}
        time_ns, offset_bytes, length_bytes, op, volume = columns_of(frame, known)
        rows = pl.DataFrame(
            {
                "time_ns": time_ns,
                "offset_bytes": offset_bytes,
                "length_bytes": length_bytes,
                "op": op,
                "volume": volume,
            }
        )
        self._hold(rows, {VERSION_KEY: VERSION, VOLUMES_KEY: json.dumps(list(known))})

    def _hold(self, rows: pl.DataFrame, metadata: dict[str, str]) -> None:
        if len(rows) == 0:
            raise SpecError("found a frame without a row, expected requests")
        self._file = _unnamed_file()
        self.path = f"/proc/self/fd/{self._file.fileno()}"
        rows.write_parquet(self._file, compression="lz4", statistics=False, metadata=metadata)
        self._file.flush()


def held_in_memory(frame: Any, *, as_it_is: bool = False) -> HeldInMemory:
    """Return a frame as a trace that Rust can open. Errors: `SpecError` for a wrong column."""
    return HeldInMemory(as_frame(frame), as_it_is=as_it_is)


def as_frame(table: Any) -> pl.DataFrame:
    """Return a frame, a lazy frame or an Arrow stream as a frame."""
    import polars as pl

    if isinstance(table, pl.LazyFrame):
        return table.collect(engine="streaming")
    if isinstance(table, pl.DataFrame):
        return table
    if type(table).__module__.partition(".")[0] == "pandas":
        # Its Arrow stream takes pyarrow, which its columns do not.
        return pl.DataFrame({str(name): _of_pandas(table[name]) for name in table.columns})
    return pl.DataFrame(table)


def _of_pandas(column: Any) -> Any:
    """Return a column of pandas as an array, or as a list where it holds objects."""
    values = column.to_numpy()
    return column.tolist() if values.dtype == object else values


def _unnamed_file() -> IO[bytes]:
    """Return a file that has no name and vanishes when closed; in memory where Linux offers it.

    Its number is the first free one from `FIRST_NUMBER` on, so that the same program has the same
    number, and with it the same path, in every run.
    """
    if not hasattr(os, "memfd_create"):
        raise SpecError("found a frame as a trace, expected a path: it takes Linux")
    number = os.memfd_create("cachewright-frame")
    try:
        import fcntl

        moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FIRST_NUMBER)
    except OSError:
        return os.fdopen(number, "w+b")
    os.close(number)
    return os.fdopen(moved, "w+b")


def columns_of(frame: pl.DataFrame, known: dict[str, int]) -> Columns:
    """Return a frame as columns; `known` gathers the names of volumes.

    Names with another unit, such as `time_s` and `offset_sectors`, are read as those of a CSV
    header. Typed times become nanoseconds: dates and times since 1970 (UTC), durations and times of
    day since their zero. Errors: `SpecError` for a missing column, a column of another type, and a
    value that is missing or no whole number from 0, with its row from 1.
    """
    import polars as pl

    missing = [name for name in COLUMNS[:VOLUME_COLUMN] if name not in frame]
    if missing:
        frame = _of_other_names(frame, missing)
    if "volume" not in frame:
        frame = frame.with_columns(volume=pl.lit("0"))
    names = _volume_names(frame["volume"])
    for name in names.unique(maintain_order=True):
        known.setdefault(name, len(known))
    volume = names.replace_strict(list(known), list(known.values()), return_dtype=pl.UInt32)
    return (
        _times(frame["time_ns"]),
        _whole(frame["offset_bytes"]),
        _whole(frame["length_bytes"]),
        _op_numbers(frame["op"]),
        volume.to_numpy(),
    )


def _of_other_names(frame: pl.DataFrame, missing: Sequence[str]) -> pl.DataFrame:
    """Return a frame whose columns are named with other units, with the columns of a trace."""
    held = HeldInMemory(frame, as_it_is=True)
    try:
        has_times = open_trace(held.path, TraceOptions(FRAME_FORMAT)).has_times()
    except SpecError:
        has_times = False
    # Requests without a column of times would count as made at once.
    if not has_times:
        also = ", ".join(f"`{name}`" for name in missing)
        raise SpecError(
            f"found columns {', '.join(frame.columns)}, expected also {also}, or names with "
            "another unit such as `time_s`, `offset_sectors`, `length_sectors`; others take a map: "
            '`Trace(frame, options={"columns": "time=...,op=...,offset=...,length=..."})`'
        )
    try:
        return read_trace(Trace(held.path, FRAME_FORMAT))
    except _native.TraceError as error:
        raise SpecError(str(error).replace(held.path, FRAME)) from None


def _times(times: pl.Series) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return times in nanoseconds, converted by their type where that has a unit."""
    import polars as pl

    unit_ns: int
    match times.dtype:
        case pl.Datetime(time_unit=unit) | pl.Duration(time_unit=unit):
            unit_ns = UNIT_NS[unit]
        case pl.Date:
            unit_ns = DAY_NS
        case pl.Time:
            unit_ns = 1
        case _:
            return _whole(times)
    # 128 bits hold every date in nanoseconds; 64 bits end in the year 2554.
    ticks = times.to_physical().cast(pl.Int128)
    nanoseconds = (ticks * pl.Series([unit_ns], dtype=pl.Int128)).cast(pl.UInt64, strict=False)
    _refuse_first(times, nanoseconds.is_null(), EXPECTED_TIME)
    return nanoseconds.to_numpy()


def _volume_names(column: pl.Series) -> pl.Series:
    """Return the names of volumes; whole numbers held as floats are named as whole numbers."""
    import polars as pl

    if column.dtype.is_nested() or column.dtype == pl.Object:
        raise _of_type(column, "names or numbers")
    _refuse_first(column, column.is_null(), "the name of a volume")
    if column.dtype.is_float() or column.dtype.is_decimal():
        return pl.Series(column.name, _whole(column)).cast(pl.String)
    return column.cast(pl.String)


def _op_numbers(op: pl.Series) -> np.ndarray[Any, np.dtype[np.uint8]]:
    import polars as pl

    if op.dtype.is_numeric():
        numbers = pl.Series(op.name, _whole(op))
        _refuse_first(op, numbers >= len(OPS), "0 read, 1 write, 2 trim or 3 flush")
        return numbers.cast(pl.UInt8).to_numpy()
    if op.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        raise _of_type(op, f"words such as {', '.join(OPS)}")
    words = op.cast(pl.String)
    numbers = words.str.strip_chars().str.to_lowercase()
    numbers = numbers.replace_strict(OP_WORDS, default=None, return_dtype=pl.UInt8)
    _refuse_first(words, numbers.is_null(), f"{', '.join(OPS)} (or {', '.join(SHORT_OPS)})")
    return numbers.to_numpy()


def _whole(column: pl.Series) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return a column of whole numbers as they are. Errors: `SpecError`, nothing is cut off."""
    import polars as pl

    if not (column.dtype.is_numeric() or column.dtype in (pl.String, pl.Null)):
        raise _of_type(column, EXPECTED_WHOLE)
    whole = column.cast(pl.UInt64, strict=False)
    fits = whole.is_not_null()
    if column.dtype.is_float() or column.dtype.is_decimal():
        fits &= (column == column.round(0)).fill_null(False)
    _refuse_first(column, ~fits, EXPECTED_WHOLE)
    return whole.to_numpy()


def _refuse_first(column: pl.Series, is_bad: pl.Series, expected: str) -> None:
    """Refuse the first value that is bad, by its row from 1. Errors: `SpecError`."""
    row = is_bad.arg_max()
    if row is None or not is_bad[row]:
        return
    value = column[row]
    if value is None:
        found = "a missing value"
    else:
        found = f"`{value}`" if isinstance(value, str) else f"{value}"
    raise SpecError(f"row {row + 1}, `{column.name}`: found {found}, expected {expected}")


def _of_type(column: pl.Series, expected: str) -> SpecError:
    return SpecError(f"`{column.name}`: found a column of type {column.dtype}, expected {expected}")


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
            raise SpecError(f"`first`: found {self.first}, expected 1 or more")
        if self.to_ns is not None and self.to_ns <= self.from_ns:
            begin, end = words.whole_duration(self.from_ns), words.whole_duration(self.to_ns)
            raise SpecError(
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
            raise SpecError(watched.nothing(selection))
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
            begin = words.whole_duration(selection.from_ns)
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


def read_trace(trace: TraceLike, *, first: int | None = None) -> pl.DataFrame:
    """Read a trace into a frame, whatever its format.

    `trace` is a path, or a `Trace` that also says how to read it. Columns are `time_ns`,
    `offset_bytes`, `length_bytes` (u64), `op` (an enum of read, write, trim, flush) and `volume`
    (categorical); rows are in file order. `first` keeps at most so many requests. Errors:
    `TraceError` for an unreadable file or record, `SpecError` for an unknown format or option.
    """
    import polars as pl

    found = opened(trace)
    selection = Selection(first=first, volume=found.how.volume)
    frames = list(_frames(open_trace(found.path, found.how), selection, BATCH))
    return pl.concat(frames) if frames else _schema_frame()


def scan_trace(trace: TraceLike, *, batch: int = BATCH) -> pl.LazyFrame:
    """Return a trace as a lazy frame: nothing is read before it is collected.

    A query reads the trace a `batch` of requests at a time; columns that it does not use are not
    made, rows that its filters drop are dropped batch by batch, and reading ends with the last row
    that it takes (`head`, `slice`). Columns and errors: as `read_trace`; errors appear on
    collecting, but for a file that cannot be opened.
    """
    from polars.io.plugins import register_io_source

    if batch < 1:
        raise SpecError(f"`batch`: found {batch}, expected 1 or more")
    found = opened(trace)
    open_trace(found.path, found.how)

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        reader = open_trace(found.path, found.how)
        # Without a predicate the rows asked for are the first; else they are the first that fit.
        first = n_rows if predicate is None else None
        selection = Selection(first=first, volume=found.how.volume)
        left = n_rows
        for columns in select(reader, selection, min(batch, batch_size or batch)):
            frame = _picked(columns, reader.volumes(), with_columns)
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= len(frame)
            yield frame
            if left == 0:
                return

    return register_io_source(source, schema=_schema_frame().schema, is_pure=True)


def write_trace(
    requests: Any,
    path: PathLike,
    *,
    format: str | None = None,
    options: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> Written:
    """Write requests to a trace file.

    `requests` is a polars frame, lazy or not, anything with `__arrow_c_stream__` (pyarrow, duckdb,
    pandas), an iterable of those, or another trace (a path or a `Trace`). Columns are those of
    `read_trace`, of which `volume` may be left out. The suffix of `path` names the format and the
    compression (`.parquet`, `.csv`, `.csv.gz`, `.oracleGeneral.zst`) unless `format` does. The file
    appears under its name when complete; an existing one is replaced with `overwrite` alone, a file
    that is read never. Errors: `SpecError` for a missing or wrong column or a refused path,
    `TraceError` when the file cannot be written.
    """
    if isinstance(requests, str | os.PathLike | Trace):
        found = opened(requests)
        selection = Selection(volume=found.how.volume)
        source = open_trace(found.path, found.how)
        return copy(
            source, path, selection=selection, format=format, options=options, overwrite=overwrite
        )
    targets.check(path, overwrite=overwrite)
    writer = _native.TraceWriter(os.fspath(path), format, dict(options or {}))
    known: dict[str, int] = {}
    try:
        for part in [requests] if is_frame(requests) else requests:
            columns = columns_of(as_frame(part), known)
            writer.write(*columns, list(known))
        targets.check(path, overwrite=overwrite)
        return Written(*writer.finish())
    finally:
        writer.discard()


def _frames(source: ColumnSource, selection: Selection, batch: int) -> Iterator[pl.DataFrame]:
    for columns in select(source, selection, batch):
        yield to_frame(columns, source.volumes())


def _picked(columns: Columns, volumes: Sequence[str], names: Sequence[str] | None) -> pl.DataFrame:
    """Return the columns called `names` as a frame, all of them when `names` is None."""
    import polars as pl

    if names is None:
        return to_frame(columns, volumes)
    # A query that counts rows may name no column; rows need one.
    return pl.DataFrame({n: _series(n, columns, volumes) for n in names or COLUMNS[:1]})


def _series(name: str, columns: Columns, volumes: Sequence[str]) -> pl.Series:
    import polars as pl

    column = pl.Series(name, columns[COLUMNS.index(name)])
    if name == "op":
        return pl.Series(name, OPS, dtype=pl.Enum(OPS)).gather(column)
    if name == "volume":
        known = pl.Series(name, list(volumes), dtype=pl.String).cast(pl.Categorical)
        return known.gather(column)
    return column


def to_frame(columns: Columns, volumes: Sequence[str]) -> pl.DataFrame:
    """Return columns as a frame with the words of `op` and the names of `volume`."""
    import polars as pl

    return pl.DataFrame({name: _series(name, columns, volumes) for name in COLUMNS})


def _schema_frame() -> pl.DataFrame:
    import polars as pl

    numbers = dict.fromkeys(("time_ns", "offset_bytes", "length_bytes"), pl.UInt64)
    return pl.DataFrame(schema={**numbers, "op": pl.Enum(OPS), "volume": pl.Categorical})
