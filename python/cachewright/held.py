"""Frames as requests by columns, and as traces in memory that Rust can open.

For: whatever takes a frame in place of a trace file. Must never know: any format, what a trace is
used for. Columns: `time_ns` (nanoseconds in the trace's own epoch), `offset_bytes`, `length_bytes`
(u64), `op` (read, write, trim, flush) and `volume` (its name).
"""

from __future__ import annotations

import json
import os
from typing import IO, TYPE_CHECKING, Any

from cachewright import _native

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from cachewright.types import Columns

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
            raise _native.SpecError("found a frame without a row, expected requests")
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


def columns_of(frame: pl.DataFrame, known: dict[str, int]) -> Columns:
    """Return a frame as columns; `known` gathers the names of volumes.

    Typed times become nanoseconds: dates and times since 1970 (UTC), durations and times of day
    since their zero. Errors: `SpecError` for a missing column, a column of another type, and a
    value that is missing or no whole number from 0, with its row from 1.
    """
    import polars as pl

    _check_names(frame)
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


def _check_names(frame: pl.DataFrame) -> None:
    missing = [name for name in COLUMNS[:VOLUME_COLUMN] if name not in frame]
    if missing:
        found = ", ".join(frame.columns)
        raise _native.SpecError(f"found columns {found}, expected also `{missing[0]}`")


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
    raise _native.SpecError(f"row {row + 1}, `{column.name}`: found {found}, expected {expected}")


def _of_type(column: pl.Series, expected: str) -> _native.SpecError:
    return _native.SpecError(
        f"`{column.name}`: found a column of type {column.dtype}, expected {expected}"
    )
