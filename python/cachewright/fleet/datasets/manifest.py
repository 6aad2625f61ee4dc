"""The manifest of a dataset: a row per volume of each file, or per file that cannot be read.

For: `dataset index`, and the volumes of a dataset. Must never know: how a trace is read, where
tasks run. A manifest is Parquet; `COLUMNS` are its columns. A journal beside it holds the rows of
each file as they are found: an index that is stopped goes on, and one that is made again reads only
files that are new or have changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import targets, words
from cachewright._native import SpecError
from cachewright.fleet import job
from cachewright.fleet.datasets import files, measure
from cachewright.fleet.datasets.files import JOURNAL_SUFFIX, MANIFEST, TraceFile
from cachewright.fleet.journal import Journal
from cachewright.fleet.task import Task
from cachewright.traces import TraceOptions

if TYPE_CHECKING:
    import polars as pl

    from cachewright.types import Progress

WORK = "cachewright.fleet.datasets.manifest:file_rows"
COLUMNS = {
    "path": "String",
    "format": "String",
    "bytes": "UInt64",
    "changed": "String",
    "fingerprint": "String",
    "volumes": "UInt32",
    "volume": "String",
    "requests": "UInt64",
    "reads": "UInt64",
    "writes": "UInt64",
    "read_bytes": "UInt64",
    "write_bytes": "UInt64",
    "read_share": "Float64",
    "start_ns": "UInt64",
    "span_ns": "UInt64",
    "working_set_bytes": "UInt64",
    "working_set_exact": "Boolean",
    "error": "String",
}
"""Columns of a manifest with their types."""


@dataclass(frozen=True)
class Reading:
    """How every file of a dataset is opened, as plain values."""

    format: str | None = None
    on_bad_record: str = "fail"
    options: Mapping[str, str] | None = None

    def how(self) -> TraceOptions:
        """Return the same as options of a trace."""
        return TraceOptions(self.format, self.on_bad_record, dict(self.options or {}))

    def plain(self) -> dict[str, Any]:
        """Return the same as arguments of a task."""
        return {
            "format": self.format,
            "on_bad_record": self.on_bad_record,
            "options": dict(self.options or {}),
        }


@dataclass(frozen=True)
class Indexed:
    """A manifest that was written, and the files that could not be read, with their errors."""

    path: Path
    files: int
    rows: pl.DataFrame
    failed: Sequence[tuple[str, str]]
    rates: job.Rates


def manifest_path(location: str, out: Path | None) -> Path:
    """Return where the manifest of a location goes. Errors: `SpecError` when that is not clear."""
    if out is not None:
        return out if out.suffix == Path(MANIFEST).suffix else out / MANIFEST
    if files.is_url(location) or not os.path.isdir(location):
        raise SpecError(
            f"{files.url(location)}: found a dataset that is no folder here, expected "
            "`--out FILE.parquet` for its manifest"
        )
    return Path(location) / MANIFEST


def index(
    location: str,
    out: Path | None = None,
    *,
    reading: Reading | None = None,
    how: job.How | None = None,
    progress: Progress | None = None,
) -> Indexed:
    """Write the manifest of a folder, a glob or a URL.

    Without `out` it is `manifest.parquet` in the folder. Files that cannot be read have a row with
    their `error`. Errors: `SpecError` (no file, no place for the manifest), `RunError` (cancelled).
    """
    path = manifest_path(location, out)
    found = files.found(location)
    tasks = [_task(file, reading or Reading()) for file in found]
    with Journal(path.with_name(path.name + JOURNAL_SUFFIX)) as journal:
        job.run_job(tasks, journal, how or job.How(), stage="files", progress=progress)
        frame = _frame(found, tasks, journal)
        with targets.whole(path) as part:
            frame.write_parquet(part, compression="zstd")
        failed = job.failures(tasks, journal)
        return Indexed(path, len(found), frame, failed, job.rates(tasks, journal))


def _task(file: TraceFile, reading: Reading) -> Task:
    arguments = {
        "path": file.path,
        "size_bytes": file.size_bytes,
        "changed": file.changed,
        **reading.plain(),
    }
    return job.task_of(file.path, WORK, arguments)


def file_rows(
    path: str,
    size_bytes: int,
    changed: str,
    format: str | None,
    on_bad_record: str,
    options: dict[str, str],
) -> list[dict[str, Any]]:
    """Return the rows of one file. Errors: `TraceError`, `SpecError`, `OSError`."""
    how = TraceOptions(format, on_bad_record, options)
    with files.at_hand(path) as local:
        facts = measure.measure(local, how)
        name, print_ = measure.format_of(local, how), measure.fingerprint(local)
    own = files.volume_of(path)
    rows = facts.rows()
    if not rows:
        raise SpecError(f"{path}: found no request, expected some")
    head = {
        "path": path,
        "format": name,
        "bytes": size_bytes,
        "changed": changed,
        "fingerprint": print_,
        "volumes": len(rows),
    }
    return [{**head, **row, "volume": own or row["volume"], "error": None} for row in rows]


def _frame(found: Sequence[TraceFile], tasks: Sequence[Task], journal: Journal) -> pl.DataFrame:
    import polars as pl

    rows: list[dict[str, Any]] = []
    for file, task in zip(found, tasks, strict=True):
        if journal.is_done(task.key):
            rows += journal.value(task.key)
            continue
        error = journal.error(task.key)
        rows.append(
            {
                "path": file.path,
                "bytes": file.size_bytes,
                "changed": file.changed,
                "error": error,
            }
        )
    return pl.DataFrame(rows, schema={name: getattr(pl, kind) for name, kind in COLUMNS.items()})


def read(path: Path) -> pl.DataFrame:
    """Return a manifest. Errors: `SpecError` when it cannot be read or lacks a column."""
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except OSError as error:
        raise SpecError(f"{path}: {words.reason(error)}; expected a manifest") from None
    except pl.exceptions.PolarsError as error:
        raise SpecError(f"{path}: found no Parquet ({error}), expected a manifest") from None
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise SpecError(f"{path}: found no column `{missing[0]}`, expected a manifest")
    return frame
