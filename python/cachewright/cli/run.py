"""The commands `run` and `compare`.

For: replaying a stack or traces, one case or all combinations, and showing which is best. Must
never know: how cases are run. What is replayed comes from `cachewright.cli.sources`, the tables
from `cachewright.cli.compared`.
"""

from __future__ import annotations

from pathlib import Path

from cachewright import api
from cachewright.cli import options, output, rows
from cachewright.cli.progress import progress
from cachewright.cli.sources import Job, of_compare, of_run

REPORT_FILE = "report.html"
RESULTS = Path("results")


def run(
    sources: options.Sources,
    /,
    *,
    cache: options.CacheArgs | None = None,
    set: options.Set = None,
    result: options.ResultArgs | None = None,
    show: options.ShowArgs | None = None,
    trace: options.TraceArgs | None = None,
) -> None:
    """Replay traces, or the tenants of a stack file, through a cache.

    Traces without a stack file get an LRU cache of a tenth of their working set unless the options
    say otherwise. On a stack file the options of the cache are short for `--set`.
    """
    how = options.shown(show)
    job = of_run(sources, cache or options.CacheArgs(), trace or options.TraceArgs(), set)
    _run(job, result or options.ResultArgs(), how)


def compare(
    sources: options.Sources,
    /,
    *,
    cache: options.CacheArgs | None = None,
    vary: options.Vary = None,
    set: options.Set = None,
    result: options.ResultArgs | None = None,
    show: options.ShowArgs | None = None,
    trace: options.TraceArgs | None = None,
) -> None:
    """Run all combinations of some settings and show the best.

    Traces without a stack file are compared under well-known policies at 0.1%, 1%, 10% and 40% of
    their working set unless the options say otherwise. On a stack file the options of the cache are
    short for `--vary`.
    """
    how = options.shown(show)
    args = (cache or options.CacheArgs(), trace or options.TraceArgs())
    _run(of_compare(sources, *args, set, vary), result or options.ResultArgs(), how)


def _run(job: Job, args: options.ResultArgs, show: options.ShowArgs) -> None:
    kinds = options.figure_kinds(args.figures)
    wants_report = args.report or bool(kinds)
    folder = args.out
    if folder is None and wants_report:
        document = api.check(job.stack, settings=job.settings)
        folder = RESULTS / str(document.get("name") or "stack")
    with progress() as on_progress:
        result = api.run_cases(
            job.stack,
            job.vary,
            settings=job.settings,
            out=folder,
            threads=args.threads,
            fresh=args.fresh,
            progress=on_progress,
        )
    for sentence in job.notes:
        output.note(sentence)
    if show.json:
        output.print_json(result.answer)
    elif show.csv:
        output.print_csv(rows.of_result(result.answer))
    else:
        from cachewright.cli import compared

        compared.show(result)
    if folder is not None and not show.is_data:
        output.say(f"result: {folder}")
    if folder is not None and wants_report:
        path = result.report(folder / REPORT_FILE, kinds)
        if not show.is_data:
            output.say(f"report: {path}")
