"""A user's own volumes in place of the reference traces: `reproduce PAPER --traces FOLDER`.

For: which file of a folder stands for which workload of a paper, and how long a trace lasts. Must
never know: what a paper does with a workload. A file stands for the workload that its name begins
with (`oltp.csv.zst`, `oltp.load.csv.zst`); `volumes.toml` in the folder names files otherwise.
Units: nanoseconds.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import traces
from cachewright._native import SpecError
from cachewright.stack import STACK_SUFFIX
from cachewright.traces import TraceOptions

if TYPE_CHECKING:
    from cachewright.types import Columns
    from cachewright_lab.reproduce.specs import Workload

MANIFEST = "volumes.toml"
LOAD = "load"
# What the specs say of a reference trace itself, and of no other volume.
OF_REFERENCE = (
    *("path", LOAD, "span", "phases_s", "capacity"),
    *("format", "options", "time_scale", "stop", "change", "windows"),
)
# Files that stand beside traces and are none: by ending, and the names of a capture's files.
BESIDE = {".json", ".md"}
FILES = "files"
Table = dict[str, Any]


def given(
    folder: Path,
    wanted: Sequence[Mapping[str, Any]],
    others: Sequence[str] = (),
    *,
    needed: bool = True,
) -> list[Table]:
    """Return the tables of the workloads that the folder has a trace of, with its paths.

    `others` are names that a manifest may have beside: those of other studies of the paper. Errors:
    `SpecError` for a folder without any if one is `needed`, two files for one workload, a bad
    manifest.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise SpecError(f"--traces: {folder}: found {found}, expected a folder of traces")
    names = [str(one["name"]) for one in wanted]
    named = _manifest(folder, [*names, *others])
    tables = []
    for one in wanted:
        name = str(one["name"])
        own = named.get(name) or _by_name(folder, name)
        if own:
            kept = {key: value for key, value in one.items() if key not in OF_REFERENCE}
            tables.append(kept | own)
    if not tables and needed:
        raise SpecError(
            f"--traces: {folder}: found no trace of {', '.join(names)}, expected files such as "
            f"`{names[0]}.csv`, or `{MANIFEST}`"
        )
    return tables


def usable(table: Mapping[str, Any]) -> bool:
    """Return whether all that a table of a study must say is still there without the reference."""
    return not table.get("judges") or "kind" in table or "phases_s" in table


def _by_name(folder: Path, name: str) -> Table:
    """Return the paths of the files whose names begin with a workload's.

    `NAME.files.csv.zst` of a capture of system calls holds names of files: it is no trace.
    """
    whole: list[Path] = []
    loads: list[Path] = []
    for path in sorted(folder.iterdir()):
        parts = path.name.split(".")
        if not path.is_file() or parts[0] != name:
            continue
        if path.suffix in BESIDE or FILES in parts[1:]:
            continue
        (loads if LOAD in parts[1:] else whole).append(path)
    for found in (whole, loads):
        if len(found) > 1:
            both = " and ".join(f"`{path.name}`" for path in found[:2])
            raise SpecError(f"--traces: {folder}: found {both}, expected one trace of `{name}`")
    if not whole:
        return {}
    return {"path": str(whole[0].resolve())} | ({LOAD: str(loads[0].resolve())} if loads else {})


def _manifest(folder: Path, names: Sequence[str]) -> dict[str, Table]:
    """Return what the folder's manifest says of each workload."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: {error}") from None
    found: dict[str, Table] = {}
    for name, table in document.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, 1) or names
            raise SpecError(f"{path}: `{name}`: expected a workload such as `{near[0]}`")
        if not isinstance(table, dict) or not isinstance(table.get("path"), str):
            raise SpecError(f"{path}: `{name}`: found no `path`, expected the file of its trace")
        found[name] = {**table, **{k: _file(path, table, k) for k in ("path", LOAD) if k in table}}
    return found


def _file(manifest: Path, table: Mapping[str, Any], key: str) -> str:
    path = manifest.parent / str(table[key])
    if not path.is_file():
        raise SpecError(f"{manifest}: `{key}`: {path}: found no file, expected a trace")
    return str(path.resolve())


@cache
def span_ns(path: Path) -> int:
    """Return the time from a trace's first request to its last. Errors: `TraceError`."""
    low, high = None, 0
    for times, *_ in _batches(path):
        first, last = int(times.min()), int(times.max())
        low = first if low is None else min(low, first)
        high = max(high, last)
    return 0 if low is None else high - low


@cache
def reach_bytes(path: Path) -> int:
    """Return the end of the last byte that a trace touches. Errors: `TraceError`."""
    ends = (int((columns[1] + columns[2]).max()) for columns in _batches(path))
    return max(ends, default=0)


def requests(workload: Workload, stop_ns: int | None = None) -> int:
    """Return how many requests a trace has, those before `stop_ns` alone; of its load all."""
    table = workload.table
    options = tuple(sorted(table.get("options", {}).items()))
    found = _count(workload.path, stop_ns, table.get("format"), options)
    return found + (0 if workload.load is None else _count(workload.load, None))


@cache
def _count(
    path: Path,
    stop_ns: int | None,
    kind: str | None = None,
    options: tuple[tuple[str, str], ...] = (),
) -> int:
    first, found = None, 0
    for times, *_ in _batches(path, kind, dict(options)):
        first = int(times[0]) if first is None else first
        found += len(times) if stop_ns is None else int((times - first < stop_ns).sum())
    return found


def _batches(
    path: Path, kind: str | None = None, options: Mapping[str, str] | None = None
) -> Iterator[Columns]:
    kind = "synth" if path.suffix == STACK_SUFFIX else kind
    reader = traces.open_trace(path, TraceOptions(format=kind, options=options or {}))
    while len((columns := reader.read(traces.BATCH))[0]):
        yield columns
