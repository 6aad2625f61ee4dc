"""Packings in one pass: first fit, and the host that stays the emptiest.

For: where a search begins, and what a plan is compared with. Must never know: a solver. Volumes
are rows of a `Problem`, hosts are numbers from 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cachewright.fleet.placement.problem import ALONE, NO_LIMIT, Problem

if TYPE_CHECKING:
    from cachewright.fleet.placement.problem import Floats, Integers

NOWHERE = -1


def first_fit(problem: Problem, flash: int) -> Integers:
    """Return each volume's host: the first that it fits on, in the order given; else `NOWHERE`."""
    room = np.tile(_limits(problem, flash), (problem.hosts, 1))
    members = _Members(problem)
    assigned = np.full(len(problem.needs), NOWHERE, dtype=np.int64)
    for volume, need in enumerate(problem.needs):
        fits = (room >= need).all(axis=1) & members.may_join(volume)
        if fits.any():
            host = int(np.argmax(fits))
            assigned[volume] = host
            room[host] -= need
            members.join(volume, host)
    return assigned


def least_first_fit(problem: Problem, bound: int) -> int | None:
    """Return the least flash per host, in blocks, with which first fit finds a host for all.

    `bound` is a size known to be too small or just enough. Sizes are tried by halving, as if more
    flash were never worse. `None`: limits other than flash leave a volume without a host.
    """
    most = int(problem.needs[:, : problem.windows].max(axis=1).sum())
    if (first_fit(problem, max(most, bound)) == NOWHERE).any():
        return None
    low, high = bound, max(most, bound)
    while low < high:
        middle = (low + high) // 2
        if (first_fit(problem, middle) == NOWHERE).any():
            low = middle + 1
        else:
            high = middle
    return high


def in_turn(problem: Problem) -> Integers:
    """Return volume 0 on host 0, volume 1 on host 1 and so on, over and over."""
    return np.arange(len(problem.needs), dtype=np.int64) % problem.hosts


def levelled(problem: Problem, target: int) -> Integers:
    """Return each volume's host: the largest volume first, where the fullest dimension is least.

    Dimensions are compared as shares of their limits, flash as a share of `target` blocks.
    """
    shares = problem.needs / np.maximum(as_floats(_limits(problem, target)), 1.0)
    loads = np.zeros((problem.hosts, shares.shape[1]))
    members = _Members(problem)
    assigned = np.zeros(len(shares), dtype=np.int64)
    order = np.argsort(-shares.max(axis=1, initial=0.0), kind="stable")
    for volume in order.tolist():
        fullest = (loads + shares[volume]).max(axis=1)
        allowed = members.may_join(volume)
        host = int(np.argmin(np.where(allowed, fullest, np.inf) if allowed.any() else fullest))
        assigned[volume] = host
        loads[host] += shares[volume]
        members.join(volume, host)
    return assigned


def as_floats(limits: Integers) -> Floats:
    """Return limits as numbers of which `NO_LIMIT` is infinite."""
    return np.where(limits == NO_LIMIT, np.inf, limits.astype(np.float64))


def _limits(problem: Problem, flash: int) -> Integers:
    limits = problem.limits.copy()
    limits[: problem.windows] = np.minimum(limits[: problem.windows], flash)
    return limits


class _Members:
    """Which groups have a volume on which host."""

    def __init__(self, problem: Problem) -> None:
        self.groups = problem.groups
        groups = int(problem.groups.max(initial=ALONE)) + 1
        self.there = np.zeros((problem.hosts, groups), dtype=np.bool_)

    def may_join(self, volume: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return, by host, whether it has no volume of this one's group."""
        group = int(self.groups[volume])
        if group == ALONE:
            return np.ones(len(self.there), dtype=np.bool_)
        return ~self.there[:, group]

    def join(self, volume: int, host: int) -> None:
        """Note a volume on a host."""
        group = int(self.groups[volume])
        if group != ALONE:
            self.there[host, group] = True
