"""Judges partitioners on mixes of volumes: the largest slowdown, and goals met.

For: lab/studies/judge.py. Must never know: how a partitioner decides. Slowdowns are beside each
tenant alone on the tiered machine, in an open loop. Goals are hit ratios that an equal division
reaches, so that they fit the cache together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cachewright
import regret
from judge_volumes import KINDS, Volume

# Kinds of a mix of fresh captures; `*` takes the next seed.
FRESH = (
    ("queue", "search"),
    ("desktops", "farm"),
    ("series", "backups", "search"),
    ("queue", "desktops", "farm", "series"),
    ("queue", "search", "series", "desktops", "backups", "farm", "search*", "farm*"),
)
BUNDLED = (("oltp", "mail"), ("mail", "web", "lu"), ("oltp", "mail", "web", "lu"))
# `auto` is `icache-x` where responses are measured.
SCHEMES = tuple(one for one in regret.TIMED if one != "icache-x")
# `icache-x` without the queue of a tenant's misses, with a longer past, and by a power mean.
ABLATED = (
    '{ name = "icache-x", queueing = 0.0 }',
    '{ name = "icache-x", half_life = 64.0 }',
    '{ name = "icache-x", norm = 4.0 }',
)
# Tenants of a mix with constant parts, what the first of them has, and what is shown beside them.
PAIR = 2
FIRST_SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Its requests overrun the device in most captures: queues only grow, and replays take too long.
TOO_LONG = "search"
BESIDE_PARTS = ("auto", "shared", "equal", "dp-response")
# Of the hit ratio under `equal`: what judges, and goals with room to spare.
GOAL_SHARE, GOAL_SHARE_WITH_ROOM = 0.9, 0.5
GOAL_SCHEMES = ("equal", "auto", "soft-qos-x", "soft-qos", "shared", "hull", "dp", "memshare")
# `soft-qos-x` whose guarantee of an equal share hardly falls.
GOAL_ABLATED = ('{ name = "soft-qos-x", margin = 1.0 }',)

# Replays on devices with more tenants, or with requests that overrun them, are cut, for time.
MOST_AT_LENGTH = 4
WHOLE, CUT = "60s", "20s"


class Mix(NamedTuple):
    """What one partitioner gave on one mix at one size; goals are counted, with hits of all."""

    name: str
    tenants: int
    capacity: str
    scheme: str
    slowdown: float
    met: int = 0
    goals: int = 0
    hit_ratio: float = 0.0


class Chosen(NamedTuple):
    """Volumes that share a cache."""

    name: str
    volumes: tuple[Volume, ...]


def fresh_mixes(captures: list[Volume], large: int | None = None) -> Iterator[Chosen]:
    """Yield the mixes of fresh captures, seed by seed.

    Mixes of more than two come from the first `large` seeds alone, if that is given.
    """
    of_kind: dict[str, list[Volume]] = {}
    for one in captures:
        of_kind.setdefault(one.name, []).append(one)
    rounds = min((len(of_kind.get(kind, ())) for kind in KINDS), default=0)
    for at in range(rounds):
        for kinds in FRESH:
            if large is not None and at >= large and len(kinds) > PAIR:
                continue
            keys = [(one.rstrip("*"), (at + one.count("*")) % rounds) for one in kinds]
            volumes = tuple(of_kind[kind][number] for kind, number in keys)
            yield Chosen(f"{'+'.join(kinds)} #{at + 1}", volumes)


def later_mixes(volumes: list[Volume]) -> Iterator[Chosen]:
    """Yield the mixes of the later parts of the bundled volumes."""
    by_name = {one.name: one for one in volumes}
    for names in BUNDLED:
        if all(name in by_name for name in names):
            yield Chosen(f"{'+'.join(names)} later", tuple(by_name[name] for name in names))


def stack(mix: Chosen, *, timed: bool) -> dict[str, Any]:
    """Return the stack of a mix."""
    long = TOO_LONG in (volume.name for volume in mix.volumes)
    many = timed and (long or len(mix.volumes) > MOST_AT_LENGTH)
    return {
        "name": mix.name.replace(" ", "-").replace("+", "-").replace("*", "2").replace("#", ""),
        "cache": {"capacity": regret.CAPACITIES[0], "policy": "lru"},
        "replay": {"interval": "2s", "stop": CUT if many else WHOLE},
        "tenant": [volume.tenant() for volume in mix.volumes],
        **(regret.TIERED if timed else {}),
    }


def slowdowns(mixes: Iterable[Chosen], out: Path) -> Iterator[Mix]:
    """Yield the largest slowdown of every mix under every partitioner."""
    for mix in mixes:
        given = stack(mix, timed=True)
        vary = {"capacity": list(regret.CAPACITIES), "partition": [*SCHEMES, *ABLATED]}
        cases = cachewright.compare(given, vary, out=out / f"{given['name']}-timed").answer.cases
        print(f"{mix.name}: {len(cases)} cases", file=sys.stderr)
        for case in cases:
            chosen = case.settings["cache.capacity"], case.settings["cache.partition"]
            yield Mix(mix.name, len(mix.volumes), *chosen, regret.worst_slowdown(case))


def constant_parts(mixes: Iterable[Chosen], out: Path) -> Iterator[Mix]:
    """Yield the largest slowdown of mixes of two under every constant part, and beside them.

    The least of the constant parts is what a division that never moves could reach at best.
    """
    for mix in mixes:
        kinds = [volume.name for volume in mix.volumes]
        if len(kinds) != PAIR or TOO_LONG in kinds:
            continue
        given = stack(mix, timed=True)
        weight = f"tenant.{given['tenant'][0]['name']}.weight"
        weights = [f"{share / (1 - share):.6g}" for share in FIRST_SHARES]
        capacities = {"capacity": list(regret.CAPACITIES)}
        runs = [
            {**capacities, "partition": ["static"], weight: weights},
            {**capacities, "partition": list(BESIDE_PARTS)},
        ]
        for number, vary in enumerate(runs):
            place = out / f"{given['name']}-{number}"
            for case in cachewright.compare(given, vary, out=place).answer.cases:
                scheme = case.settings["cache.partition"]
                if weight in case.settings:
                    share = FIRST_SHARES[weights.index(f"{float(case.settings[weight]):.6g}")]
                    scheme = f"{100 * share:.0f} %"
                size = case.settings["cache.capacity"]
                yield Mix(mix.name, PAIR, size, scheme, regret.worst_slowdown(case))
        print(f"{mix.name}: constant parts", file=sys.stderr)


def goals(
    mixes: Iterable[Chosen], out: Path, *, warmup: str = "0s", share: float = GOAL_SHARE
) -> Iterator[Mix]:
    """Yield how many goals every partitioner meets, on mixes whose goals fit after a warm-up."""
    for mix in mixes:
        for capacity in regret.CAPACITIES:
            given = stack(mix, timed=False)
            given["cache"]["capacity"] = capacity
            given["replay"]["warmup"] = warmup
            folder = out / f"{given['name']}-{capacity.removesuffix('%wss')}"
            fixed = {"partition": ["equal"]}
            alike = cachewright.compare(given, fixed, out=Path(f"{folder}-equal")).answer.cases[0]
            for tenant, found in zip(given["tenant"], alike.tenants, strict=True):
                tenant["goal_hit_ratio"] = share * found.hit_ratio
            vary = {"partition": [*GOAL_SCHEMES, *GOAL_ABLATED]}
            for case in cachewright.compare(given, vary, out=Path(f"{folder}-goals")).answer.cases:
                scheme = case.settings["cache.partition"]
                met, count = case.total.goals_met or 0, case.total.goals or 0
                hits = case.total.hit_ratio or 0.0
                yield Mix(mix.name, len(mix.volumes), capacity, scheme, 0.0, met, count, hits)
