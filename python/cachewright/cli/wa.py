"""The command `wa`: write amplification of separations on one trace or stack.

For: a table per over-provisioning, the best marked. Must never know: how it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cyclopts import Parameter

from cachewright import amplification, api, words
from cachewright.amplification import Case
from cachewright.answers import AmplificationAnswer, Classifier, EraseSpread
from cachewright.cli import options, output
from cachewright.cli.progress import progress
from cachewright.cli.tables import Column, table
from cachewright.result import Amplification
from cachewright.spec import is_stack_path
from cachewright.summary import best_index

REPORT_FILE = "report.html"
RESULTS = Path("results")


@Parameter(name="*")
@dataclass
class DriveArgs:
    """The drive and how much is written to it."""

    op: str | None = None
    """Over-provisioning, several with commas (`7%,28%`); 7% or the stack's `[flash]`."""

    separation: str = "all"
    """Separations with commas (`none,2r,sepbit`; see `list separations`), or all."""

    reclaim: str = "cost-benefit"
    """Ways to pick a victim, with commas (see `list reclaims`), or all."""

    superblock: str | None = None
    """Size of a superblock, the unit of erasing; 1MiB or the stack's."""

    page: str | None = None
    """Size of a flash page; 4KiB or the stack's."""

    capacity: str = "auto"
    """Logical size of the drive (`1GiB`, `150%wss`); auto is what is ever written, live the most
    that is live at once: pages recycle after trims."""

    reserve: int | None = None
    """Superblocks kept free for writes of the host; 4 or the stack's."""

    drive_writes: float | None = None
    """Stop after the drive was written so often."""

    loop: options.On = False
    """Repeat the trace until then (10 drive writes if not given)."""

    load: options.Words = None
    """A trace replayed first and not counted; TENANT=PATH for a stack of several tenants."""


@Parameter(name="*")
@dataclass
class LearnArgs:
    """Where the models of separations that learn come from."""

    trainer: Literal["native", "jax"] = "native"
    """The trainer at window borders: native (in Rust) or jax."""

    model: Path | None = None
    """A model file to use untrained (see `train`)."""


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
    source: options.Source,
    /,
    *,
    drive: DriveArgs | None = None,
    learn: LearnArgs | None = None,
    set: options.Set = None,
    result: OutArgs | None = None,
    show: options.ShowArgs | None = None,
    trace: options.TraceArgs | None = None,
) -> None:
    """Show the write amplification of separations on a trace or a stack."""
    shown = options.shown(show)
    how, to = drive or DriveArgs(), result or OutArgs()
    taught = learn or LearnArgs()
    wants_report = to.report or to.figures is not None
    kinds = options.figure_kinds(to.figures)
    folder = to.out
    if folder is None and wants_report:
        folder = RESULTS / (source.name.split(".")[0] or "wa")
    with progress() as on_progress:
        found = api.wa(
            source if is_stack_path(source) else (trace or options.TraceArgs()).trace(source),
            options.split_values(how.separation),
            op=options.comma_list(how.op),
            reclaims=options.split_values(how.reclaim),
            superblock=how.superblock,
            page=how.page,
            capacity=how.capacity,
            reserve=how.reserve,
            drive_writes=how.drive_writes,
            loop=how.loop,
            load=how.load or [],
            trainer=taught.trainer,
            model=taught.model,
            settings=options.settings(set),
            out=folder,
            threads=to.threads,
            progress=on_progress,
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
    for tenant in answer.tenants:
        if tenant.skipped_bad:
            bad = words.counted(tenant.skipped_bad, "malformed record")
            output.note(f"{tenant.name}: {bad} skipped")
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
