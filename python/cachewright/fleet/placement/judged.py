"""Goals that hosts' caches keep when they are replayed: the plan's and those of simpler ways.

For: `plan --fleet --replay`. Must never know: curves or solvers. Every way has the same hosts with
the same flash, in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cachewright import api
from cachewright._native import RunError
from cachewright.answers import ReplayedPlacing
from cachewright.fleet.placement import host_files
from cachewright.fleet.placement.greedy import NOWHERE, first_fit, in_turn
from cachewright.fleet.placement.problem import Problem

if TYPE_CHECKING:
    from cachewright.fleet.placement.demand import Demand
    from cachewright.fleet.placement.fleet_file import Fleet
    from cachewright.fleet.placement.problem import Integers
    from cachewright.types import Progress

NO_CURVES = {"replay.curves": "false", "replay.windows": "0"}


@dataclass(frozen=True)
class Way:
    """A way to place: each volume's host and its blocks by window; another partition."""

    name: str
    assigned: Integers
    quotas: Sequence[Sequence[int]]
    partition: str | None = None


def simpler_ways(problem: Problem, demands: Sequence[Demand], flash: int) -> list[Way]:
    """Return first fit, and equal shares of hosts that take volumes in turn.

    First fit puts a volume that fits nowhere on the host with the most room left; its cache is then
    divided in proportion to needs.
    """
    assigned = first_fit(problem, flash)
    most = problem.needs[:, : problem.windows].max(axis=1, initial=0)
    room = np.full(problem.hosts, flash, dtype=np.int64)
    np.subtract.at(room, assigned[assigned != NOWHERE], most[assigned != NOWHERE])
    for volume in np.flatnonzero(assigned == NOWHERE).tolist():
        host = int(np.argmax(room))
        assigned[volume] = host
        room[host] -= most[volume]
    needs = [demand.blocks.tolist() for demand in demands]
    return [
        Way("first fit", assigned, needs),
        Way("equal shares, in turn", in_turn(problem), needs, "equal"),
    ]


def replayed(
    fleet: Fleet,
    way: Way,
    hosts: int,
    flash: int,
    window_ns: int,
    threads: int,
    progress: Progress | None = None,
) -> ReplayedPlacing:
    """Replay every host of a way, each as one task, and count the goals met.

    Errors: those of `run`; `RunError` when cancelled.
    """
    members = [np.flatnonzero(way.assigned == host).tolist() for host in range(hosts)]
    stacks = [
        host_files.stack(
            fleet,
            host_files.host_name(host, hosts),
            [fleet.volumes[volume] for volume in volumes],
            [way.quotas[volume] for volume in volumes],
            max(flash, len(volumes)),
            window_ns=window_ns,
            partition=way.partition,
        )
        for host, volumes in enumerate(members)
        if volumes
    ]
    goals = met = hits = accesses = 0
    missed: list[str] = []
    with ThreadPoolExecutor(threads) as pool:
        found = pool.map(lambda one: api.run(one, settings=NO_CURVES, threads=1).answer, stacks)
        for done, answer in enumerate(found, 1):
            case = answer.cases[0]
            hits += case.total.hits
            accesses += case.total.accesses
            for tenant in case.tenants:
                if tenant.goal_met is not None:
                    goals += 1
                    met += tenant.goal_met
                    if not tenant.goal_met:
                        missed.append(tenant.name)
            if (
                progress is not None
                and progress(f"replaying {way.name}", done, len(stacks)) is False
            ):
                pool.shutdown(wait=True, cancel_futures=True)
                raise RunError("cancelled by the progress call-back")
    ratio = hits / accesses if accesses else 0.0
    return ReplayedPlacing(
        name=way.name, goals=goals, goals_met=met, hit_ratio=ratio, missed=tuple(missed)
    )
