"""The command `plan`: the smallest cache that meets the tenants' goals, and its split.

For: what each tenant needs alone, and what each partitioner needs for all. Must never know: how
sizes are tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachewright import api, words
from cachewright._native import SpecError
from cachewright.answers import PlanAnswer, PlanPartition, PlanTenant
from cachewright.cli import options, output, parsing, rows
from cachewright.cli.declared import Flags
from cachewright.cli.progress import progress
from cachewright.cli.tables import Column, table
from cachewright.summary import best_index

BEST_EFFORT = "best effort"
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


def plan(
    stack: Stack,
    /,
    *,
    size: SizeArgs | None = None,
    hosts: FleetArgs | None = None,
    out: Path | None = None,
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
    force
        Replace the plan of another stack in the folder.

    """
    how = options.shown(show)
    hosts = hosts or FleetArgs()
    if hosts.fleet:
        _plan_fleet(stack, size, hosts, set, out=out, force=force, threads=threads, how=how)
        return
    if hosts.grow or hosts.replay:
        found = "--grow" if hosts.grow else "--replay"
        raise SpecError(f"{found}: found no `--fleet`, expected it: one cache has no hosts")
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
    if how.json:
        output.print_json(answer)
        return
    if how.csv:
        output.print_csv(rows.of_plan(answer))
        return
    for sentence in answer.notes:
        output.note(sentence)
    _alone(answer)
    _sized(answer)
    if out is not None:
        output.say(f"result: {out}")


def _plan_fleet(
    file: Path,
    size: SizeArgs | None,
    hosts: FleetArgs,
    set: list[str] | None,
    *,
    out: Path | None,
    force: bool,
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
            out=out,
            force=force,
            threads=threads,
            progress=on_progress,
        )
    if how.json:
        output.print_json(answer)
    elif how.csv:
        output.print_csv([table_of(volume) for volume in answer.volumes])
    else:
        plan_fleet.show(answer)
        if out is not None:
            output.say(f"result: {out}")


def _blocks(blocks: int | None, block: int) -> str:
    return "no size" if blocks is None else words.size(blocks * block)


def _alone(answer: PlanAnswer) -> None:
    block, tenants = answer.block_bytes, answer.tenants
    table(
        "what each tenant needs alone",
        [
            Column("tenant", [tenant.name for tenant in tenants], numeric=False),
            Column("goal", [_goal(tenant) for tenant in tenants]),
            Column("cache", [_needed(tenant, block) for tenant in tenants]),
            Column("best there is", [words.ratio(t.best_hit_ratio) for t in tenants]),
        ],
    )
    smallest = answer.smallest_blocks
    if smallest is not None:
        output.say(f"together: {_blocks(smallest, block)}, split as above and never changed")
    for tenant in tenants:
        if tenant.goal_hit_ratio is not None and tenant.alone_blocks is None:
            output.say(
                f"{tenant.name}: no cache size meets the goal {_goal(tenant)}; the best "
                f"achievable hit ratio is {words.ratio(tenant.best_hit_ratio)}"
            )


def _goal(tenant: PlanTenant) -> str:
    goal = tenant.goal_hit_ratio
    return BEST_EFFORT if goal is None else words.ratio(goal)


def _needed(tenant: PlanTenant, block: int) -> str:
    without = tenant.goal_hit_ratio is None
    return words.NOTHING if without else _blocks(tenant.alone_blocks, block)


def _sized(answer: PlanAnswer) -> None:
    block, sized = answer.block_bytes, answer.partitions
    if not sized:
        return
    smallest, sizes = answer.smallest_blocks, [one.smallest_blocks for one in sized]
    least = min((size for size in sizes if size is not None), default=None)
    columns = [
        Column("partition", [one.partition for one in sized], numeric=False),
        Column(
            "smallest cache",
            [_blocks(size, block) for size in sizes],
            best=best_index(sizes, highest=False),
        ),
        Column("of the perfect split", [_times(size, smallest) for size in sizes]),
    ]
    if len(sized) > 1:
        columns.append(Column("of the smallest", [_times(size, least) for size in sizes]))
    for at, tenant in enumerate(answer.tenants):
        shares = [_share(one, at, block) for one in sized]
        columns.append(Column(tenant.name, shares))
    output.say()
    table("smallest cache that meets every goal; each tenant's hit ratio and last quota", columns)
    for one in sized:
        if one.warning:
            output.note(f"{one.partition}: {one.warning}")
    output.say(conclusion(answer))


def conclusion(answer: PlanAnswer) -> str:
    """Return the smallest cache and by which partitioner, or that none meets the goals."""
    block, sized = answer.block_bytes, answer.partitions
    found = {one.partition: one.smallest_blocks for one in sized}
    goals = [tenant.goal_hit_ratio for tenant in answer.tenants]
    number = words.counted(sum(goal is not None for goal in goals), "goal")
    best = answer.best
    if best is None:
        tried = ", ".join(found)
        return f"no cache size meets every goal ({number}) under {tried}; hit ratios are the best"
    line = f"smallest cache: {_blocks(found[best], block)} under {best}, which meets {number}"
    others = {name: size for name, size in found.items() if size is not None and name != best}
    if not others:
        return line
    second = min(others, key=others.__getitem__)
    return f"{line}; next is {second} with {_blocks(others[second], block)}"


def _times(blocks: int | None, smallest: int | None) -> str:
    if not blocks or not smallest:
        return words.NOTHING
    return f"{words.significant(blocks / smallest)} x"


def _share(one: PlanPartition, at: int, block: int) -> str:
    if not one.hit_ratios:
        return words.NOTHING
    ratio = words.ratio(one.hit_ratios[at])
    quotas = one.quota_blocks
    if not quotas or one.partition == "shared":
        return ratio
    return f"{ratio} in {words.size(quotas[at] * block)}"
