"""The command `characterize`: what runs on a trace, period by period.

For: reading a workload's character over time, and its kind where a model says it. Must never know:
how it was found.
"""

from __future__ import annotations

from pathlib import Path

from cachewright import characterized, words
from cachewright._native import SpecError
from cachewright.answers import CharacterizeAnswer
from cachewright.cli import engine as engines
from cachewright.cli import observe, options, output
from cachewright.cli.progress import progress
from cachewright.live import observing


def characterize(
    sources: options.Parts,
    /,
    *,
    every: str = characterized.EVERY,
    model: Path | None = None,
    show: options.ShowArgs | None = None,
    report: observe.Report = False,
    out: Path | None = None,
    trace: options.TraceArgs | None = None,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Show how a trace's requests change over time, and what kind of workload they are.

    Of a dataset (a folder, a glob, a URL, a manifest) each volume is characterized.

    Parameters
    ----------
    every
        Length of a period: a duration (`10s`), a number of reads and writes (`5000`), or auto: a
        round duration that gives a few tens of periods.
    model
        A model of `train kinds`; at the end of each period it classifies the last 1,000 requests.
    report
        Write the page of the workload, too, as `trace report` does; that of characterize.json is
        what `report` makes of its folder.
    out
        Folder for characterize.json, or for the answers of a dataset (`results/NAME`).

    """
    shown = options.shown(show)
    source, parts = sources[0], options.has_parts(sources, trace)
    if not parts and engines.is_many(source, engine):
        if report:
            raise SpecError("--report: found a dataset, expected one trace")
        content = None if model is None else characterized.encoded(model)
        given = {"every": every, "model": content}
        engines.over("characterize", source, out, given, engine, trace, shown)
        return
    named = (trace or options.TraceArgs()).trace(options.whole(sources))
    page = observe.page_of(sources, trace, observing.BLOCK) if report else None
    with progress() as on_progress:
        found = characterized.characterize(
            named, every=every, model=model, out=out, progress=on_progress
        )
    if shown.json:
        output.print_json(found)
    elif shown.csv:
        output.print_csv(characterized.records(found))
    else:
        _show(found)
        if page is not None:
            output.say(f"report: {page}")


def _show(found: CharacterizeAnswer) -> None:
    """Print a row per period and one of the whole trace."""
    output.show(characterized.by_period(found))
    if characterized.is_unsure(found):
        unsure = words.percent(characterized.UNSURE)
        output.note(f"?: less than {unsure} sure; perhaps none of the known kinds")
    if found.characterizer is not None and not any(one.judged for one in found.periods):
        output.note("no kind: it takes ten windows of one volume's requests to judge")
