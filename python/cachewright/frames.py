"""Traces as polars frames and Arrow.

For: `read_trace`, `scan_trace`, `write_trace`. Must never know: any format. Columns: `time_ns`
(nanoseconds in the trace's own epoch), `offset_bytes`, `length_bytes` (u64), `op` (read, write,
trim, flush) and `volume` (its name).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from cachewright import _native, targets
from cachewright.source import PathLike, Trace, TraceLike, is_frame, opened
from cachewright.traces import (
    BATCH,
    OPS,
    VOLUME_COLUMN,
    ColumnSource,
    Selection,
    Written,
    copy,
    open_trace,
    select,
)

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from cachewright.types import Columns

COLUMNS = ("time_ns", "offset_bytes", "length_bytes", "op", "volume")
VERSION_KEY, VERSION = "cachewright.version", "1"
VOLUMES_KEY = "cachewright.volumes"
FIRST_NUMBER = 512
"""First number of the files in which frames are handed over."""


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
        raise _native.SpecError(f"`batch`: found {batch}, expected 1 or more")
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
            columns = _columns(as_frame(part), known)
            writer.write(*columns, list(known))
        targets.check(path, overwrite=overwrite)
        return Written(*writer.finish())
    finally:
        writer.discard()


class HeldInMemory:
    """A frame as a native trace in memory, readable under `path` while this value lives."""

    def __init__(self, frame: pl.DataFrame) -> None:
        import polars as pl

        known: dict[str, int] = {}
        time_ns, offset_bytes, length_bytes, op, volume = _columns(frame, known)
        if len(time_ns) == 0:
            raise _native.SpecError("found a frame without a row, expected requests")
        rows = pl.DataFrame(
            {
                "time_ns": time_ns,
                "offset_bytes": offset_bytes,
                "length_bytes": length_bytes,
                "op": op,
                "volume": volume,
            }
        )
        self._file = _unnamed_file()
        self.path = f"/proc/self/fd/{self._file.fileno()}"
        rows.write_parquet(
            self._file,
            compression="lz4",
            statistics=False,
            metadata={VERSION_KEY: VERSION, VOLUMES_KEY: json.dumps(list(known))},
        )
        self._file.flush()


def held_in_memory(frame: Any) -> HeldInMemory:
    """Return a frame as a trace that Rust can open. Errors: `SpecError` for a wrong column."""
    return HeldInMemory(as_frame(frame))


def as_frame(table: Any) -> pl.DataFrame:
    """Return a frame, a lazy frame or an Arrow stream as a frame."""
    import polars as pl

    if isinstance(table, pl.LazyFrame):
        return table.collect(engine="streaming")
    return table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)


def _unnamed_file() -> IO[bytes]:
    """Return a file that has no name and vanishes when closed; in memory where Linux offers it.

    Its number is the first free one from `FIRST_NUMBER` on, so that the same program has the same
    number, and with it the same path, in every run.
    """
    if not hasattr(os, "memfd_create"):
        raise _native.SpecError("found a frame as a trace, expected a path: it takes Linux")
    number = os.memfd_create("cachewright-frame")
    try:
        import fcntl

        moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FIRST_NUMBER)
    except OSError:
        return os.fdopen(number, "w+b")
    os.close(number)
    return os.fdopen(moved, "w+b")


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


def _columns(frame: pl.DataFrame, known: dict[str, int]) -> Columns:
    import polars as pl

    missing = [name for name in _schema_frame().columns[:VOLUME_COLUMN] if name not in frame]
    if missing:
        found = ", ".join(frame.columns)
        raise _native.SpecError(f"found columns {found}, expected also `{missing[0]}`")
    if "volume" not in frame:
        frame = frame.with_columns(volume=pl.lit("0"))
    names = frame["volume"].cast(pl.String)
    for name in names.unique(maintain_order=True):
        known.setdefault(name, len(known))
    volume = names.replace_strict(list(known), list(known.values()), return_dtype=pl.UInt32)
    op = frame["op"]
    if not op.dtype.is_integer():
        op = _op_numbers(op)
    return (
        _whole(frame["time_ns"]),
        _whole(frame["offset_bytes"]),
        _whole(frame["length_bytes"]),
        op.cast(pl.UInt8).to_numpy(),
        volume.to_numpy(),
    )


def _op_numbers(op: pl.Series) -> pl.Series:
    import polars as pl

    words = op.cast(pl.String)
    unknown = [word for word in words.unique() if word not in OPS]
    if unknown:
        raise _native.SpecError(f"`op`: found `{unknown[0]}`, expected {', '.join(OPS)}")
    return words.replace_strict(list(OPS), list(range(len(OPS))), return_dtype=pl.UInt8)


def _whole(column: pl.Series) -> np.ndarray[Any, np.dtype[np.uint64]]:
    import polars as pl

    try:
        if column.null_count() > 0:
            raise _native.SpecError(f"`{column.name}`: found a missing value, expected a number")
        return column.cast(pl.UInt64).to_numpy()
    except pl.exceptions.InvalidOperationError:
        found = f"{column.dtype} from {column.min()!r} to {column.max()!r}"
        raise _native.SpecError(
            f"`{column.name}`: found {found}, expected whole numbers from 0"
        ) from None
