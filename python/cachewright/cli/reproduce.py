"""The command `reproduce`: its options; what it does is in the package `cachewright_lab`.

A wheel has that package with the extra `lab`.
"""

from __future__ import annotations

from pathlib import Path

from cachewright._native import SpecError
from cachewright.cli import engine as engines
from cachewright.cli import options, output

RESULTS = Path("results")
LABORATORY = "cachewright_lab"
MISSING = "found no package `cachewright-lab`, expected it: pip install 'cachewright[lab]'"


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
        Only this figure (`fig7a`), or its parts (`fig7`); all of them when left out.
    quick
        On small synthetic traces instead, to see that everything works.
    traces
        Folder of your own volumes instead of the reference traces: `oltp.csv.zst` stands for the
        workload `oltp`; times are shares of each trace's span (lab/reproduce.md).
    out
        Folder for the page, its tables as Markdown, `measures.json`, `claims.json` and the results
        (`results/PAPER`).
    specs
        The folder that holds the papers' folders.

    """
    output.be_quiet(quiet)
    try:
        from cachewright_lab import command
    except ModuleNotFoundError as error:
        if error.name != LABORATORY:
            raise
        raise SpecError(MISSING) from error
    how = None if engine is None or engine.engine is None else engine.how()
    command.run(
        paper,
        figure,
        quick=quick,
        traces=traces,
        out=out or RESULTS / paper,
        specs=specs,
        threads=threads,
        how=how,
    )
