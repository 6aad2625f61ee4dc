"""The command `mrc`: how the miss ratio falls with cache size.

For: curves of a stack's tenants or of one trace: tables, a result folder, a report, a figure. Must
never know: how curves are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachewright import api, targets, words
from cachewright._native import SpecError
from cachewright.answers import CurvesAnswer
from cachewright.cli import engine as engines
from cachewright.cli import noted, options, output, parsing
from cachewright.cli.declared import Flags
from cachewright.cli.progress import progress
from cachewright.results import Curves
from cachewright.stack import USUAL_POLICIES, files_of, is_stack_path
from cachewright.tables import conclusion, curves, timing

REPORT_FILE = "report.html"
RESULTS = Path("results")
BLOCK = "4KiB"
ON = Parameter(negative=())
flag = Flags("mrc")


@Parameter(name="*")
@dataclass
class CurveArgs:
    """How curves are made."""

    policies: Annotated[str | None, flag.commas("policies", "--policy")] = None
    method: Annotated[str, flag("method")] = "auto"
    rate: Annotated[float | None, flag("rate")] = None
    size: Annotated[int | None, flag("size")] = None
    sizes: Annotated[str | None, flag.commas("sizes")] = None
    points: Annotated[int, flag("points")] = 0
    salts: Annotated[int, flag("salts")] = 0
    windows: Annotated[int, flag("windows")] = 0
    verify: Annotated[int, flag("verify")] = 0
    small: Annotated[str, flag("small")] = "escalate"
    latency: Annotated[bool, flag("latency")] = False


@Parameter(name="*")
@dataclass
class CurveFiles:
    """Where curves go."""

    out: Path | None = None
    """Folder for mrc.json and mrc.parquet."""

    report: Annotated[bool, ON] = False
    """Also write report.html into the folder (`results/NAME-mrc` if no folder is named)."""

    figure: Path | None = None
    """Draw the miss ratios to this file (svg, png or pdf), with `--latency` the response times to
    another beside it (`NAME-latency`)."""

    width: str | None = None
    """Width of the figure: column (85mm), middle (114mm), page (178mm), or millimetres (`120mm`);
    without it the figure is as large as a slide."""

    force: options.Force = False
    """Replace the figure if it exists, and the curves of another stack or trace in the folder."""


def mrc(
    sources: options.Parted,
    /,
    *,
    curve: CurveArgs | None = None,
    files: CurveFiles | None = None,
    block: str = BLOCK,
    set: options.Set = None,
    threads: options.Threads = 0,
    show: options.ShowArgs | None = None,
    trace: options.TraceArgs | None = None,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Show miss-ratio curves of a stack's tenants or of one trace.

    Of a dataset (a folder, a glob, a URL, a manifest) each volume has curves of its own.

    Parameters
    ----------
    block
        Cache block of a trace; a stack has its own.

    """
    source, parts = sources[0], options.has_parts(sources, trace)
    how, to, shown = curve or CurveArgs(), files or CurveFiles(), options.shown(show)
    if not parts and engines.is_many(source, engine):
        engines.alone(to, ("figure",))
        given = {"block": block, "settings": parsing.settings(set), **flag.given(how)}
        engines.over("mrc", source, to.out, {"options": given}, engine, trace, shown)
        return
    spec = options.stack_or_trace(sources, trace)
    for path in _figure_paths(to.figure, how.latency):
        targets.check(path, files_of(spec), overwrite=to.force, how=targets.FORCE)
    _check_figure(to)
    folder = to.out
    if folder is None and to.report:
        # Each command has a folder of its own: the page of another one is not replaced.
        folder = RESULTS / "-".join(filter(None, (source.name.split(".")[0], "mrc")))
    with progress() as on_progress:
        found = api.mrc(
            spec,
            block=block,
            settings=parsing.settings(set),
            out=folder,
            force=to.force,
            threads=threads,
            progress=on_progress,
            **flag.given(how),
        )
    if shown.json:
        output.print_json(found.answer)
    elif shown.csv:
        output.print_csv([*found.points.to_dicts(), *found.latency.to_dicts()])
    else:
        _show(found.answer)
    lines = _files(found, to, folder)
    if shown.is_data:
        return
    for line in lines:
        output.say(line)
    if trace is None or not trace.given():
        set_too = [part for setting in set or () for part in ("--set", setting)]
        set_too += ["--block", block] if block != BLOCK and not is_stack_path(source) else []
        output.follow(_next_command(sources, set_too, found.answer))


def _show(answer: CurvesAnswer) -> None:
    """Print the notes, a table per tenant and window, what was verified, and response times."""
    for sentence in answer.notes:
        output.note(sentence)
    noted.of_tenants(answer.tenants)
    for table in curves.by_size(answer):
        output.show(table)
    if checked := curves.checks(answer):
        output.show(checked)
    for found in answer.latency or ():
        output.show(timing.by_size(found, answer.block_bytes))
    if compared := curves.conclusions(answer):
        for sentence in compared:
            output.say(sentence)
        output.say()
    output.conclude(curves.answered(answer))


def _next_command(sources: Sequence[Path], given: Sequence[str], answer: CurvesAnswer) -> str:
    """Return the comparison of policies at the size advised, or the run of the best of several.

    Several traces are parts of one recording here, which other commands do by `--join`.
    """
    chosen = curves.advised(answer)
    if chosen is None or "(" in chosen.policy:
        return ""
    of: list[str | Path] = [*sources, *(["--join"] if len(sources) > 1 else []), *given]
    size = words.size_at_least(chosen.size_blocks * answer.block_bytes)
    policies = list(dict.fromkeys(curve.policy for curve in answer.curves))
    if len(policies) > 1:
        at = ("--policy", chosen.policy, "--capacity", size, "--report")
        return conclusion.command("run", *of, *at)
    usual = ",".join(dict.fromkeys([*policies, *USUAL_POLICIES]))
    return conclusion.command("compare", *of, "--policy", usual, "--capacity", size)


def _files(found: Curves, to: CurveFiles, folder: Path | None) -> list[str]:
    """Write what was asked for; return a line for each file."""
    lines = [] if folder is None else [f"result: {folder}"]
    if folder is not None and to.report:
        lines.append(f"report: {found.report(folder / REPORT_FILE)}")
    if to.figure is not None:
        first, *beside = _figure_paths(to.figure, bool(found.answer.latency))
        lines.append(f"figure: {found.figure(first, width=to.width)}")
        lines += [f"figure: {found.latency_figure(path, width=to.width)}" for path in beside]
    return lines


def _figure_paths(path: Path | None, latency: bool) -> list[Path]:
    """Return the files of the figures: miss ratios, then response times if they are measured."""
    if path is None:
        return []
    return [path, path.with_stem(f"{path.stem}-latency")] if latency else [path]


def _check_figure(to: CurveFiles) -> None:
    """Refuse a kind or a width of figure before anything is measured."""
    path = to.figure
    if to.width is not None:
        from cachewright.report.figure import PrintStyle

        if path is None:
            raise SpecError("--width: found no `--figure`, expected the file to draw")
        PrintStyle.of(to.width)
    if path is not None and path.suffix.removeprefix(".") not in parsing.FIGURE_KINDS:
        expected = ", ".join(f".{kind}" for kind in parsing.FIGURE_KINDS)
        raise SpecError(f"--figure: found `{path}`, expected a file ending in one of {expected}")
