"""The command `plan`: the smallest cache that meets the tenants' goals, and its split.

For: what each tenant needs alone, and what each partitioner needs for all. Must never know: how
sizes are tried.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachewright import api, words
from cachewright._native import SpecError
from cachewright.answers import FleetPlanAnswer, PlanAnswer
from cachewright.cli import options, output, parsing
from cachewright.cli.declared import Flags
from cachewright.cli.progress import progress
from cachewright.stack import read
from cachewright.tables import conclusion, sizing

REPORT_FILE = "report.html"
flag = Flags("plan")

Stack = Annotated[
    Path,
    Parameter(
        help="The stack file (TOML); at least one tenant has `goal_hit_ratio` or `goal_latency`, "
        "the others share what is left. With `--fleet` a fleet file."
    ),
]


@Parameter(name="*")
@dataclass
class SizeArgs:
    """Which partitioners, and how precisely."""

    partitions: Annotated[str | None, flag.commas("partitions", "--partition")] = None
    precision: Annotated[float, flag("precision")] = 0.01


@Parameter(name="*", group="Fleet")
@dataclass
class FleetArgs:
    """Many hosts instead of one cache."""

    fleet: options.On = False
    """Place the volumes of a fleet file (docs/planning.md) on hosts with the least flash."""

    grow: str | None = None
    """Show what moves when volumes grow: `20%` for all, `NAME=50%` for one; separated by commas."""

    replay: options.On = False
    """Replay the hosts, and those of simpler ways to place volumes; count the goals met."""


@dataclass(frozen=True)
class Files:
    """Where a plan goes."""

    out: Path | None
    report: bool
    force: bool


def plan(
    stack: Stack,
    /,
    *,
    size: SizeArgs | None = None,
    hosts: FleetArgs | None = None,
    out: Path | None = None,
    report: options.On = False,
    force: options.Force = False,
    set: options.Set = None,
    threads: options.Threads = 0,
    show: options.ShowArgs | None = None,
) -> None:
    """Find the smallest cache that meets the tenants' goals, and how to split it.

    Parameters
    ----------
    out
        Folder for plan.json; of a fleet for fleet.json, placement.parquet and hosts/*.toml.
    report
        Also write report.html into the folder (`results/NAME-plan` if no folder is named).
    force
        Replace the plan of another stack in the folder.

    """
    how = options.shown(show)
    hosts = hosts or FleetArgs()
    if out is None and report:
        out = Path("results") / f"{stack.stem or 'stack'}-plan"
    to = Files(out, report, force)
    if hosts.fleet:
        _plan_fleet(stack, size, hosts, set, to=to, threads=threads, how=how)
        return
    if hosts.grow or hosts.replay:
        found = "--grow" if hosts.grow else "--replay"
        raise SpecError(f"{found}: found no `--fleet`, expected it: one cache has no hosts")
    _refuse_fleet_file(stack)
    with progress() as on_progress:
        answer = api.plan(
            stack,
            settings=parsing.settings(set),
            out=out,
            force=force,
            threads=threads,
            progress=on_progress,
            **flag.given(size or SizeArgs()),
        )
    page = _page(to, answer)
    if how.json:
        output.print_json(answer)
        return
    if how.csv:
        output.print_csv(sizing.records(answer))
        return
    _show(answer)
    _say_files(to, page)
    output.follow(_next_command(stack, set, answer))


def _refuse_fleet_file(stack: Path) -> None:
    """Refuse a file of hosts, whose keys a stack does not have. Errors: `SpecError`."""
    try:
        tables = tomllib.loads(read(stack).text)
    except tomllib.TOMLDecodeError:
        return  # Refused, with its line, where the stack is read.
    if "hosts" in tables:
        raise SpecError(f"{stack}: found `[hosts]`, a fleet file; expected `--fleet` with it")


def _plan_fleet(
    file: Path,
    size: SizeArgs | None,
    hosts: FleetArgs,
    set: list[str] | None,
    *,
    to: Files,
    threads: int,
    how: options.ShowArgs,
) -> None:
    from cachewright.cli import plan_fleet
    from cachewright.documents import table as table_of
    from cachewright.fleet.placement.planning import plan_fleet as planned

    if set or size != (SizeArgs() if size else None):
        found = "--set" if set else "--partition or --precision"
        raise SpecError(f"found {found} with `--fleet`, expected keys in the fleet file")
    with progress() as on_progress:
        answer = planned(
            file,
            grow=plan_fleet.grown(hosts.grow),
            replay=hosts.replay,
            out=to.out,
            force=to.force,
            threads=threads,
            progress=on_progress,
        )
    page = _page(to, answer)
    if how.json:
        output.print_json(answer)
    elif how.csv:
        output.print_csv([table_of(volume) for volume in answer.volumes])
    else:
        plan_fleet.show(answer)
        _say_files(to, page)
        output.follow(plan_fleet.next_command(file, to.out, answer))


def _page(to: Files, answer: PlanAnswer | FleetPlanAnswer) -> Path | None:
    """Write the page of a plan into its folder, if that is asked for."""
    if to.out is None or not to.report:
        return None
    from cachewright.report import placed, planned, write_page

    if isinstance(answer, PlanAnswer):
        figures = planned.figures(answer)
        text = planned.page(answer, figures)
    else:
        figures = placed.figures(answer)
        text = placed.page(answer, figures)
    return write_page(text, figures, to.out / REPORT_FILE)


def _say_files(to: Files, page: Path | None) -> None:
    if to.out is not None:
        output.say(f"result: {to.out}")
    if page is not None:
        output.say(f"report: {page}")


def _show(answer: PlanAnswer) -> None:
    """Print what each tenant needs alone, and what all need together."""
    for sentence in answer.notes:
        output.note(sentence)
    output.show(sizing.alone(answer))
    for sentence in sizing.remarks(answer):
        output.say(sentence)
    together = sizing.together(answer)
    if together is None:
        return
    output.say()
    output.show(together)
    for one in answer.partitions:
        if one.warning:
            output.note(f"{one.partition}: {one.warning}")
    output.conclude(sizing.conclusion(answer))


def _next_command(stack: Path, set: list[str] | None, answer: PlanAnswer) -> str:
    """Return the run of the smallest cache; nothing where none meets the goals."""
    found = {one.partition: one.smallest_blocks for one in answer.partitions}
    blocks = found.get(answer.best or "")
    if answer.best is None or not blocks:
        return ""
    size = words.size_at_least(blocks * answer.block_bytes)
    given = [part for setting in set or () for part in ("--set", setting)]
    at = ("--capacity", size, "--partition", answer.best, "--report")
    return conclusion.command("run", stack, *given, *at)
