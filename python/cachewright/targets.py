"""Files that a command or a call writes: what may be replaced, and how a file appears whole.

For: one guard for everything that writes a single file, so that no input is ever overwritten and
no file is replaced unless that is asked for. Must never know: what the files hold.
"""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cachewright._native import SpecError
from cachewright.types import PathLike

FORCE = "`--force`"
OVERWRITE = "`overwrite=True`"
PART_SUFFIX = ".tmp"


def check(
    target: PathLike,
    sources: Iterable[PathLike] = (),
    *,
    overwrite: bool = False,
    how: str = OVERWRITE,
) -> Path:
    """Return `target` as a path that may be written.

    A file that is read is refused even with `overwrite`, by whatever name: another spelling, a
    symbolic or a hard link. Any other existing file is refused without `overwrite`; `how` says
    what allows it. Errors: `SpecError`.
    """
    path = Path(target)
    for source in sources:
        if is_same(path, source):
            named = "" if os.fspath(source) == os.fspath(path) else f" (it is {os.fspath(source)})"
            raise SpecError(f"{path}: found a file that is read{named}, expected another to write")
    if os.path.isdir(path):
        raise SpecError(f"{path}: found a folder, expected a file to write")
    if os.path.exists(path) and not os.path.isfile(path):
        raise SpecError(f"{path}: found a device, pipe or socket, expected a file to write")
    if os.path.lexists(path) and not overwrite:
        raise SpecError(f"{path}: found an existing file, expected a new name or {how}")
    return path


def check_all(
    targets: Iterable[PathLike],
    sources: Iterable[PathLike] = (),
    *,
    overwrite: bool = False,
    how: str = OVERWRITE,
) -> None:
    """Check several files that are written together. Errors: as `check`, of the first refused."""
    read = list(sources)
    for target in targets:
        check(target, read, overwrite=overwrite, how=how)


def is_same(one: PathLike, other: PathLike) -> bool:
    """Return whether two paths lead to one file."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        pass
    try:
        return os.path.realpath(one) == os.path.realpath(other)
    except (OSError, ValueError):
        return os.fspath(one) == os.fspath(other)


def write_whole(target: PathLike, content: bytes | str) -> None:
    """Write a file that appears under its name only when it is complete; make its folder.

    Errors: `OSError`; then the target is as it was and nothing else is left.
    """
    with whole(target) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole(target: PathLike) -> Iterator[Path]:
    """Give a path to write to, which is renamed to `target` at the end, or removed at an error."""
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART_SUFFIX}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def removed_at_signals() -> Iterator[None]:
    """Turn signals that end the process into `KeyboardInterrupt`, so that parts are removed.

    A signal that is ignored (`nohup`) or handled otherwise stays so.
    """

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    mine: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        ending = (signal.SIGTERM, signal.SIGHUP)
        mine = [number for number in ending if signal.getsignal(number) == signal.SIG_DFL]
    for number in mine:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
