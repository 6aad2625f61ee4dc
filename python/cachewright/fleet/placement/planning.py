"""From a fleet file to a plan: curves, needs, packing, changes, stacks and replays.

For: the verb `plan_fleet`. Must never know: the command line. Units: blocks of `cache.block`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cachewright import words
from cachewright._native import SCHEMA_VERSION, RunError, __version__
from cachewright.answers import FleetPlanAnswer, OtherPlacing, PlacementChange, PlannedVolume
from cachewright.fleet.placement import demand as demands_of
from cachewright.fleet.placement import fleet_file, greedy, host_files, judged, moves, search, spare
from cachewright.fleet.placement.demand import Demand
from cachewright.fleet.placement.fleet_file import Fleet
from cachewright.fleet.placement.problem import (
    ALONE,
    NO_LIMIT,
    Problem,
    fewest_hosts,
    least_peak,
    too_large,
)
from cachewright.types import PathLike

if TYPE_CHECKING:
    from cachewright.fleet.placement.problem import Integers
    from cachewright.types import Progress

FLASH, WEAR, IOPS, BANDWIDTH = "flash", "drive writes", "requests", "bandwidth"
THE_PLAN = "this plan"


def plan_fleet(
    file: PathLike,
    *,
    grow: Mapping[str | None, float] | None = None,
    replay: bool = False,
    out: PathLike | None = None,
    force: bool = False,
    effort: search.Effort | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> FleetPlanAnswer:
    """Return which volumes go on which host, so that all goals are kept with the least flash.

    `file` is a fleet file (docs/planning.md). Without `hosts.flash` the least flash of `count`
    equal hosts is looked for, with it the fewest hosts. `grow` has shares by which volumes may
    grow, by name or for all (`None`); what then moves is in `changes`, as is what moves when each
    host dies. `replay` also replays all hosts and those of simpler ways. With `out` a folder with
    `fleet.json`, `placement.parquet` and a stack file per host is written. The answer does not
    depend on `threads` (0 uses every core). Errors: `SpecError`, `TraceError`; `RunError` where
    the hosts cannot hold the volumes.
    """
    search.solver()
    threads = threads or os.cpu_count() or 1
    fleet = fleet_file.read_fleet(Path(file))
    demands = demands_of.measure(fleet, threads, progress)
    problem = problem_of(fleet, demands)
    packing, problem, bound = _packed(fleet, problem, demands, effort or search.Effort(), progress)
    flash = int(problem.limits[0]) if fleet.hosts.flash_bytes is not None else packing.peak
    full = _limited(problem, flash)
    changes = [_death(full, packing.assigned, host, demands) for host in range(problem.hosts)]
    changes += _grown(full, packing.assigned, demands, grow or {})
    quotas = _quotas(problem, packing.assigned, demands, flash)
    members = [np.flatnonzero(packing.assigned == host).tolist() for host in range(problem.hosts)]
    span = max(one.curve.span_ns for one in demands)
    window_ns = -(-max(span, 1) // problem.windows)
    stacks = _stacks(fleet, members, quotas, flash, window_ns)
    ways = judged.simpler_ways(full, demands, flash)
    replays = []
    if replay:
        for way in [judged.Way(THE_PLAN, packing.assigned, quotas), *ways]:
            replays.append(
                judged.replayed(fleet, way, problem.hosts, flash, window_ns, threads, progress)
            )
    plan = FleetPlanAnswer(
        cachewright=__version__,
        schema_version=SCHEMA_VERSION,
        name=fleet.name,
        block_bytes=fleet.block,
        windows=problem.windows,
        hosts=problem.hosts,
        bound_hosts=bound,
        flash_blocks=packing.peak,
        bound_blocks=packing.bound,
        gap=packing.gap,
        flash_given=fleet.hosts.flash_bytes is not None,
        solves=packing.solves,
        volumes=tuple(_planned(demands, packing.assigned, quotas)),
        others=tuple(_others(problem, demands)),
        changes=tuple(changes),
        replayed=tuple(replays),
        notes=tuple(_notes(fleet, demands)),
    )
    if out is not None:
        host_files.write(Path(out), plan, stacks, force=force)
    return plan


def problem_of(fleet: Fleet, demands: Sequence[Demand]) -> Problem:
    """Return needs and limits; dimensions without a limit are left out, but for flash."""
    hosts, windows = fleet.hosts, fleet.hosts.peaks
    columns = [np.array([demand.blocks for demand in demands], dtype=np.int64)]
    limits, names = [hosts.flash_blocks(fleet.block)] * windows, [FLASH] * windows
    if (most := hosts.blocks_per_day(fleet.block)) != NO_LIMIT:
        written = [[int(np.ceil(one.curve.written(one.most)))] for one in demands]
        columns, limits, names = [*columns, np.array(written)], [*limits, most], [*names, WEAR]
    for name, limit, rates in (
        (IOPS, hosts.max_iops, [[one.iops] for one in demands]),
        (BANDWIDTH, hosts.max_bandwidth, [[one.bandwidth] for one in demands]),
    ):
        if limit is not None:
            columns, limits, names = [*columns, np.array(rates)], [*limits, limit], [*names, name]
    known: dict[str, int] = {}
    groups = [
        ALONE if one.volume.group is None else known.setdefault(one.volume.group, len(known))
        for one in demands
    ]
    return Problem(
        np.concatenate(columns, axis=1).astype(np.int64),
        np.array(limits, dtype=np.int64),
        np.array(groups, dtype=np.int64),
        windows,
        hosts.count,
        tuple(names),
    )


def _packed(
    fleet: Fleet,
    problem: Problem,
    demands: Sequence[Demand],
    effort: search.Effort,
    progress: Progress | None,
) -> tuple[search.Packing, Problem, int]:
    """Return the packing, its problem on the hosts used, and the bound of their number."""
    for volume, name in too_large(problem):
        need = demands[volume]
        raise RunError(
            f"{fleet.origin}: volume `{need.volume.name}` needs more {name} than a host has "
            f"({words.size(need.most * fleet.block)} of cache), expected larger hosts"
        )
    fewest = fewest_hosts(problem)
    if fleet.hosts.flash_bytes is None:
        packing = search.least_flash(problem, effort, progress)
        broken = problem.broken(packing.assigned)
        if not broken:
            return packing, problem, fewest
    else:
        flash = int(problem.limits[0])
        found = search.least_hosts(problem, flash, effort, progress)
        if found is not None:
            return found[0], problem.with_hosts(len(set(found[0].assigned.tolist()))), found[1]
        broken = problem.broken(greedy.levelled(problem, flash), flash)
    raise RunError(
        f"{fleet.origin}: `hosts.count`: found {problem.hosts}, with which no plan was found "
        f"({', '.join(broken)} beyond what hosts have), expected {fewest} or more"
    )


def _limited(problem: Problem, flash: int) -> Problem:
    limits = problem.limits.copy()
    limits[: problem.windows] = flash
    return Problem(
        problem.needs, limits, problem.groups, problem.windows, problem.hosts, problem.names
    )


def _death(
    problem: Problem, assigned: Integers, host: int, demands: Sequence[Demand]
) -> PlacementChange:
    name = host_files.host_name(host, problem.hosts)
    return _change(problem, assigned, f"{name} dies", demands, host)


def _grown(
    problem: Problem,
    assigned: Integers,
    demands: Sequence[Demand],
    grow: Mapping[str | None, float],
) -> list[PlacementChange]:
    """Return what moves when the volumes named need so much more of everything."""
    if not grow:
        return []
    names = [one.volume.name for one in demands]
    unknown = [name for name in grow if name is not None and name not in names]
    if unknown:
        raise RunError(f"`grow`: found no volume `{unknown[0]}` in the fleet")
    factors = np.array([1 + grow.get(name, grow.get(None, 0.0)) for name in names])
    needs = np.ceil(problem.needs * factors[:, None]).astype(np.int64)
    larger = Problem(
        needs, problem.limits, problem.groups, problem.windows, problem.hosts, problem.names
    )
    shown = ", ".join(
        f"{'all' if name is None else name} by {words.percent(share)}"
        for name, share in grow.items()
    )
    return [_change(larger, assigned, f"growth of {shown}", demands, None)]


def _change(
    problem: Problem,
    assigned: Integers,
    what: str,
    demands: Sequence[Demand],
    dead: int | None,
) -> PlacementChange:
    found = None
    if dead is None or problem.hosts > 1:
        found = moves.repaired(problem, assigned, dead)
    flash = int(problem.limits[0])
    if found is not None:
        names = tuple(demands[volume].volume.name for volume in found.moved)
        return PlacementChange(
            what=what, fits=True, moved=names, blocks=found.blocks, needed_blocks=flash
        )
    hosts = problem.hosts if dead is None else problem.hosts - 1
    left = problem.with_hosts(max(hosts, 1))
    levelled = greedy.levelled(left, least_peak(left))
    return PlacementChange(
        what=what, fits=False, moved=(), blocks=0, needed_blocks=left.peak(levelled)
    )


def _quotas(
    problem: Problem, assigned: Integers, demands: Sequence[Demand], flash: int
) -> list[list[int]]:
    """Return each volume's blocks by window.

    With one window, what needs leave of a host is divided where it helps most.
    """
    found = [one.blocks.tolist() for one in demands]
    if problem.windows > 1:
        return found
    for host in range(problem.hosts):
        there = np.flatnonzero(assigned == host).tolist()
        given = spare.quotas([demands[volume] for volume in there], flash)
        for volume, blocks in zip(there, given, strict=True):
            found[volume] = [blocks]
    return found


def _stacks(
    fleet: Fleet,
    members: Sequence[Sequence[int]],
    quotas: Sequence[Sequence[int]],
    flash: int,
    window_ns: int,
) -> dict[str, dict[str, Any]]:
    found = {}
    for host, volumes in enumerate(members):
        name = host_files.host_name(host, len(members))
        given = [quotas[volume] for volume in volumes]
        capacity = sum(each[0] for each in given) if fleet.hosts.peaks == 1 else flash
        there = [fleet.volumes[volume] for volume in volumes]
        if there:
            size = max(capacity, len(there))
            found[name] = host_files.stack(fleet, name, there, given, size, window_ns=window_ns)
    return found


def _planned(
    demands: Sequence[Demand], assigned: Integers, quotas: Sequence[Sequence[int]]
) -> list[PlannedVolume]:
    return [
        PlannedVolume(
            name=one.volume.name,
            host=int(host),
            group=one.volume.group,
            goal_hit_ratio=one.volume.goal,
            reached=one.reached,
            best_hit_ratio=one.curve.best,
            hit_ratio=one.curve.ratio(max(blocks)),
            need_blocks=one.most,
            blocks=max(blocks),
            written_blocks_per_day=one.curve.written(max(blocks)),
            iops=one.iops,
            bandwidth_bytes=one.bandwidth,
        )
        for one, host, blocks in zip(demands, assigned.tolist(), quotas, strict=True)
    ]


def _others(problem: Problem, demands: Sequence[Demand]) -> list[OtherPlacing]:
    """Return the flash per host that first fit and equal shares need on as many hosts."""
    members = np.bincount(np.arange(len(demands)) % problem.hosts, minlength=problem.hosts)
    largest = np.zeros(problem.hosts, dtype=np.int64)
    np.maximum.at(largest, greedy.in_turn(problem), [one.most for one in demands])
    return [
        OtherPlacing(
            name="first fit", flash_blocks=greedy.least_first_fit(problem, least_peak(problem))
        ),
        OtherPlacing(name="equal shares, in turn", flash_blocks=int((members * largest).max())),
    ]


def _notes(fleet: Fleet, demands: Sequence[Demand]) -> list[str]:
    found = [
        f"{one.volume.name}: no cache meets its goal {words.ratio(one.volume.goal)}; the best hit "
        f"ratio is {words.ratio(one.curve.best)}"
        for one in demands
        if not one.reached
    ]
    without = sum(one.volume.goal is None for one in demands)
    if without and fleet.hosts.flash_bytes is None:
        found.append(
            f"{words.counted(without, 'volume')} without a goal: they get what goals leave, which "
            "is little without `hosts.flash`; `floor` is a least cache"
        )
    if fleet.hosts.blocks_per_day(fleet.block) != NO_LIMIT:
        found.append("writes to flash are read off curves, as if writes hit as often as reads do")
    return found
