"""The trace files of a folder, a glob or a URL, and each as a local path while it is read.

For: `found` and `at_hand`. Must never know: any format. A URL is read through fsspec (extra
`fleet`). A file elsewhere is copied to a scratch folder, a piece at a time, and removed after use:
memory stays as it is, the disk needs room for one file per worker. Hidden files, and files of
datasets themselves, are left out.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cachewright._native import SpecError

MANIFEST = "manifest.parquet"
JOURNAL_SUFFIX = ".journal"
# What published datasets say of themselves beside their traces.
ABOUT = ("README", "LICENSE", "COPYING", "CITATION")
PIECE_BYTES = 8 << 20
# A command line that takes paths has made one slash of two.
_URL = re.compile(r"^([a-z][a-z0-9+.-]+):/+")
# URLs of one of these begin at the root.
_ROOTED = ("file", "local", "memory")


@dataclass(frozen=True)
class TraceFile:
    """A file and what tells whether it has changed."""

    path: str
    """A local path, or a URL."""

    size_bytes: int
    changed: str
    """Time of change, entity tag, or nothing: as exact as the file system tells."""


def is_url(location: str) -> bool:
    """Return whether a location is a URL.

    >>> is_url("s3:/bucket/key"), is_url("traces/a.csv")
    (True, False)
    """
    return _URL.match(location) is not None


def url(location: str) -> str:
    """Return a URL with the slashes that a path has lost.

    >>> url("s3:/bucket/a.csv"), url("file:/data/*.csv")
    ('s3://bucket/a.csv', 'file:///data/*.csv')
    """
    found = _URL.match(location)
    if found is None:
        return location
    root = "/" if found[1] in _ROOTED else ""
    return f"{found[1]}://{root}{location[found.end() :]}"


def is_dataset(location: str) -> bool:
    """Return whether a location stands for many files: a folder, a glob, a URL, a manifest."""
    if is_url(location) or os.path.isdir(location) or Path(location).name == MANIFEST:
        return True
    return glob.has_magic(location) and not os.path.exists(location)


def found(location: str) -> list[TraceFile]:
    """Return the trace files of a folder (with all below it), a glob, a URL or a path, by name.

    Errors: `SpecError` when there is none, or for a URL without fsspec.
    """
    files = _elsewhere(url(location)) if is_url(location) else _here(location)
    files = sorted(files, key=lambda file: file.path)
    if not files:
        raise SpecError(f"{location}: found no file, expected traces")
    return files


def _here(location: str) -> list[TraceFile]:
    if os.path.isdir(location):
        paths = [
            os.path.join(folder, name)
            for folder, folders, names in os.walk(location)
            if _sorted_visible(folders)
            for name in names
        ]
    else:
        paths = [path for path in glob.glob(location, recursive=True) if os.path.isfile(path)]
        if not paths and os.path.isfile(location):
            paths = [location]
    found = []
    for path in filter(_is_wanted, paths):
        facts = os.stat(path)
        found.append(TraceFile(path, facts.st_size, str(facts.st_mtime_ns)))
    return found


def _sorted_visible(folders: list[str]) -> bool:
    """Leave hidden folders out of a walk, in place."""
    folders[:] = sorted(name for name in folders if not name.startswith("."))
    return True


def _elsewhere(location: str) -> list[TraceFile]:
    system, path = _system(location)
    try:
        names = system.glob(path) if glob.has_magic(path) else system.find(path)
        facts = [(name, system.info(name)) for name in filter(_is_wanted, names)]
    except FileNotFoundError:
        return []
    return [
        TraceFile(system.unstrip_protocol(name), int(one["size"]), _changed(one))
        for name, one in facts
        if one["type"] == "file"
    ]


def _changed(facts: dict[str, Any]) -> str:
    """Return what a file system tells of a file's last change."""
    for key in ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created"):
        if facts.get(key) is not None:
            return str(facts[key])
    return ""


def _system(location: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it. Errors: `SpecError`."""
    try:
        import fsspec
    except ModuleNotFoundError:
        raise SpecError(
            f"{location}: found no `fsspec`, expected it for a URL: "
            "pip install 'cachewright[fleet]'"
        ) from None
    try:
        system, path = fsspec.core.url_to_fs(location)
    except (ImportError, ValueError) as error:
        raise SpecError(f"{location}: {error}; expected a URL that fsspec opens") from None
    return system, str(path)


def _is_wanted(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    if name.startswith((".", "_")) or name.upper().startswith(ABOUT):
        return False
    return not (name == MANIFEST or name.endswith(JOURNAL_SUFFIX))


def stem(path: str) -> str:
    """Return a file's name up to the first dot.

    >>> stem("s3://bucket/oltp.csv.zst")
    'oltp'
    """
    return path.rsplit("/", 1)[-1].split(".", maxsplit=1)[0] or "trace"


def volume_of(path: str) -> str | None:
    """Return the volume that a part of a converted dataset belongs to, by its folder.

    >>> volume_of("out/volume=a%2Fb/part-00000-1f.parquet")
    'a/b'
    """
    for folder in path.split("/")[:-1]:
        if folder.startswith("volume="):
            return unquote(folder.removeprefix("volume="))
    return None


def source_of(path: str) -> str:
    """Return what tells the file that a part was made of: the end of the part's name.

    >>> source_of("out/volume=a/part-00002-1f0c.parquet")
    '1f0c.parquet'
    """
    return path.rsplit("-", 1)[-1]


@contextmanager
def at_hand(path: str) -> Iterator[str]:
    """Give a file as a local path; a copy of one elsewhere is removed at the end."""
    if not is_url(path):
        yield path
        return
    system, name = _system(path)
    with scratch() as folder:
        target = folder / name.rsplit("/", 1)[-1]
        with system.open(name, "rb") as source, open(target, "wb") as copy:
            shutil.copyfileobj(source, copy, PIECE_BYTES)
        yield str(target)


@contextmanager
def scratch() -> Iterator[Path]:
    """Give an empty folder that is removed at the end (`TMPDIR` says where)."""
    with tempfile.TemporaryDirectory(prefix="cachewright-") as folder:
        yield Path(folder)
