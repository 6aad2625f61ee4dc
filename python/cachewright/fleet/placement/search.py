"""The packing that needs the least flash per host, by a solver on a few hosts at a time.

For: `least_flash` and `least_hosts`. Must never know: curves or files. Large neighbourhood search
(Shaw, CP 1998): the fullest host and some others are emptied, and CP-SAT packs their volumes anew
so that the fullest of them is as empty as possible. Every solve is bounded by deterministic work,
not by time, and has one thread: the same problem gives the same packing on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cachewright._native import SpecError
from cachewright.fleet.placement.greedy import as_floats, levelled
from cachewright.fleet.placement.problem import ALONE, Problem, fewest_hosts, least_peak

if TYPE_CHECKING:
    from cachewright.fleet.placement.problem import Floats, Integers
    from cachewright.types import Progress

# Whole numbers of a full host: a solver knows no fractions.
FULL = 1_000_000
# A host beyond another limit weighs more than all flash.
BEYOND = 1_000


@dataclass(frozen=True)
class Effort:
    """How long a search goes on.

    `gap`: share above the lower bound that is good enough. `rounds`: solves without a gain after
    which it ends. `work`: deterministic units per solve, about seconds of a slow core. `hosts`:
    emptied at a time.
    """

    gap: float = 0.001
    rounds: int = 60
    work: float = 1.0
    hosts: int = 4
    seed: int = 1


@dataclass(frozen=True)
class Packing:
    """Each volume's host, the flash of the fullest host and the bound, in blocks."""

    assigned: Integers
    peak: int
    bound: int
    solves: int

    @property
    def gap(self) -> float:
        """Return the share by which the fullest host is above the bound."""
        return self.peak / self.bound - 1 if self.bound else 0.0


def least_flash(problem: Problem, effort: Effort, progress: Progress | None = None) -> Packing:
    """Return the packing whose fullest host needs the least flash within the other limits.

    A packing that is still beyond another limit is returned as it is; `Problem.broken` names it.
    """
    search = _Search(problem, effort)
    search.run(progress)
    return Packing(search.assigned, problem.peak(search.assigned), search.bound, search.solves)


def least_hosts(
    problem: Problem, flash: int, effort: Effort, progress: Progress | None = None
) -> tuple[Packing, int] | None:
    """Return the packing on the fewest hosts of `flash` blocks, and the bound of their number.

    Counts are tried upwards from the bound to `problem.hosts`; the first that fits is taken, so
    that a smaller one was not found, and below the bound there is none. `None`: none fits.
    """
    fewest = fewest_hosts(problem)
    for hosts in range(fewest, problem.hosts + 1):
        smaller = problem.with_hosts(hosts)
        if least_peak(smaller) > flash:
            continue
        search = _Search(smaller, effort, flash)
        search.run(progress)
        if not smaller.broken(search.assigned, flash):
            peak = smaller.peak(search.assigned)
            return Packing(search.assigned, peak, search.bound, search.solves), fewest
    return None


class _Search:
    """One run: the best packing so far, and what is tried next."""

    def __init__(self, problem: Problem, effort: Effort, enough: int | None = None) -> None:
        self.problem, self.effort = problem, effort
        self.bound = least_peak(problem)
        target = max(self.bound, 1)
        # A peak that ends the search.
        self.enough = max(target, enough or int(target * (1 + effort.gap)))
        limits = as_floats(problem.limits)
        limits[: problem.windows] = target
        self.parts = shares(problem, limits)
        self.assigned = levelled(problem, target)
        self.random = np.random.default_rng(effort.seed)
        self.solves = 0

    def run(self, progress: Progress | None) -> None:
        """Solve until the fullest host is good enough, or nothing has helped for long."""
        idle = 0
        hosts = min(self.effort.hosts, self.problem.hosts)
        while not self._is_done() and idle < self.effort.rounds and self.problem.hosts > 1:
            chosen = self._chosen(hosts)
            idle = 0 if self._solve(chosen) else idle + 1
            self.solves += 1
            if progress is not None:
                progress("packing volumes", self.solves, None)

    def _is_done(self) -> bool:
        within = self.problem.peak(self.assigned) <= self.enough
        return within and not self.problem.broken(self.assigned)

    def _scores(self) -> Floats:
        """Return how full each host is; beyond another limit, or with twins, far above full."""
        loads = np.zeros((self.problem.hosts, self.parts.shape[1]), dtype=np.int64)
        np.add.at(loads, self.assigned, self.parts)
        windows = self.problem.windows
        beyond = np.maximum(loads[:, windows:] - FULL, 0).max(axis=1, initial=0)
        scores = loads[:, :windows].max(axis=1) + BEYOND * beyond + BEYOND * FULL * self._twins()
        return np.asarray(scores, dtype=np.float64)

    def _twins(self) -> Integers:
        found = np.zeros(self.problem.hosts, dtype=np.int64)
        seen = set()
        for host, group in zip(self.assigned.tolist(), self.problem.groups.tolist(), strict=True):
            if group != ALONE and (host, group) in seen:
                found[host] += 1
            seen.add((host, group))
        return found

    def _chosen(self, hosts: int) -> list[int]:
        """Return the fullest host, the emptiest one and others at random."""
        scores = self._scores()
        order = np.argsort(-scores, kind="stable")
        fullest, emptiest = int(order[0]), int(order[-1])
        others = [host for host in order.tolist() if host not in (fullest, emptiest)]
        drawn = self.random.permutation(len(others))[: hosts - 2]
        return [fullest, emptiest, *(others[index] for index in drawn.tolist())]

    def _solve(self, chosen: list[int]) -> bool:
        """Pack the volumes of the chosen hosts anew; whether their fullest one is less full."""
        volumes = np.flatnonzero(np.isin(self.assigned, chosen))
        before = float(self._scores()[chosen].max())
        found = self._packed(volumes, chosen)
        if found is None:
            return False
        kept = self.assigned.copy()
        self.assigned[volumes] = found
        if float(self._scores()[chosen].max()) < before:
            return True
        self.assigned = kept
        return False

    def _packed(self, volumes: Integers, hosts: list[int]) -> Integers | None:
        """Return the volumes' hosts by CP-SAT; nothing where it found none in its work."""
        cp_model = solver()
        model = cp_model.CpModel()
        at = [[model.new_bool_var("") for _ in hosts] for _ in volumes]
        peak = model.new_int_var(0, FULL * len(volumes) + FULL, "")
        beyond = model.new_int_var(0, FULL * len(volumes) + FULL, "")
        parts = self.parts[volumes].tolist()
        for row, volume in zip(at, volumes.tolist(), strict=True):
            model.add_exactly_one(row)
            for variable, host in zip(row, hosts, strict=True):
                model.add_hint(variable, int(self.assigned[volume] == host))
        for index in range(len(hosts)):
            column = [row[index] for row in at]
            for dimension in range(self.parts.shape[1]):
                if any(part[dimension] for part in parts):
                    load = cp_model.LinearExpr.weighted_sum(
                        column, [part[dimension] for part in parts]
                    )
                    is_flash = dimension < self.problem.windows
                    model.add(load <= (peak if is_flash else FULL + beyond))
            keep_apart(self.problem, model, volumes, column)
        enough = int(self.enough / max(self.bound, 1) * FULL)
        # Below what is good enough a smaller peak is worth nothing.
        model.add(peak >= enough)
        model.minimize(peak + BEYOND * beyond)
        run = cp_model.CpSolver()
        run.parameters.num_workers = 1
        run.parameters.random_seed = self.effort.seed
        run.parameters.max_deterministic_time = self.effort.work
        if run.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        places = [[run.boolean_value(variable) for variable in row].index(True) for row in at]
        return np.array([hosts[place] for place in places], dtype=np.int64)


def shares(problem: Problem, limits: Floats) -> Integers:
    """Return what each volume needs in millionths of limits; up, so that what fits truly fits."""
    return np.ceil(problem.needs / np.maximum(limits, 1.0) * FULL).astype(np.int64)


def keep_apart(
    problem: Problem,
    model: Any,
    volumes: Integers,
    column: list[Any],
    there: frozenset[int] = frozenset(),
) -> None:
    """Allow on a host one volume of each group, and none of those that are `there` already.

    `column` has a variable per volume, which is true where the volume comes to the host.
    """
    groups: dict[int, list[Any]] = {}
    for volume, variable in zip(volumes.tolist(), column, strict=True):
        group = int(problem.groups[volume])
        if group != ALONE:
            groups.setdefault(group, []).append(variable)
    for group, members in groups.items():
        if group in there:
            model.add(sum(members) == 0)
        elif len(members) > 1:
            model.add_at_most_one(members)


def solver() -> Any:
    """Return the module of the solver. Errors: `SpecError` where it is not installed."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise SpecError(
            "found no solver for plans of many hosts, expected the extra `fleet`: "
            "pip install 'cachewright[fleet]'"
        ) from None
    return cp_model
