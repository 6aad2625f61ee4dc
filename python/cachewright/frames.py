"""Traces as polars frames and Arrow.

For: `read_trace`, `scan_trace`, `write_trace`. Must never know: any format. Columns: `time_ns`
(nanoseconds in the trace's own epoch), `offset_bytes`, `length_bytes` (u64), `op` (read, write,
trim, flush) and `volume` (its name).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cachewright import _native
from cachewright.spec import PathLike, TraceOptions
from cachewright.traces import (
    BATCH,
    NATIVE_FORMAT,
    OPS,
    VOLUME_COLUMN,
    ColumnSource,
    Selection,
    Written,
    open_trace,
    select,
)

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from cachewright.types import Columns


def read_trace(
    path: PathLike,
    *,
    format: str | None = None,
    on_bad_record: str = "fail",
    options: Mapping[str, str] | None = None,
    volume: str | None = None,
    first: int | None = None,
) -> pl.DataFrame:
    """Read a trace into a frame, whatever its format.

    Columns are `time_ns`, `offset_bytes`, `length_bytes` (u64), `op` (an enum of read, write,
    trim, flush) and `volume` (categorical); rows are in file order. `volume` keeps one volume,
    `first` at most so many requests. Errors: `TraceError` for an unreadable file or record,
    `SpecError` for an unknown format or option.
    """
    import polars as pl

    how = TraceOptions(format, on_bad_record, options or {}, volume)
    frames = list(_frames(open_trace(path, how), Selection(first=first, volume=volume), BATCH))
    if frames:
        return pl.concat(frames)
    return _schema_frame()


def scan_trace(
    path: PathLike,
    *,
    batch: int = BATCH,
    format: str | None = None,
    on_bad_record: str = "fail",
    options: Mapping[str, str] | None = None,
    volume: str | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield a trace as frames of at most `batch` requests, in memory one at a time.

    Each frame is an Arrow stream for other libraries (`__arrow_c_stream__`). Columns and errors:
    as `read_trace`.
    """
    how = TraceOptions(format, on_bad_record, options or {}, volume)
    return _frames(open_trace(path, how), Selection(volume=volume), batch)


def write_trace(
    requests: Any,
    path: PathLike,
    *,
    format: str = NATIVE_FORMAT,
    options: Mapping[str, str] | None = None,
) -> Written:
    """Write requests to a trace file.

    `requests` is a polars frame, anything with `__arrow_c_stream__` (pyarrow, duckdb, pandas), or
    an iterable of those; its columns are those of `read_trace`, of which `volume` may be left out.
    The file appears under its name when complete. Errors: `SpecError` for a missing or wrong
    column, `TraceError` when the file cannot be written.
    """
    import polars as pl

    writer = _native.TraceWriter(os.fspath(path), format, dict(options or {}))
    single = isinstance(requests, pl.DataFrame) or hasattr(requests, "__arrow_c_stream__")
    known: dict[str, int] = {}
    for part in [requests] if single else requests:
        frame = part if isinstance(part, pl.DataFrame) else pl.DataFrame(part)
        columns = _columns(frame, known)
        writer.write(*columns, list(known))
    return Written(*writer.finish())


def _frames(source: ColumnSource, selection: Selection, batch: int) -> Iterator[pl.DataFrame]:
    for columns in select(source, selection, batch):
        yield to_frame(columns, source.volumes())


def to_frame(columns: Columns, volumes: Sequence[str]) -> pl.DataFrame:
    """Return columns as a frame with the words of `op` and the names of `volume`."""
    import polars as pl

    time_ns, offset_bytes, length_bytes, op, volume = columns
    kinds = pl.Series(OPS, dtype=pl.Enum(OPS))
    names = pl.Series(list(volumes), dtype=pl.String).cast(pl.Categorical)
    return pl.DataFrame(
        {
            "time_ns": time_ns,
            "offset_bytes": offset_bytes,
            "length_bytes": length_bytes,
            "op": kinds.gather(pl.Series(op)),
            "volume": names.gather(pl.Series(volume)),
        }
    )


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
