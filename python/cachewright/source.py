"""One way to name a trace, everywhere: a path, a frame, or a `Trace` that also says how to read it.

For: what `simulate`, `mrc`, `run`, `compare`, `wa`, `info`, `characterize`, `read_trace` and
`scan_trace` take. Must never know: any format, or what a trace is used for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cachewright._native import SpecError
from cachewright.held import held_in_memory
from cachewright.types import PathLike

if TYPE_CHECKING:
    import polars as pl

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
