"""Volumes that need something of a host in several dimensions, and hosts with limits.

For: loads, what is beyond a limit, and lower bounds of every packing. Must never know: where needs
come from, how a packing is found. The first `windows` dimensions are flash by window of time, in
blocks; the others have units of their own. All hosts are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

ALONE = -1
# No limit in a dimension.
NO_LIMIT = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Problem:
    """What volumes need and what a host has.

    `needs` has a row per volume and a column per dimension; `limits` has a value per dimension,
    `NO_LIMIT` for none, those of flash included. `groups` has a number per volume: two volumes of
    one group never share a host; `ALONE` is no group.
    """

    needs: Integers
    limits: Integers
    groups: Integers
    windows: int
    hosts: int
    names: tuple[str, ...]

    def with_hosts(self, hosts: int) -> Problem:
        """Return the same volumes on another number of hosts."""
        return Problem(self.needs, self.limits, self.groups, self.windows, hosts, self.names)

    def loads(self, assigned: Integers) -> Integers:
        """Return what each host's volumes need together: a row per host."""
        found = np.zeros((self.hosts, self.needs.shape[1]), dtype=np.int64)
        np.add.at(found, assigned, self.needs)
        return found

    def peak(self, assigned: Integers) -> int:
        """Return the flash that the fullest host needs in its fullest window, in blocks."""
        return int(self.loads(assigned)[:, : self.windows].max(initial=0))

    def twins(self, assigned: Integers) -> int:
        """Return how many volumes share their host with one of their group before them."""
        grouped = self.groups != ALONE
        pairs = np.stack([assigned[grouped], self.groups[grouped]], axis=1)
        return int(len(pairs) - len(np.unique(pairs, axis=0)))

    def broken(self, assigned: Integers, flash: int | None = None) -> list[str]:
        """Return the names of the dimensions in which a host is beyond its limit."""
        limits = self.limits.copy()
        if flash is not None:
            limits[: self.windows] = flash
        beyond = np.any(self.loads(assigned) > limits, axis=0).tolist()
        found = [name for name, broken in zip(self.names, beyond, strict=True) if broken]
        return list(dict.fromkeys(found)) + (["group"] if self.twins(assigned) else [])


def least_peak(problem: Problem) -> int:
    """Return a flash size per host, in blocks, that no packing can be below.

    The largest of: the mean of all hosts in the fullest window; the largest volume; two volumes
    that share a host, of which some must if there are more volumes than hosts.
    """
    flash, hosts = problem.needs[:, : problem.windows], problem.hosts
    if len(flash) == 0:
        return 0
    mean = -(-int(flash.sum(axis=0).max()) // hosts)
    largest = int(flash.max())
    falling = np.sort(flash, axis=0)[::-1]
    shared = int((falling[hosts - 1] + falling[hosts]).max()) if len(flash) > hosts else 0
    return max(mean, largest, shared)


def fewest_hosts(problem: Problem) -> int:
    """Return a number of hosts that no packing within the limits can be below.

    The largest of: the sum of all volumes in each dimension over its limit; volumes that need more
    than half of a limit; the largest group.
    """
    fewest = 1
    for need, limit in zip(problem.needs.T, problem.limits.tolist(), strict=True):
        if limit in (NO_LIMIT, 0):
            continue
        fewest = max(fewest, -(-int(need.sum()) // limit), int((2 * need > limit).sum()))
    grouped = problem.groups[problem.groups != ALONE]
    return max(fewest, int(np.bincount(grouped).max(initial=0)) if len(grouped) else 0)


def too_large(problem: Problem) -> list[tuple[int, str]]:
    """Return the volumes that fit on no host, each with the dimension that it is beyond."""
    beyond: Any = problem.needs > problem.limits
    return [(int(row), problem.names[int(column)]) for row, column in np.argwhere(beyond)]
