"""Sweeps case by case: each case of a `compare`, or each figure of a paper, is a task.

For: `compare --engine` on stacks and traces, and `reproduce --engine`. Must never know: how a case
is run, how a result is shown. A worker runs a case in a folder of its own and returns the files
that the experiment crate keeps of it; their names stand for all that they depend on. This process
alone writes them to the result folder. The run that follows there finds every case, and writes the
same result whichever engine ran and however often it was stopped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
FIGURE = "cachewright.fleet.cases:figure"
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
    _run(tasks, out, "cases", how, progress)


@dataclass(frozen=True)
class FigureTasks:
    """Figures of a paper that are run as tasks, and what `reproduce.load` takes beside them."""

    paper: str
    figures: Sequence[str]
    quick: bool = False
    specs: Path | None = None
    traces: Path | None = None

    def tasks(self) -> list[Task]:
        """Return a task for each figure."""
        common = {
            "paper": self.paper,
            "quick": self.quick,
            "specs": None if self.specs is None else str(self.specs),
            "traces": None if self.traces is None else str(self.traces),
        }
        return [job.task_of(name, FIGURE, {**common, "name": name}) for name in self.figures]


def run_figures(
    wanted: FigureTasks,
    out: Path,
    *,
    how: job.How,
    progress: Progress | None = None,
) -> None:
    """Run every figure of a paper that `out` does not hold, as a task each.

    `reproduce.run` with `out` then finds their cases. Errors: as `run_cases`.
    """
    _run(wanted.tasks(), out, "figures", how, progress)


def _run(
    tasks: Sequence[Task], out: Path, stage: str, how: job.How, progress: Progress | None
) -> None:
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
        return _kept(folder)


def figure(
    paper: str, name: str, quick: bool, specs: str | None, traces: str | None
) -> dict[str, str]:
    """Run one figure of a paper; return what is kept of its cases."""
    from cachewright import reproduce

    what = reproduce.load(
        paper,
        name,
        quick=quick,
        specs=None if specs is None else Path(specs),
        traces=None if traces is None else Path(traces),
    )
    with scratch() as folder:
        reproduce.run(what, out=folder, threads=THREADS)
        return _kept(folder)


def _kept(folder: PathLike) -> dict[str, str]:
    root = Path(folder)
    found = sorted(root.glob(f"**/{CASES}/*.json"))
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in found}
