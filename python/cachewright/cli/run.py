"""The commands `run`, `compare` and `report`.

For: running a stack or all combinations of some settings, and showing who is best. Must never know:
how cases are run. The tables are those of `cachewright.cli.compared`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachewright import api
from cachewright.cli import compared, options, output
from cachewright.cli.progress import progress
from cachewright.result import Result

REPORT_FILE = "report.html"
RESULTS = Path("results")


def run(stack: Path, *, args: options.RunArgs | None = None) -> None:
    """Replay the tenants of a stack file through its cache.

    Parameters
    ----------
    stack
        The stack file (TOML).

    """
    _run(stack, {}, args or options.RunArgs())


def compare(
    stack: Path,
    *,
    vary: Annotated[list[str], Parameter(negative=(), required=True)],
    args: options.RunArgs | None = None,
) -> None:
    """Run all combinations of some settings and show which is best.

    Parameters
    ----------
    stack
        The stack file (TOML).
    vary
        Values to try as KEY=V1,V2 (`--vary policy=lru,arc --vary capacity=32MiB,64MiB`), as often
        as needed; `policy`, `partition` and `capacity` are short for the keys of `[cache]`.

    """
    _run(stack, options.vary(vary), args or options.RunArgs())


def report(result: Path, *, figures: str | None = None) -> None:
    """Write the HTML report of a result folder again.

    Parameters
    ----------
    result
        The result folder.
    figures
        Also write each figure as files: svg, png, pdf, or several with commas.

    """
    _write_report(Result.load(result), result, figures)


def _run(stack: Path, vary: dict[str, list[str]], args: options.RunArgs) -> None:
    settings = options.settings(args.set)
    wants_report = args.report or args.figures is not None
    folder = args.out
    if folder is None and wants_report:
        folder = RESULTS / str(api.check(stack, settings=settings).get("name") or stack.stem)
    with progress() as on_progress:
        result = api.run_cases(
            stack,
            vary,
            settings=settings,
            out=folder,
            threads=args.threads,
            fresh=args.fresh,
            progress=on_progress,
        )
    if args.json:
        output.print_json(result.document)
    else:
        compared.show(result)
    if folder is not None and not args.json:
        output.say(f"result: {folder}")
    if folder is not None and wants_report:
        _write_report(result, folder, args.figures, quiet=args.json)


def _write_report(result: Result, folder: Path, figures: str | None, quiet: bool = False) -> None:
    path = result.report(folder / REPORT_FILE, options.figure_kinds(figures))
    if not quiet:
        output.say(f"report: {path}")
