"""Figures of a paper as tasks of an engine: `cachewright reproduce --engine`.

A worker runs a figure in a folder of its own and returns the files that are kept of its cases.
`reproduce.run` in the result folder then finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cachewright.fleet import job
from cachewright.fleet.cases import THREADS, kept_cases
from cachewright.fleet.datasets.files import scratch
from cachewright.fleet.task import Task
from cachewright_lab import reproduce

FIGURE = "cachewright_lab.tasks:figure"


def figures(
    paper: str,
    names: Sequence[str],
    *,
    quick: bool = False,
    specs: Path | None = None,
    traces: Path | None = None,
) -> list[Task]:
    """Return a task for each of a paper's figures; the rest is what `reproduce.load` takes."""
    common = {
        "paper": paper,
        "quick": quick,
        "specs": None if specs is None else str(specs),
        "traces": None if traces is None else str(traces),
    }
    return [job.task_of(name, FIGURE, {**common, "name": name}) for name in names]


def figure(
    paper: str, name: str, quick: bool, specs: str | None, traces: str | None
) -> dict[str, str]:
    """Run one figure of a paper; return what is kept of its cases."""
    what = reproduce.load(
        paper,
        name,
        quick=quick,
        specs=None if specs is None else Path(specs),
        traces=None if traces is None else Path(traces),
    )
    with scratch() as folder:
        reproduce.run(what, out=folder, threads=THREADS)
        return kept_cases(folder)
