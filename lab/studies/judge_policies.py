"""Judges policies on single volumes: hits with flash writes, and mean response.

For: lab/studies/judge.py. Must never know: how a policy decides. A measure of a volume is the mean
over sizes and seeds; hits and writes are per block access, responses in nanoseconds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cachewright
import regret
import regret_policies
from cachewright.answers import Case
from judge_volumes import Volume

OWN = ("rc-x", '{ name = "rc-x", by_request = false }', "duel-x")
# It names one of the others, so that it is shown and no rival.
AUTO = "auto"
# Settings that take no part: what the price of a write costs `rc-x` in hits and in responses.
ABLATED = ('{ name = "rc-x", by_request = false, write_price = 0.0 }',)
ABLATED_TIMED = ('{ name = "rc-x", write_price = 0.0 }',)
BOUNDS = ("belady-bypass", "benefit-oracle")
# The simplest rival, and those with the best responses on the bundled volumes.
BESIDE_BOUNDS = ("lru", "access-frequency", "reca")
BESIDE_SLOW = (*regret_policies.TOO_SLOW, "cacheus", "access-frequency")
TIMED_CAPACITIES = ("5%wss", "20%wss")
EPSILON = 1e-9


class Measured(NamedTuple):
    """What one scheme gave on one capture at one size."""

    volume: str
    group: str
    seed: int
    capacity: str
    scheme: str
    hits: float
    writes: float
    response_ns: float


def rivals() -> list[str]:
    """Return the policies that are not ours and learn online."""
    return [name for name in regret_policies.schemes() if name not in (*OWN, AUTO)]


def stack(volume: Volume, *, timed: bool, closed: bool) -> dict[str, Any]:
    """Return the stack of a capture, on the tiered machine if it is timed."""
    machine = {**regret.TIERED, "machine": {"system": "tiered"}} if timed else {}
    loop = {"loop": "closed"} if closed else {}
    return {
        "name": volume.label,
        "cache": {"capacity": TIMED_CAPACITIES[0], "policy": "lru"},
        "replay": loop,
        "tenant": [volume.tenant()],
        **machine,
    }


def measured(volume: Volume, case: Case) -> Measured:
    """Return what counts of a case."""
    total, timing = case.total, case.timing
    accesses = max(total.accesses, 1)
    return Measured(
        volume.name,
        volume.group,
        volume.seed,
        case.settings["cache.capacity"],
        case.settings["cache.policy"],
        total.hits / accesses,
        total.cache_writes / accesses,
        0.0 if timing is None else timing.total.mean_ns,
    )


def compared(
    volumes: Iterable[Volume],
    out: Path,
    vary: dict[str, list[str]],
    *,
    timed: bool = False,
    closed: bool = False,
) -> Iterator[Measured]:
    """Yield what every policy gave on every capture; cases are kept in folders of `out`."""
    for volume in volumes:
        given = stack(volume, timed=timed, closed=closed)
        answer = cachewright.compare(given, vary, out=out / volume.label).answer
        print(f"{out.name}: {volume.label}: {len(answer.cases)} cases", file=sys.stderr)
        yield from (measured(volume, case) for case in answer.cases)


def studies(volumes: Iterable[Volume], out: Path, *, timed: bool) -> Iterator[Measured]:
    """Return what every policy gave on every capture, one after another."""
    capacities = TIMED_CAPACITIES if timed else regret_policies.CAPACITIES
    # A closed loop has no future that a bound could know.
    policies = [*rivals(), AUTO, *OWN, *(ABLATED_TIMED if timed else (*ABLATED, *BOUNDS))]
    vary = {"capacity": list(capacities), "policy": policies}
    # Arrivals of some volumes overrun the devices: each of eight slots waits for answers.
    return compared(volumes, out, vary, timed=timed, closed=timed)


def bounded(volumes: Iterable[Volume], out: Path) -> Iterator[Measured]:
    """Return responses in an open loop, of ours, three rivals and bounds, which know the future."""
    vary = {"capacity": list(TIMED_CAPACITIES), "policy": [*BESIDE_BOUNDS, *OWN, *BOUNDS]}
    return compared(volumes, out, vary, timed=True)


def slow(volumes: Iterable[Volume], out: Path) -> Iterator[Measured]:
    """Return hits of the rival that is too slow for all sizes, beside ours, at one size."""
    vary = {"capacity": ["20%wss"], "policy": [*BESIDE_SLOW, *OWN]}
    return compared(volumes, out, vary)


class Means:
    """Means by scheme and volume over sizes and seeds: of hits, writes or responses."""

    def __init__(self, found: Iterable[Measured], field: str, *, geometric: bool = False) -> None:
        values: dict[tuple[str, str], list[float]] = {}
        for one in found:
            key = (one.scheme, f"{one.group} {one.volume}")
            values.setdefault(key, []).append(getattr(one, field))
        self.of = {key: _mean(each, geometric) for key, each in values.items()}
        self.volumes = list(dict.fromkeys(volume for _, volume in self.of))
        self.geometric = geometric

    def over(self, scheme: str, group: str = "") -> float:
        """Return the mean of a scheme over the volumes of a group."""
        chosen = [one for one in self.volumes if one.startswith(group)]
        return _mean([self.of[scheme, one] for one in chosen], self.geometric)

    def best(self, schemes: Iterable[str], *, most: bool) -> str:
        """Return the scheme with the best mean over all volumes."""
        return (max if most else min)(schemes, key=self.over)

    def best_on(self, volume: str, schemes: Iterable[str], *, most: bool) -> str:
        """Return the best scheme on one volume."""
        return (max if most else min)(schemes, key=lambda one: self.of[one, volume])


def _mean(values: list[float], geometric: bool) -> float:
    if geometric:
        return math.exp(sum(math.log(value + EPSILON) for value in values) / len(values))
    return sum(values) / len(values)
