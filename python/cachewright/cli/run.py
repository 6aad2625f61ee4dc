"""The commands `run` and `compare`.

For: replaying a stack or traces, one case or all combinations, and showing which is best. Must
never know: how cases are run. What is replayed comes from `cachewright.cli.sources`, what is
shown from `cachewright.cli.replay`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachewright.cli import engine as engines
from cachewright.cli import options, parsing

if TYPE_CHECKING:
    from cachewright.cli.replay import Wanted


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
    from cachewright.cli.replay import replay
    from cachewright.cli.sources import of_run

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
    rank_by: options.RankBy = None,
    result: options.ResultArgs | None = None,
    show: options.ShowArgs | None = None,
    trace: options.TraceArgs | None = None,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Run all combinations of settings and show the best.

    Traces without a stack file are compared under well-known policies at 0.1%, 1%, 10% and 40% of
    their working set unless the options say otherwise. On a stack file the options of the cache are
    short for `--vary`. Of a dataset (a folder, a glob, a URL, a manifest) each volume is compared
    by itself. With `--engine` each case of a stack or of traces is a task.
    """
    from cachewright.cli.replay import replay
    from cachewright.cli.sources import of_compare, of_volume
    from cachewright.tables import ranking

    how, to = options.shown(show), result or options.ResultArgs()
    args = (cache or options.CacheArgs(), trace or options.TraceArgs())
    if len(sources) == 1 and not args[1].join and engines.is_dataset(sources[0]):
        engines.alone(to, ("figures", "fresh"))
        values, settings = of_volume(args[0], set, vary)
        if rank_by is not None:
            ranking.check_settings(rank_by, {**settings, **values})
        given = {"vary": values, "settings": settings}
        engines.over("compare", sources[0], to.out, given, engine, trace, how, rank_by=rank_by)
        return
    job, wanted = of_compare(sources, *args, set, vary), _wanted(to, how, rank_by)
    if engine is not None and engine.engine is not None:
        wanted = engines.cases_first(job, wanted, engine)
    replay(job, wanted)


def _wanted(
    result: options.ResultArgs | None, show: options.ShowArgs, rank_by: str | None = None
) -> Wanted:
    """Return what the options ask for. Errors: `SpecError` for an unknown kind of figure."""
    from cachewright.cli.replay import Wanted

    args = result or options.ResultArgs()
    return Wanted(
        out=args.out,
        fresh=args.fresh,
        threads=args.threads,
        report=args.report,
        figures=parsing.figure_kinds(args.figures),
        json=show.json,
        csv=show.csv,
        rank_by=rank_by,
    )
