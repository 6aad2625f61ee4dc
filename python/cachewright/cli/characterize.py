"""The command `characterize`: what runs on a trace, period by period.

For: reading a workload's character over time, and its kind where a model says it. Must never know:
how it was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cachewright import characterized, words
from cachewright.answers import CharacterizeAnswer, JudgedPeriod, KindJudgement, PeriodCounts
from cachewright.cli import engine as engines
from cachewright.cli import options, output, rows
from cachewright.cli.progress import progress
from cachewright.cli.tables import Column, table

DIGITS = (1, 3, 6, 9)
UNSURE = 0.6
"""Below this confidence a kind is marked."""


def characterize(
    sources: options.Parts,
    /,
    *,
    every: str = characterized.EVERY,
    model: Path | None = None,
    show: options.ShowArgs | None = None,
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
    out
        Folder for characterize.json, or for the answers of a dataset (`results/NAME`).

    """
    shown = options.shown(show)
    source, parts = sources[0], options.has_parts(sources, trace)
    if not parts and engines.is_many(source, engine):
        content = None if model is None else characterized.encoded(model)
        given = {"every": every, "model": content}
        engines.over("characterize", source, out, given, engine, trace, shown)
        return
    named = (trace or options.TraceArgs()).trace(options.whole(sources))
    with progress() as on_progress:
        found = characterized.characterize(
            named, every=every, model=model, out=out, progress=on_progress
        )
    if shown.json:
        output.print_json(found)
    elif shown.csv:
        output.print_csv(rows.of_periods(found))
    else:
        _show(found)


def _show(found: CharacterizeAnswer) -> None:
    """Print a row per period and one of the whole trace."""
    rows: list[JudgedPeriod | PeriodCounts] = [*found.periods, found.total]
    columns = [Column("from", [*_times(found.periods), "all"], numeric=False)]
    if found.characterizer is not None:
        kinds = [*(_kinds(one.judged) for one in found.periods), ""]
        columns.append(Column(f"kind ({found.characterizer})", kinds, numeric=False))
    columns += [
        Column("requests", [words.count(one.reads + one.writes) for one in rows]),
        Column("per s", [words.significant(one.rate_per_s) for one in rows]),
        Column("reads", [words.percent(one.read_share) for one in rows]),
        Column("mean", [words.size(round(one.mean_bytes)) for one in rows]),
        Column("working set", [words.size(one.working_set_bytes) for one in rows]),
        Column("sequential", [words.percent(one.classes.sequential) for one in rows]),
        Column("overlapped", [words.percent(one.classes.overlapped) for one in rows]),
        Column("strided", [words.percent(one.classes.strided) for one in rows]),
        Column("random", [words.percent(one.classes.random) for one in rows]),
        Column("sequential bytes", [words.percent(one.class_bytes.sequential) for one in rows]),
    ]
    table(_periods(found), columns)
    if any(_least(one.judged) < UNSURE for one in found.periods):
        output.note(f"?: less than {words.percent(UNSURE)} sure; perhaps none of the known kinds")
    if found.characterizer is not None and not any(one.judged for one in found.periods):
        output.note("no kind: it takes ten windows of one volume's requests to judge")


def _periods(found: CharacterizeAnswer) -> str:
    """Return how long a period is, and whether that was chosen."""
    every, total = found.every, found.total
    length = f"{words.count(int(every))} reads and writes" if every.isdecimal() else every
    if not found.every_chosen:
        return f"periods of {length}"
    span = words.duration(total.end_ns - total.start_ns)
    return f"periods of {length}, chosen for a trace of {span} (`--every` sets another)"


def _times(periods: Sequence[JudgedPeriod]) -> list[str]:
    """Return where each period begins, by the clock, or with as many digits as tell them apart."""
    starts = [period.start_ns / 1e9 for period in periods]
    labels = [words.clock(start) for start in starts]
    for digits in DIGITS:
        if len(set(labels)) == len(labels):
            break
        labels = [f"{start:.{digits}f}s" for start in starts]
    return labels


def _least(judged: Sequence[KindJudgement]) -> float:
    return min((one.confidence for one in judged), default=1.0)


def _kinds(judged: Sequence[KindJudgement]) -> str:
    """Return a volume's kind and how sure that is; of several how many are of each."""
    if not judged:
        return words.NOTHING
    if len(judged) == 1:
        one = judged[0]
        mark = "?" if one.confidence < UNSURE else ""
        return f"{one.kind}{mark} {words.percent(one.confidence)}"
    counts: dict[str, int] = {}
    for one in judged:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{kind} x {count}" for kind, count in most)
