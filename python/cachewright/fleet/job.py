"""A job: tasks that are run once each, whenever it is stopped and begun again.

For: what every command with an engine does. Must never know: what a task computes, where it runs.
What a journal holds is not run again. A task that failed before is run again with `retry_failed`
alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import targets
from cachewright._native import RunError, __version__
from cachewright.fleet.engine import Engine, engine_of
from cachewright.fleet.journal import Journal
from cachewright.fleet.task import MEMORY_BYTES, RETRIES, Task

if TYPE_CHECKING:
    from cachewright.types import PathLike, Progress

FAILED = "failed.jsonl"


@dataclass(frozen=True)
class How:
    """Where tasks run, and how failures are met."""

    engine: str = "local"
    workers: int = 0
    address: str | None = None
    memory_bytes: int | None = None
    retries: int = RETRIES
    retry_failed: bool = False

    def make(self) -> Engine:
        """Return the engine. Errors: `SpecError`."""
        return engine_of(
            self.engine,
            workers=self.workers,
            address=self.address,
            memory_bytes=self.memory_bytes,
        )


@dataclass(frozen=True)
class Rates:
    """What the tasks of a job took, whenever they were run."""

    tasks: int
    seconds: float
    """Of all tasks together, on one worker each."""

    peak_bytes: int
    """The largest memory of a worker."""


def task_of(
    name: str,
    work: str,
    arguments: Mapping[str, Any],
    memory_bytes: int = MEMORY_BYTES,
    inputs: Sequence[Sequence[Any]] = (),
) -> Task:
    """Return a task whose key stands for its work, its arguments, its inputs and this version."""
    text = json.dumps([__version__, work, arguments, inputs], sort_keys=True)
    return Task(
        f"{name} {blake2b(text.encode(), digest_size=12).hexdigest()}",
        name,
        work,
        arguments,
        memory_bytes,
    )


def identity(path: PathLike) -> list[Any]:
    """Return what tells whether a file has changed: an input of a task."""
    try:
        found = os.stat(path)
    except OSError:
        return [os.fspath(path)]
    return [os.fspath(path), found.st_size, found.st_mtime_ns]


def run_job(
    tasks: Sequence[Task],
    journal: Journal,
    how: How,
    *,
    stage: str,
    progress: Progress | None = None,
) -> None:
    """Run every task that the journal does not hold.

    `progress(stage, done, total)` is called after each and cancels by returning False. Errors:
    `SpecError` for an engine, `RunError` when cancelled.
    """
    left = [task for task in tasks if _is_left(task, journal, how.retry_failed)]
    done = len(tasks) - len(left)
    if progress is not None:
        progress(stage, done, len(tasks))
    if not left:
        return
    for outcome in how.make().map(left, how.retries):
        journal.add(outcome)
        done += 1
        if progress is not None and progress(stage, done, len(tasks)) is False:
            raise RunError(f"cancelled; {journal.path} holds {done} of {len(tasks)} {stage}")


def _is_left(task: Task, journal: Journal, retry_failed: bool) -> bool:
    if journal.is_done(task.key):
        return False
    return retry_failed or journal.error(task.key) is None


def failures(tasks: Sequence[Task], journal: Journal) -> list[tuple[str, str]]:
    """Return the names of tasks that failed with their errors, in the order of the tasks."""
    found = [(task.name, journal.error(task.key)) for task in tasks]
    return [(name, error) for name, error in found if error is not None]


def values(tasks: Sequence[Task], journal: Journal) -> Iterator[tuple[Task, Any]]:
    """Yield the values of the tasks that are done, one at a time, in the order of the tasks."""
    for task in tasks:
        if journal.is_done(task.key):
            yield task, journal.value(task.key)


def rates(tasks: Sequence[Task], journal: Journal) -> Rates:
    """Return what the tasks took."""
    found = [journal.places[task.key] for task in tasks if task.key in journal.places]
    return Rates(
        len(found),
        sum(place.seconds for place in found),
        max((place.peak_bytes for place in found), default=0),
    )


def write_failures(tasks: Sequence[Task], journal: Journal, folder: Path) -> list[tuple[str, str]]:
    """Write `failed.jsonl` and return what is in it; remove the file when nothing failed."""
    found, path = failures(tasks, journal), folder / FAILED
    if not found:
        path.unlink(missing_ok=True)
        return found
    lines = [json.dumps({"name": name, "error": error}) for name, error in found]
    targets.write_whole(path, "".join(f"{line}\n" for line in lines))
    return found
