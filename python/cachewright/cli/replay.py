"""Replaying what `run` and `compare` were given, and showing what came out.

For: one way for options however they were read. Must never know: options, how cases are run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cachewright.cli import output
from cachewright.cli.progress import progress

if TYPE_CHECKING:
    from cachewright.stack import SpecLike

REPORT_FILE = "report.html"
RESULTS = Path("results")


class Job(NamedTuple):
    """A stack, what is set over it, the values to try, and what was chosen by default."""

    stack: SpecLike
    settings: dict[str, str]
    vary: dict[str, list[str]]
    notes: Sequence[str] = ()


class Wanted(NamedTuple):
    """Where the result goes, what runs, and how the result is shown."""

    out: Path | None = None
    fresh: bool = False
    threads: int = 0
    report: bool = False
    figures: Sequence[str] = ()
    json: bool = False
    csv: bool = False

    @property
    def is_data(self) -> bool:
        """Whether standard output is for programs, so that no sentence may stand in it."""
        return self.json or self.csv


def replay(job: Job, wanted: Wanted) -> None:
    """Run a job and show its answer. Errors: as `api.run`."""
    from cachewright import api

    wants_report = wanted.report or bool(wanted.figures)
    folder = wanted.out
    if folder is None and wants_report:
        folder = RESULTS / name_of(job)
    with progress() as on_progress:
        result = api.compare(
            job.stack,
            job.vary,
            settings=job.settings,
            out=folder,
            threads=wanted.threads,
            fresh=wanted.fresh,
            progress=on_progress,
        )
    for sentence in job.notes:
        output.note(sentence)
    if wanted.json:
        output.print_json(result.answer)
    elif wanted.csv:
        from cachewright.tables import summary

        output.print_csv(summary.records(result.answer))
    else:
        from cachewright.cli import compared

        compared.show(result.answer)
    if folder is not None and not wanted.is_data:
        output.say(f"result: {folder}")
    if folder is not None and wants_report:
        path = result.report(folder / REPORT_FILE, wanted.figures)
        if not wanted.is_data:
            output.say(f"report: {path}")


def name_of(job: Job) -> str:
    """Return the name of a job's stack. Errors: `SpecError`."""
    from cachewright import api

    document = api.check(job.stack, settings=job.settings)
    return str(document.get("name") or "stack")
