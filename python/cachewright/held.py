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
VOLUME_COLUMN = 4
VERSION_KEY, VERSION = "cachewright.version", "1"
VOLUMES_KEY = "cachewright.volumes"
FIRST_NUMBER = 512
"""First number of the files in which frames are handed over."""


class HeldInMemory:
    """A frame as a native trace in memory, readable under `path` while this value lives."""

    def __init__(self, frame: pl.DataFrame) -> None:
        import polars as pl

        known: dict[str, int] = {}
        time_ns, offset_bytes, length_bytes, op, volume = columns_of(frame, known)
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


def columns_of(frame: pl.DataFrame, known: dict[str, int]) -> Columns:
    """Return a frame as columns; `known` gathers the names of volumes. Errors: `SpecError`."""
    import polars as pl

    missing = [name for name in COLUMNS[:VOLUME_COLUMN] if name not in frame]
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
