"""The commands `run` and `compare`.

For: replaying a stack or traces, one case or all combinations, and showing which is best. Must
never know: how cases are run. What is replayed comes from `cachewright.cli.sources`, what is
shown from `cachewright.cli.replay`.
"""

from __future__ import annotations

from cachewright.cli import options, parsing
from cachewright.cli.replay import Wanted, replay
from cachewright.cli.sources import of_compare, of_run


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
    replay(job, _wanted(result, how))


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
    replay(of_compare(sources, *args, set, vary), _wanted(result, how))


def _wanted(result: options.ResultArgs | None, show: options.ShowArgs) -> Wanted:
    """Return what the options ask for. Errors: `SpecError` for an unknown kind of figure."""
    args = result or options.ResultArgs()
    return Wanted(
        out=args.out,
        fresh=args.fresh,
        threads=args.threads,
        report=args.report,
        figures=parsing.figure_kinds(args.figures),
        json=show.json,
        csv=show.csv,
    )
