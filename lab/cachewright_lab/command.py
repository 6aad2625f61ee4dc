"""What the command `cachewright reproduce` does: figures of a paper, our numbers beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright import words
from cachewright._native import SpecError
from cachewright.cli import output
from cachewright.cli.progress import progress
from cachewright.fleet.cases import run_tasks
from cachewright.tables import measures
from cachewright_lab import digest, reproduce, tasks, took
from cachewright_lab.report import claimed, reproduced
from cachewright_lab.reproduce import claims

if TYPE_CHECKING:
    from cachewright.fleet.job import How
    from cachewright_lab.report.tables import Table

PAGE, TABLES = "index.html", "tables.md"


def run(
    paper: str,
    figure: str | None,
    *,
    quick: bool,
    traces: Path | None,
    out: Path,
    specs: Path | None,
    threads: int,
    how: How | None,
) -> None:
    """Run the figures of a paper; write page, tables, `measures.json` and `claims.json` to `out`.

    With `how` each figure is a task of an engine. Errors: `SpecError` for an unknown paper or
    figure, and where `out` is a file.
    """
    if out.is_file():
        raise SpecError(f"{out}: found a file, expected a folder for results")
    what = reproduce.load(paper, figure, quick=quick, specs=specs, traces=traces)
    listed = claims.read(what.setup.folder)
    for sentence in reproduced.remarks(what.setup):
        output.note(sentence)
    if traces is not None:
        output.note(took.told(what, digest.read(what.setup.folder / digest.FILE, paper)))
    if how is not None:
        wanted = [one.name for one in what.figures]
        figures = tasks.figures(paper, wanted, quick=quick, specs=specs, traces=traces)
        with progress() as on_progress:
            run_tasks(figures, out, "figures", how, on_progress)
    fresh = what.setup.whole and how is None and took.is_fresh(out)
    with progress() as on_progress, took.measured() as clock:
        reproduce.run(what, out=out, threads=threads, progress=on_progress)
    if fresh:
        took.note(what, clock, out)
    for one in reproduced.tables(what):
        _show(one)
    found = reproduced.measured(what, every=figure is None)
    judged = claims.judged(listed, found.measures, whole=found.whole)
    claims.write(judged, out / claims.FILE)
    # Of one figure, its own claims.
    judged = judged if figure is None else claims.of_figures(judged, found.figures)
    output.say(f"page: {reproduced.write(what, judged, out / PAGE)}")
    markdown = out / TABLES
    markdown.write_text(reproduced.markdown(what, judged), encoding="utf-8")
    output.say(f"tables: {markdown}")
    output.say(f"measures: {found.write(out / measures.FILE)}")
    output.say(words.counted(what.count(), "case"))
    _claims(judged)


def _show(one: Table) -> None:
    output.show(one.drawn)


def _claims(judged: Sequence[claims.Judged]) -> None:
    """End with what became of the claims."""
    if judged:
        one = claimed.short(judged)
        output.show(one.drawn)
        output.say(claimed.summary(judged))
