"""The fewest bytes that move when a host dies or volumes grow.

For: changing a packing that is there. Must never know: how it was found. Only volumes that must
move are moved: those of the dead host, and of hosts beyond a limit. What they move is what their
new hosts must fetch again, in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cachewright.fleet.placement.greedy import as_floats
from cachewright.fleet.placement.problem import Problem, fewest_hosts, least_peak
from cachewright.fleet.placement.search import FULL, keep_apart, shares, solver

if TYPE_CHECKING:
    from cachewright.fleet.placement.problem import Integers

WORK = 5.0


@dataclass(frozen=True)
class Moves:
    """The volumes that move, where to, and the flash they fill there, in blocks."""

    assigned: Integers
    moved: tuple[int, ...]
    blocks: int


def repaired(problem: Problem, assigned: Integers, dead: int | None = None) -> Moves | None:
    """Return a packing within all limits that moves the least flash; `None` where none was found.

    `dead` is a host that takes no volume. Every solve is bounded by deterministic work.
    """
    leaving = np.array(np.any(problem.loads(assigned) > problem.limits, axis=1))
    if dead is not None:
        leaving[dead] = True
    free = np.flatnonzero(leaving[assigned])
    if len(free) == 0:
        return Moves(assigned, (), 0)
    left = problem.with_hosts(problem.hosts - (dead is not None))
    if least_peak(left) > int(problem.limits[0]) or fewest_hosts(problem) > left.hosts:
        return None
    found = _packed(problem, assigned, free, dead)
    if found is None:
        return None
    new = assigned.copy()
    new[free] = found
    moved = np.flatnonzero(new != assigned)
    flash = problem.needs[moved, : problem.windows].max(axis=1, initial=0)
    return Moves(new, tuple(moved.tolist()), int(flash.sum()))


def _packed(
    problem: Problem, assigned: Integers, free: Integers, dead: int | None
) -> Integers | None:
    cp_model = solver()
    model = cp_model.CpModel()
    parts = shares(problem, as_floats(problem.limits))
    loads = np.zeros((problem.hosts, parts.shape[1]), dtype=np.int64)
    staying = np.setdiff1d(np.arange(len(assigned)), free)
    np.add.at(loads, assigned[staying], parts[staying])
    hosts = [host for host in range(problem.hosts) if host != dead]
    at = [[model.new_bool_var("") for _ in hosts] for _ in free]
    for row in at:
        model.add_exactly_one(row)
    for index, host in enumerate(hosts):
        column = [row[index] for row in at]
        for dimension in range(parts.shape[1]):
            weights = parts[free, dimension].tolist()
            room = FULL - int(loads[host, dimension])
            if any(weights):
                model.add(cp_model.LinearExpr.weighted_sum(column, weights) <= room)
        there = frozenset(problem.groups[staying[assigned[staying] == host]].tolist())
        keep_apart(problem, model, free, column, there)
    flash = problem.needs[free, : problem.windows].max(axis=1, initial=0).tolist()
    staying_terms = [
        row[hosts.index(int(assigned[volume]))] * int(size)
        for row, volume, size in zip(at, free.tolist(), flash, strict=True)
        if int(assigned[volume]) != dead
    ]
    model.maximize(sum(staying_terms))
    run = cp_model.CpSolver()
    run.parameters.num_workers = 1
    run.parameters.max_deterministic_time = WORK
    if run.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    places = [[run.boolean_value(variable) for variable in row].index(True) for row in at]
    return np.array([hosts[place] for place in places], dtype=np.int64)
