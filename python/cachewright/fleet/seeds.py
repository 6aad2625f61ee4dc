"""The caching models of one workload from several seeds, as a task each.

For: `train rc-rnn --seeds N --engine`. Must never know: how anything is trained, where tasks run. A
task trains from one seed and returns the files and their report; this process puts them together as
one training from all seeds would have. Times in the report are those of the workers.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright._native import RunError
from cachewright.documents import load, table, values
from cachewright.fleet import job
from cachewright.fleet.datasets.files import JOURNAL_SUFFIX
from cachewright.fleet.journal import Journal
from cachewright.stack import files_of
from cachewright.train.rc_rnn import train_rc_rnn
from cachewright.train.rc_rnn_training import RcRnnTraining
from cachewright.train.reports import CachingModel, CachingReport
from cachewright.train.store import CachingTrainings, file_name, float_name, report_name

if TYPE_CHECKING:
    from cachewright.fleet.task import Task
    from cachewright.types import Progress

SEED = "cachewright.fleet.seeds:seed"
THREADS = 1


def train_seeds(
    stack: Path,
    kind: str,
    out: Path,
    training: RcRnnTraining,
    *,
    judge: Mapping[str, Path],
    settings: Mapping[str, str],
    how: job.How,
    progress: Progress | None = None,
) -> CachingTrainings:
    """Train from each seed as a task; write what `train_rc_rnn` writes into `out`.

    What a stopped call has trained is kept there. Errors: `SpecError`; `RunError` when cancelled or
    when a training failed.
    """
    training.check()
    seeds = range(training.seed, training.seed + training.seeds)
    read = [file for one in (stack, *judge.values()) for file in files_of(one)]
    common = {
        "stack": str(stack.resolve()),
        "kind": kind,
        "judge": {name: str(path.resolve()) for name, path in judge.items()},
        "settings": dict(settings),
    }
    inputs = [job.identity(path) for path in (stack, *judge.values(), *read)]
    tasks = [_task(common, replace(training, seeds=1, seed=seed), inputs) for seed in seeds]
    with Journal(out / f"train{JOURNAL_SUFFIX}") as journal:
        job.run_job(tasks, journal, how, stage="seeds", progress=progress)
        failed = job.write_failures(tasks, journal, out)
        if failed:
            name, error = failed[0]
            raise RunError(f"{len(failed)} of {len(tasks)} trainings failed ({name}: {error})")
        found = [value for _, value in job.values(tasks, journal)]
    trainings = _together(kind, training, dict(zip(seeds, found, strict=True)))
    trainings.write(out, report_name(kind))
    return trainings


def _task(common: Mapping[str, Any], training: RcRnnTraining, inputs: list[list[Any]]) -> Task:
    arguments = {**common, "training": asdict(training)}
    return job.task_of(f"seed {training.seed}", SEED, arguments, inputs=inputs)


def seed(
    stack: str,
    kind: str,
    judge: dict[str, str],
    settings: dict[str, str],
    training: dict[str, Any],
) -> dict[str, Any]:
    """Train from one seed; return the files' contents in base 64, and the report."""
    found = train_rc_rnn(
        stack,
        kind,
        how=RcRnnTraining(**training),
        judge=judge,
        settings=settings,
        threads=THREADS,
    )
    files = {name: base64.b64encode(content).decode() for name, content in found.files.items()}
    return {"files": files, "report": table(found.report)}


def _together(
    kind: str, training: RcRnnTraining, found: Mapping[int, Mapping[str, Any]]
) -> CachingTrainings:
    """Return the trainings of several seeds as one."""
    files: dict[str, bytes] = {}
    models: list[CachingModel] = []
    reports = {one: load(CachingReport, value["report"]) for one, value in found.items()}
    for number, value in found.items():
        own, place = file_name(kind, number, 1), file_name(kind, number, training.seeds)
        for name, at in ((own, place), (float_name(own), float_name(place))):
            files[at] = base64.b64decode(value["files"][name])
        (model,) = reports[number].models
        models.append(CachingModel(**{**values(model), "file": place}))
    first = values(next(iter(reports.values())))
    first |= {"models": tuple(models), "settings": asdict(training)}
    return CachingTrainings(files, CachingReport(**first))
