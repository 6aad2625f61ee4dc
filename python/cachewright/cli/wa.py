"""The command `wa`: write amplification of separations on one trace or stack.

For: a table per over-provisioning, the best marked. Must never know: how it is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cachewright import api
from cachewright._native import SpecError
from cachewright.answers import AmplificationAnswer
from cachewright.cli import engine as engines
from cachewright.cli import noted, options, output, parsing
from cachewright.cli.declared import Flags
from cachewright.cli.progress import progress
from cachewright.results import Amplification
from cachewright.tables import amplification, conclusion

REPORT_FILE = "report.html"
RESULTS = Path("results")
# What the next command chooses itself, and the spare space in percent beyond which it offers none.
CHOSEN, MOST_SPARE = ("separations", "reclaims", "op"), 50
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
    """Also write report.html into the folder (`results/NAME-wa` if no folder is named)."""

    figures: options.Figures = None

    force: options.Force = False
    """Replace the result of another stack or trace in the folder."""

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
    for text in parsing.split_values(how.op) if how.op else ():
        if not text.endswith("%"):
            raise SpecError(f"--op: found `{text}`, expected percentages such as `7%,28%`")
    source, parts = sources[0], options.has_parts(sources, trace)
    if not parts and engines.is_many(source, engine):
        engines.alone(to, ("figures", "force"))
        given = {"trainer": trainer, "settings": parsing.settings(set), **flag.given(how)}
        models = () if how.model is None else (how.model,)
        engines.over("wa", source, to.out, {"options": given}, engine, trace, shown, models)
        return
    wants_report = to.report or to.figures is not None
    kinds = parsing.figure_kinds(to.figures)
    folder = to.out
    if folder is None and wants_report:
        # Each command has a folder of its own: the page of another one is not replaced.
        folder = RESULTS / "-".join(filter(None, (source.name.split(".")[0], "wa")))
    with progress() as on_progress:
        found = api.wa(
            options.stack_or_trace(sources, trace),
            trainer=trainer,
            settings=parsing.settings(set),
            out=folder,
            force=to.force,
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
    if not shown.is_data and (trace is None or not trace.given()):
        output.follow(_next_command(sources, how, set, found.answer))


def _show(found: Amplification) -> None:
    """Print everything worth knowing of a result."""
    answer = found.answer
    output.say(f"{answer.name}: {amplification.drive_sentence(answer)}")
    output.say()
    output.kept(answer)
    noted.of_tenants(answer.tenants)
    for op, cases in amplification.by_op(answer):
        output.show(amplification.ranked(answer, op, cases))
        if predictions := amplification.predictions(op, cases):
            output.show(predictions)
    for warning in found.warnings:
        output.note(warning)
    several = amplification.by_op(answer)
    if len(several) > 1:
        for op, cases in several:
            output.say(amplification.best_at(op, cases))
        output.say()
    output.conclude(amplification.answered(answer))


def _next_command(
    sources: Sequence[Path], how: DriveArgs, given: list[str] | None, answer: AmplificationAnswer
) -> str:
    """Return the best scheme on larger spare space, or its report where that is known.

    All else is as it was asked for.
    """
    several = amplification.by_op(answer)
    best = amplification.best_case(several[0][1])
    if "(" in f"{best.separation}{best.reclaim}":
        return ""
    words = [part for setting in given or () for part in ("--set", setting)]
    words += flag.spelled(how, without=CHOSEN)
    words += ["--separation", best.separation, "--reclaim", best.reclaim]
    shares = [100 * op for op, _ in several]
    if len(several) == 1:
        shares += [more for times in (2, 4) if (more := times * shares[0]) <= MOST_SPARE]
    words += ["--op", ",".join(f"{share:g}%" for share in shares)]
    return conclusion.command("wa", *sources, *words, "--report")
