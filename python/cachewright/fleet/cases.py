"""Sweeps case by case: each case of a `compare` is a task.

For: `compare --engine` on stacks and traces; the laboratory runs figures of papers by `run_tasks`.
Must never know: how a case is run, how a result is shown. A worker runs a case in a folder of its
own and returns the files that the experiment crate keeps of it; their names stand for all that they
depend on. This process alone writes them to the result folder. The run that follows there finds
every case, and writes the same result whichever engine ran and however often it was stopped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native, targets
from cachewright._native import SpecError
from cachewright.fleet import job
from cachewright.fleet.datasets.files import JOURNAL_SUFFIX, scratch
from cachewright.fleet.journal import Journal
from cachewright.fleet.task import Task
from cachewright.policies import Finder
from cachewright.stack import Stack, files_of, load, pairs, plain, vary_pairs

if TYPE_CHECKING:
    from cachewright.stack import Settings, SpecLike
    from cachewright.types import PathLike, Progress

CASE = "cachewright.fleet.cases:case"
CASES = "cases"
THREADS = 1
NAMED = 3


def run_cases(
    spec: SpecLike,
    vary: Mapping[str, Sequence[Any]],
    out: Path,
    *,
    settings: Settings | None = None,
    how: job.How,
    progress: Progress | None = None,
) -> None:
    """Run every combination of `vary` that `out` does not hold, as a task each.

    `api.compare` with `out` then finds them. Errors: `SpecError`; `RunError` when cancelled or when
    a case failed.
    """
    stack = load(spec)
    if stack.held:
        raise SpecError("found a frame as a trace, expected files: cases run in other processes")
    inputs = [job.identity(path) for path in files_of(spec)]
    tasks = [_case_task(stack, settings, values, inputs) for values in _combinations(vary)]
    run_tasks(tasks, out, "cases", how, progress)


def run_tasks(
    tasks: Sequence[Task], out: Path, stage: str, how: job.How, progress: Progress | None
) -> None:
    """Run tasks and write the cases that each gives to `out`, which then holds them.

    `stage` names the tasks in messages and the journal. Errors: as `run_cases`.
    """
    with Journal(out / f"{stage}{JOURNAL_SUFFIX}") as journal:
        job.run_job(tasks, journal, how, stage=stage, progress=progress)
        for _, files in job.values(tasks, journal):
            _keep(files, out)
        failed = job.write_failures(tasks, journal, out)
    if failed:
        shown = "; ".join(f"{name}: {error}" for name, error in failed[:NAMED])
        more = f"; and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
        raise _native.RunError(
            f"{len(failed)} of {len(tasks)} {stage} failed ({shown}{more}); {out / job.FAILED} "
            "lists them, `--retry-failed` tries them again"
        )


def _keep(files: Mapping[str, str], out: Path) -> None:
    """Write the files of a case that the folder lacks."""
    for name, text in files.items():
        if not (out / name).exists():
            targets.write_whole(out / name, text)


def _combinations(vary: Mapping[str, Sequence[Any]]) -> Iterator[list[tuple[str, str]]]:
    vary_pairs(vary)
    for values in itertools.product(*vary.values()):
        yield [(key, plain(value)) for key, value in zip(vary, values, strict=True)]


def _case_task(
    stack: Stack,
    settings: Settings | None,
    values: Sequence[tuple[str, str]],
    inputs: Sequence[Sequence[Any]],
) -> Task:
    return job.task_of(
        ", ".join(f"{key}={value}" for key, value in values) or "the case",
        CASE,
        {
            "text": stack.text,
            "origin": stack.origin,
            "settings": pairs(settings),
            "values": [list(pair) for pair in values],
        },
        inputs=inputs,
    )


def case(
    text: str, origin: str, settings: list[tuple[str, str]], values: list[list[str]]
) -> dict[str, str]:
    """Run one case; return what is kept of it, by name below a result folder."""
    with scratch() as folder:
        _native.run(
            text,
            origin,
            [(key, value) for key, value in settings],
            [(key, [value]) for key, value in values],
            threads=THREADS,
            out=str(folder),
            fresh=False,
            load=Finder().load,
            progress=None,
        )
        return kept_cases(folder)


def kept_cases(folder: PathLike) -> dict[str, str]:
    """Return the files of the cases that a result folder keeps, by their paths in it."""
    root = Path(folder)
    found = sorted(root.glob(f"**/{CASES}/*.json"))
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in found}
