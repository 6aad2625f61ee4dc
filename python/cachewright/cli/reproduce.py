"""The command `reproduce`: a paper's figures from its specs, our numbers beside the paper's.

For: running what `specs/PAPER` describes, writing one page and judging the paper's claims. Must
never know: any paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright import reproduce as reproduction
from cachewright import words
from cachewright._native import SpecError
from cachewright.cli import engine as engines
from cachewright.cli import options, output
from cachewright.cli.progress import progress
from cachewright.cli.tables import Column, table
from cachewright.reproduce import claims, measured

if TYPE_CHECKING:
    from cachewright.report.parts import Table

RESULTS = Path("results")
PAGE, TABLES = "index.html", "tables.md"


def reproduce(
    paper: str,
    figure: str | None = None,
    *,
    quick: options.On = False,
    traces: Path | None = None,
    out: Path | None = None,
    specs: Path | None = None,
    threads: options.Threads = 0,
    quiet: options.Quiet = False,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Run the figures of a paper, set our numbers beside its own and judge its claims.

    With `--engine` each figure is a task.

    Parameters
    ----------
    paper
        The paper, a folder of specs (`shiro`, `soft-qos`, `icache`, `oc-cache`, `rc-rnn`).
    figure
        Only this figure (`fig7`); all of them when left out.
    quick
        On small synthetic traces instead, to see that everything works.
    traces
        Folder of your own volumes instead of the reference traces: `oltp.csv.zst` stands for the
        workload `oltp`; times are shares of each trace's span (docs/reproduce.md).
    out
        Folder for the page, its tables as Markdown, `measures.json`, `claims.json` and the results
        (`results/PAPER`).
    specs
        The folder that holds the papers' folders.

    """
    from cachewright.fleet.cases import FigureTasks, run_figures
    from cachewright.report import reproduced

    output.be_quiet(quiet)
    folder = out or RESULTS / paper
    if folder.is_file():
        raise SpecError(f"{folder}: found a file, expected a folder for results")
    what = reproduction.load(paper, figure, quick=quick, specs=specs, traces=traces)
    listed = claims.read(what.setup.folder)
    for sentence in reproduced.remarks(what.setup):
        output.note(sentence)
    if engine is not None and engine.engine is not None:
        with progress() as on_progress:
            run_figures(
                FigureTasks(paper, [one.name for one in what.figures], quick, specs, traces),
                folder,
                how=engine.how(),
                progress=on_progress,
            )
    with progress() as on_progress:
        reproduction.run(what, out=folder, threads=threads, progress=on_progress)
    for one in reproduced.tables(what):
        _show(one)
    found = reproduced.measured(what, every=figure is None)
    judged = claims.judged(listed, found.measures, whole=found.whole)
    claims.write(judged, folder / claims.FILE)
    # Of one figure, its own claims.
    judged = judged if figure is None else claims.of_figures(judged, found.figures)
    output.say(f"page: {reproduced.write(what, judged, folder / PAGE)}")
    markdown = folder / TABLES
    markdown.write_text(reproduced.markdown(what, judged), encoding="utf-8")
    output.say(f"tables: {markdown}")
    output.say(f"measures: {found.write(folder / measured.FILE)}")
    output.say(words.counted(what.count(), "case"))
    _claims(judged)


def _show(one: Table) -> None:
    columns = [
        Column(
            header,
            [row[index] for row in one.rows],
            numeric=index >= one.texts,
            best=one.best[index],
        )
        for index, header in enumerate(one.headers)
    ]
    table(one.heading, columns)


def _claims(judged: Sequence[claims.Judged]) -> None:
    """End with what became of the claims."""
    from cachewright.report import claimed

    if judged:
        one = claimed.short(judged)
        columns = [
            Column(header, [row[index] for row in one.rows], numeric=False)
            for index, header in enumerate(one.headers)
        ]
        table(one.title, columns)
        output.say(claimed.summary(judged))
