"""Measures policies on single volumes, for their table of regrets on docs/which-scheme.md.

For: lab/studies/regret.py, the table behind `policy = "auto"`. Must never know: how a policy
decides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import cachewright
from cachewright import registries
from cachewright.answers import Case
from regret_tables import Study

CAPACITIES = ("1%wss", "5%wss", "20%wss", "50%wss")
# Misses that a block written to flash costs: the price of `rc-x` and of `cachesack`.
WRITE_PRICE = 0.1
# Policies that need these do not run on a volume alone.
UNMET_NEEDS = {"future", "benefit", "model", "code"}
# Learned by boosted trees, 40 times slower than the others.
TOO_SLOW = ("lrb",)
FURTHER = ("build", "dss", "file", "kv", "phases", "video")


def schemes() -> list[str]:
    """Return what the table compares: `auto`, then the policies that learn while they run."""
    entries = registries.list("policies")
    online = [entry.name for entry in entries if not UNMET_NEEDS & set(entry.needs)]
    return ["auto", *(name for name in online if name not in TOO_SLOW)]


def misses(case: Case) -> float:
    """Return the accesses that found no block, at least 1."""
    return max(case.total.misses, 1)


def misses_and_writes(case: Case) -> float:
    """Return misses with the blocks written to flash at their price."""
    return misses(case) + WRITE_PRICE * case.total.cache_writes


def mean_response(case: Case) -> float:
    """Return the mean response of all requests."""
    assert case.timing is not None, "the stack has devices"
    return case.timing.total.mean_ns


REPLAYED: dict[str, Callable[[Case], float]] = {
    "misses": misses,
    "misses and writes": misses_and_writes,
}
TIMED: dict[str, Callable[[Case], float]] = {"mean response": mean_response}


def stack(trace: Path, *, machine: dict[str, Any], stop: str) -> dict[str, Any]:
    """Return the stack of a volume, on a machine if there is one."""
    name = trace.name.split(".")[0]
    # Arrivals of some volumes overrun the devices, so that each of eight slots waits for answers.
    replay = {"loop": "closed"} if machine else {"stop": stop}
    return {
        "name": name,
        "cache": {"capacity": CAPACITIES[0], "policy": "lru"},
        "replay": replay,
        "tenant": [{"name": name, "trace": str(trace)}],
        **machine,
    }


def studies(
    traces: Iterable[Path], out: Path, *, machine: dict[str, Any], stop: str
) -> Iterator[Study]:
    """Yield the studies of each volume, all of one kind of replay."""
    names = schemes()
    for trace in traces:
        given = stack(trace, machine=machine, stop=stop)
        folder = out / f"{given['name']}-{'timed' if machine else 'replayed'}-policies"
        vary = {"capacity": list(CAPACITIES), "policy": names}
        cases = cachewright.compare(given, vary, out=folder).answer.cases
        print(f"{folder.name}: {len(cases)} cases", file=sys.stderr)
        for kind, measure in (TIMED if machine else REPLAYED).items():
            for capacity in CAPACITIES:
                of_size = [case for case in cases if case.settings["cache.capacity"] == capacity]
                found = {case.settings["cache.policy"]: measure(case) for case in of_size}
                yield Study(kind, f"{given['name']} {capacity}", found)
