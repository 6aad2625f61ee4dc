"""Traces as polars frames and Arrow.

For: `read_trace`, `scan_trace`, `write_trace`. Must never know: any format. Columns: `time_ns`
(nanoseconds in the trace's own epoch), `offset_bytes`, `length_bytes` (u64), `op` (read, write,
trim, flush) and `volume` (its name).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cachewright import _native, targets
from cachewright.held import COLUMNS, OPS, as_frame, columns_of
from cachewright.source import Trace, TraceLike, is_frame, opened
from cachewright.traces import (
    BATCH,
    ColumnSource,
    Selection,
    Written,
    copy,
    open_trace,
    select,
)
from cachewright.types import PathLike

if TYPE_CHECKING:
    import polars as pl

    from cachewright.types import Columns


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
