"""The command `reproduce`: a paper's figures from its specs, our numbers beside the paper's.

For: running what `specs/PAPER` describes and writing one page. Must never know: any paper.
"""

from __future__ import annotations

from pathlib import Path

from cachewright import reproduce as reproduction
from cachewright import words
from cachewright._native import SpecError
from cachewright.cli import options, output
from cachewright.cli.progress import progress
from cachewright.cli.tables import Column, table

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
) -> None:
    """Run the figures of a paper and write a page that sets our numbers beside its own.

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
        Folder for the page, its tables as Markdown and the results (`results/PAPER`).
    specs
        The folder that holds the papers' folders.

    """
    from cachewright.report import reproduced

    output.be_quiet(quiet)
    folder = out or RESULTS / paper
    if folder.is_file():
        raise SpecError(f"{folder}: found a file, expected a folder for results")
    what = reproduction.load(paper, figure, quick=quick, specs=specs, traces=traces)
    for sentence in reproduced.remarks(what.setup):
        output.note(sentence)
    with progress() as on_progress:
        reproduction.run(what, out=folder, threads=threads, progress=on_progress)
    for one in reproduced.tables(what):
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
    for sentence in reproduced.sentences(what):
        output.say(sentence)
    output.say(f"page: {reproduced.write(what, folder / PAGE)}")
    markdown = folder / TABLES
    markdown.write_text(reproduced.markdown(what), encoding="utf-8")
    output.say(f"tables: {markdown}")
    output.say(words.counted(what.count(), "case"))
