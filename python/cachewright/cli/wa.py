"""The command `wa`: write amplification of separations on one trace or stack.

For: a table per over-provisioning, the best marked. Must never know: how it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cachewright import amplification, api, words
from cachewright.amplification import Case
from cachewright.answers import AmplificationAnswer, Classifier, EraseSpread
from cachewright.cli import engine as engines
from cachewright.cli import noted, options, output, parsing
from cachewright.cli.declared import Flags
from cachewright.cli.progress import progress
from cachewright.cli.tables import Column, table
from cachewright.results import Amplification
from cachewright.summary import best_index

REPORT_FILE = "report.html"
RESULTS = Path("results")
flag = Flags("wa")


@Parameter(name="*")
@dataclass
class DriveArgs:
    """The drive, how much is written to it, and where models come from."""

    op: Annotated[str | None, flag.commas("op")] = None
    separations: Annotated[str, flag.commas("separations", "--separation")] = "all"
    reclaims: Annotated[str, flag.commas("reclaims", "--reclaim")] = "cost-benefit"
    superblock: Annotated[str | None, flag("superblock")] = None
    page: Annotated[str | None, flag("page")] = None
    capacity: Annotated[str, flag("capacity")] = "auto"
    reserve: Annotated[int | None, flag("reserve")] = None
    drive_writes: Annotated[float | None, flag("drive_writes")] = None
    loop: Annotated[bool, flag("loop")] = False
    load: Annotated[list[str] | None, flag("load")] = None
    model: Annotated[Path | None, flag("model")] = None


@Parameter(name="*")
@dataclass
class OutArgs:
    """Where the result goes."""

    out: Path | None = None
    """Folder for wa.json."""

    report: options.On = False
    """Also write report.html into the folder (`results/NAME` if no folder is named)."""

    figures: options.Figures = None

    threads: options.Threads = 0


def wa(
    sources: options.Parted,
    /,
    *,
    drive: DriveArgs | None = None,
    trainer: Literal["native", "jax"] = "native",
    set: options.Set = None,
    result: OutArgs | None = None,
    show: options.ShowArgs | None = None,
    trace: options.TraceArgs | None = None,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Show the write amplification of separations on a trace or a stack.

    Of a dataset (a folder, a glob, a URL, a manifest) each volume has a drive of its own.

    Parameters
    ----------
    trainer
        The trainer at window borders: native (in Rust) or jax.

    """
    shown = options.shown(show)
    how, to = drive or DriveArgs(), result or OutArgs()
    source, parts = sources[0], options.has_parts(sources, trace)
    if not parts and engines.is_many(source, engine):
        engines.alone(to, ("report", "figures"))
        given = {"trainer": trainer, "settings": parsing.settings(set), **flag.given(how)}
        models = () if how.model is None else (how.model,)
        engines.over("wa", source, to.out, {"options": given}, engine, trace, shown, models)
        return
    wants_report = to.report or to.figures is not None
    kinds = parsing.figure_kinds(to.figures)
    folder = to.out
    if folder is None and wants_report:
        folder = RESULTS / (source.name.split(".")[0] or "wa")
    with progress() as on_progress:
        found = api.wa(
            options.stack_or_trace(sources, trace),
            trainer=trainer,
            settings=parsing.settings(set),
            out=folder,
            threads=to.threads,
            progress=on_progress,
            **flag.given(how),
        )
    if shown.json:
        output.print_json(found.answer)
    elif shown.csv:
        output.print_csv(found.cases.to_dicts())
    else:
        _show(found)
    if folder is not None and not shown.is_data:
        output.say(f"result: {folder}")
    if folder is not None and wants_report:
        path = found.report(folder / REPORT_FILE, kinds)
        if not shown.is_data:
            output.say(f"report: {path}")


def _show(found: Amplification) -> None:
    """Print everything worth knowing of a result."""
    answer = found.answer
    output.say(f"{answer.name}: {amplification.drive_sentence(answer)}")
    output.say()
    output.kept(answer)
    noted.of_tenants(answer.tenants)
    for op, cases in amplification.by_op(answer):
        table(f"over-provisioning {words.percent(op)}", _columns(answer, cases))
        predicting = amplification.predicting(cases)
        if predicting:
            title = f"predictions of short lifetimes, over-provisioning {words.percent(op)}"
            table(title, _predictions(predicting))
    for warning in found.warnings:
        output.note(warning)
    for op, cases in amplification.by_op(answer):
        output.say(_conclusion(op, cases))


def _columns(answer: AmplificationAnswer, cases: Sequence[Case]) -> list[Column]:
    def numbers(
        header: str,
        of: Callable[[Case], float],
        show: Callable[[float], str],
        marked: bool = True,
    ) -> Column:
        values = [of(case) for case in cases]
        choices = [None if case.bound else of(case) for case in cases]
        best = best_index(choices, highest=False) if marked else set()
        return Column(header, [show(value) for value in values], best=best)

    return [
        Column("", [str(rank) for rank in range(1, len(cases) + 1)]),
        Column("separation", [amplification.separation(c) for c in cases], numeric=False),
        Column("reclaim", [c.reclaim for c in cases], numeric=False),
        numbers("write amplification", lambda c: c.write_amplification, words.ratio),
        numbers("extra writes", lambda c: c.extra_writes, words.ratio),
        numbers("in the last drive write", lambda c: c.last_write_amplification, words.ratio),
        numbers("relocated pages", lambda c: c.moved_pages, words.count),
        Column("erases per superblock", [_erases(c.erases) for c in cases]),
        numbers(
            "bytes per page", lambda c: c.metadata_bytes_per_page, words.significant, marked=False
        ),
        Column("memory per TB", [amplification.dram(answer, c) for c in cases]),
        Column("metadata misses", [words.percent(amplification.miss_share(c)) for c in cases]),
        Column("streams", [words.count(c.streams_used) for c in cases]),
    ]


def _predictions(cases: Sequence[Case]) -> list[Column]:
    found = [case.classifier for case in cases if case.classifier]
    columns = [
        Column("separation", [amplification.separation(c) for c in cases], numeric=False),
        Column("reclaim", [c.reclaim for c in cases], numeric=False),
        Column("judged", [words.count(one.judged) for one in found]),
    ]
    columns += [
        _measured("accuracy", lambda one: one.accuracy, found),
        _measured("precision", lambda one: one.precision, found),
        _measured("recall", lambda one: one.recall, found),
        _measured("F1", lambda one: one.f1, found),
    ]
    columns.append(Column("most frequent class", [words.percent(one.majority) for one in found]))
    columns.append(Column("called short", [words.percent(one.called_short) for one in found]))
    columns.append(Column("were short", [words.percent(one.were_short) for one in found]))
    texts = [amplification.thresholds(one) for one in found]
    columns.append(Column("short is up to: least / middle / most", texts))
    return columns


def _measured(
    header: str, of: Callable[[Classifier], float | None], found: Sequence[Classifier]
) -> Column:
    values = [of(one) for one in found]
    return Column(header, [words.percent(v) for v in values], best=best_index(values, highest=True))


def _erases(erases: EraseSpread) -> str:
    return f"{erases.mean:.1f} ±{erases.stddev:.1f}"


def _conclusion(op: float, cases: Sequence[Case]) -> str:
    best = amplification.best_case(cases)
    value = words.ratio(best.write_amplification)
    line = f"best at {words.percent(op)}: {amplification.label(best)}: write amplification {value}"
    bounds = [case for case in cases if case.bound and case is not best]
    if bounds:
        lowest = amplification.best_case(bounds)
        value = words.ratio(lowest.write_amplification)
        line += f"; the bound {lowest.separation}, {lowest.reclaim} has {value}"
    return line
