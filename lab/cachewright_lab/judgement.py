"""Judges our own schemes and their rivals on volumes that chose no constant: lab/judgement.md.

`python -m cachewright_lab.judgement --captures DIR --traces DIR --out DIR --write`. Policies are
judged on single volumes by hits, flash writes and responses; separations on drives by (F-U)/U;
partitioners on mixes by the goals that are met, and in `mixes.py` by slowdowns. A measure of a
volume is the mean over sizes and seeds. The aims say what was asked, what was found, and by how
much it was missed; shares are ratios, 0.02 is 2 %.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import cachewright
from cachewright.answers import Case
from cachewright_lab import regret
from cachewright_lab.judges import KINDS, elsewhere, fresh, later, written
from cachewright_lab.study import (
    LAB,
    Measures,
    Mix,
    Programme,
    Replay,
    Row,
    Study,
    Volume,
    grid,
    present,
    row_of,
)

PAGE = LAB / "judgement.md"

# Policies on single volumes.
OWN = ("rc-x", '{ name = "rc-x", by_request = false }', "duel-x")
# It names one of the others, so that it is shown and no rival.
AUTO = "auto"
# Settings that take no part: what the price of a write costs `rc-x` in hits and in responses.
ABLATED = ('{ name = "rc-x", by_request = false, write_price = 0.0 }',)
ABLATED_TIMED = ('{ name = "rc-x", write_price = 0.0 }',)
BOUNDS = ("belady-bypass", "benefit-oracle")
# The simplest rival, and those with the best responses on the bundled volumes.
BESIDE_BOUNDS = ("lru", "access-frequency", "reca")
BESIDE_SLOW = (*regret.TOO_SLOW, "cacheus", "access-frequency")
TIMED_CAPACITIES = ("5%wss", "20%wss")
EPSILON = 1e-9

# Separations on drives. A drive is as large as what is live at once; the load is replayed first and
# not counted; a trace is repeated until ten drive writes, with the reclaim of `shiro-x` for all.
DRIVE_OWN = "shiro-x"
RECLAIM = "death-rate"
RULES = ("2r", "dac", "multi-log", "mida", "midas", "warcip", "sepbit", "uw", "gw")
# At most 4 bytes of memory per page: as it is asked for, and as answers name it.
ASKED_COMPACT = '{ name = "shiro-x", compact = true }'
COMPACT = "shiro-x(compact=true)"
# As it is asked for, and as answers name it: what the trials of `shiro-x` give.
WITHOUT_TRIALS = '{ name = "shiro-x", trials = false }'
DRIVES_ABLATED = ("shiro-x(trials=false)",)
DRIVE_BOUND = "future-knowledge"
DRIVES_COMPARED = ("none", *RULES, DRIVE_OWN, COMPACT)
DRIVES_ASKED = ("none", *RULES, DRIVE_OWN, ASKED_COMPACT, WITHOUT_TRIALS, DRIVE_BOUND)
PROVISIONED = ("7%", "28%")
# A drive is hardly steady before.
DRIVE_WRITES = 10.0
# The least drives have 150 MiB: the streams of all separations must fit beside 7 %. `shiro-x`
# makes no trials on superblocks of fewer than 128 pages, with 4 bytes per page of fewer than 2048.
SUPERBLOCK = "512KiB"

# Partitioners on mixes. Goals are hit ratios that an equal division reaches, so that they fit the
# cache together.
# Kinds of a mix of fresh captures; `*` takes the next seed.
FRESH_MIXES = (
    ("queue", "search"),
    ("desktops", "farm"),
    ("series", "backups", "search"),
    ("queue", "desktops", "farm", "series"),
    ("queue", "search", "series", "desktops", "backups", "farm", "search*", "farm*"),
)
LATER_MIXES = (("oltp", "mail"), ("mail", "web", "lu"), ("oltp", "mail", "web", "lu"))
# Of the hit ratio under `equal`: what judges, and goals with room to spare.
GOAL_SHARE, GOAL_SHARE_WITH_ROOM = 0.9, 0.5
GOAL_SCHEMES = ("equal", "auto", "soft-qos-x", "soft-qos", "shared", "hull", "dp", "memshare")
# `soft-qos-x` whose guarantee of an equal share hardly falls.
GOAL_ABLATED = ('{ name = "soft-qos-x", margin = 1.0 }',)
WHOLE = "60s"

# Tables.
GROUPS = {"later": "later parts", "elsewhere": "other volumes", "fresh": "fresh captures"}
TITLES = {
    '{ name = "rc-x", by_request = false }': "`rc-x`, hits alike",
    '{ name = "rc-x", by_request = false, write_price = 0.0 }': "`rc-x`, hits alike, writes free",
    '{ name = "rc-x", write_price = 0.0 }': "`rc-x`, writes free",
    '{ name = "icache-x", queueing = 0.0 }': "`icache-x`, waits constant",
    '{ name = "icache-x", half_life = 64.0 }': "`icache-x`, longer past",
    '{ name = "icache-x", norm = 4.0 }': "`icache-x`, power mean",
    '{ name = "soft-qos-x", margin = 1.0 }': "`soft-qos-x`, guarantees stay",
    "shiro-x(compact=true)": "`shiro-x` with 4 B",
    "shiro-x(trials=false)": "`shiro-x` without trials",
}
# What `shiro-x` and its form of at most 4 bytes per page are to have fewer extra writes by.
DRIVE_AIMS = ((DRIVE_OWN, -0.15), (COMPACT, -0.08))
# Hits per access that a volume must allow to be judged by itself.
LEAST_HITS = 0.01


def rivals() -> list[str]:
    """Return the policies that are not ours and learn online."""
    return [name for name in regret.policies() if name not in (*OWN, AUTO)]


def hits(case: Case) -> float:
    """Return the hits per block access."""
    return case.total.hits / max(case.total.accesses, 1)


def writes(case: Case) -> float:
    """Return the blocks written to flash per block access."""
    return case.total.cache_writes / max(case.total.accesses, 1)


def response_ns(case: Case) -> float:
    """Return the mean response in ns, 0 without devices."""
    return 0.0 if case.timing is None else case.timing.total.mean_ns


POLICY_MEASURES: Measures = {"hits": hits, "writes": writes, "response_ns": response_ns}


def compared(
    volumes: Iterable[Volume],
    out: Path,
    vary: Mapping[str, Sequence[str]],
    *,
    timed: bool = False,
    closed: bool = False,
) -> Iterator[Row]:
    """Yield what every policy gave on every capture; cases are kept in folders of `out`."""
    for volume in volumes:
        stack = {
            "name": volume.label,
            "cache": {"capacity": TIMED_CAPACITIES[0], "policy": "lru"},
            "replay": {"loop": "closed"} if closed else {},
            "tenant": [volume.tenant()],
            **(regret.TIERED_ALONE if timed else {}),
        }
        yield from Replay(volume, stack, vary, POLICY_MEASURES, out / volume.label).rows()


def judging(given: argparse.Namespace) -> list[Volume]:
    """Return the volumes that judge policies."""
    parts = later(given.traces, given.out / "later")
    return present([*parts, *elsewhere(given.traces), *fresh(given.captures)])


def of_hits(given: argparse.Namespace) -> Iterator[Row]:
    """Yield hits and flash writes of every policy."""
    policies = [*rivals(), AUTO, *OWN, *ABLATED, *BOUNDS]
    vary = {"capacity": regret.POLICY_CAPACITIES, "policy": policies}
    yield from compared(judging(given), given.out / "hits", vary)


def of_responses(given: argparse.Namespace) -> Iterator[Row]:
    """Yield responses of every policy; a closed loop has no future that a bound could know."""
    policies = [*rivals(), AUTO, *OWN, *ABLATED_TIMED]
    vary = {"capacity": TIMED_CAPACITIES, "policy": policies}
    # Arrivals of some volumes overrun the devices: each of eight slots waits for answers.
    yield from compared(judging(given), given.out / "responses", vary, timed=True, closed=True)


def of_bounds(given: argparse.Namespace) -> Iterator[Row]:
    """Yield responses in an open loop, of ours, three rivals and bounds, which know the future."""
    vary = {"capacity": TIMED_CAPACITIES, "policy": [*BESIDE_BOUNDS, *OWN, *BOUNDS]}
    yield from compared(fresh(given.captures), given.out / "bounds", vary, timed=True)


def of_slow(given: argparse.Namespace) -> Iterator[Row]:
    """Yield hits of the rival that is too slow for all sizes, beside ours, at one size."""
    vary = {"capacity": ["20%wss"], "policy": [*BESIDE_SLOW, *OWN]}
    yield from compared(fresh(given.captures), given.out / "lrb", vary)


def of_drives(given: argparse.Namespace) -> Iterator[Row]:
    """Yield what every separation gave on every capture; say what cannot be run."""
    for volume in present([*written(given.traces), *fresh(given.captures)]):
        load = (str(volume.load),) if volume.load.is_file() else ()
        for op in PROVISIONED:
            try:
                answer = cachewright.wa(
                    str(volume.path),
                    DRIVES_ASKED,
                    reclaims=(RECLAIM,),
                    op=(op,),
                    capacity="live",
                    superblock=SUPERBLOCK,
                    loop=True,
                    drive_writes=DRIVE_WRITES,
                    load=load,
                    out=given.out / "drives" / f"{volume.label}-{op.rstrip('%')}",
                ).answer
            except (cachewright.RunError, cachewright.SpecError) as error:
                print(f"{volume.label} at {op}: left out: {error}", file=sys.stderr)
                continue
            print(f"{volume.label} at {op}: {answer.rounds:.1f} rounds", file=sys.stderr)
            for case in answer.cases:
                values = {"extra": case.extra_writes, "rounds": answer.rounds}
                yield row_of(volume, op, case.separation, values)


def fresh_mixes(captures: list[Volume]) -> Iterator[Mix]:
    """Yield the mixes of fresh captures, seed by seed."""
    of_kind: dict[str, list[Volume]] = {}
    for one in captures:
        of_kind.setdefault(one.name, []).append(one)
    rounds = min((len(of_kind.get(kind, ())) for kind in KINDS), default=0)
    for at in range(rounds):
        for kinds in FRESH_MIXES:
            keys = [(one.rstrip("*"), (at + one.count("*")) % rounds) for one in kinds]
            volumes = tuple(of_kind[kind][number] for kind, number in keys)
            yield Mix(f"{'+'.join(kinds)} #{at + 1}", volumes)


def later_mixes(volumes: list[Volume]) -> Iterator[Mix]:
    """Yield the mixes of the later parts of the bundled volumes."""
    by_name = {one.name: one for one in volumes}
    for names in LATER_MIXES:
        if all(name in by_name for name in names):
            yield Mix(f"{'+'.join(names)} later", tuple(by_name[name] for name in names))


def judging_mixes(given: argparse.Namespace) -> list[Mix]:
    """Return the mixes that judge partitioners."""
    parts = present(later(given.traces, given.out / "later"))
    return [*later_mixes(parts), *fresh_mixes(fresh(given.captures))]


def stack(mix: Mix) -> dict[str, Any]:
    """Return the stack of a mix without devices."""
    return {
        "name": mix.name.replace(" ", "-").replace("+", "-").replace("*", "2").replace("#", ""),
        "cache": {"capacity": regret.CAPACITIES[0], "policy": "lru"},
        "replay": {"interval": "2s", "stop": WHOLE},
        "tenant": [volume.tenant() for volume in mix.volumes],
    }


def goals(
    mixes: Iterable[Mix], out: Path, *, warmup: str = "0s", share: float = GOAL_SHARE
) -> Iterator[Row]:
    """Yield how many goals every partitioner meets, on mixes whose goals fit after a warm-up."""
    for mix in mixes:
        for capacity in regret.CAPACITIES:
            own = stack(mix)
            own["cache"]["capacity"] = capacity
            own["replay"]["warmup"] = warmup
            folder = out / f"{own['name']}-{capacity.removesuffix('%wss')}"
            yield from goals_of(mix, own, folder, share)


def goals_of(mix: Mix, own: dict[str, Any], folder: Path, share: float) -> Iterator[Row]:
    """Yield how many goals every partitioner meets: a share of the hit ratios under `equal`."""
    equal = Replay(mix, own, {"partition": ["equal"]}, {}, Path(f"{folder}-equal"))
    (alike,) = equal.cases()
    for tenant, found in zip(own["tenant"], alike.tenants, strict=True):
        tenant["goal_hit_ratio"] = share * found.hit_ratio
    vary = {"partition": [*GOAL_SCHEMES, *GOAL_ABLATED]}
    for case in Replay(mix, own, vary, {}, Path(f"{folder}-goals")).cases():
        values = {
            "met": case.total.goals_met or 0,
            "goals": case.total.goals or 0,
            "hit_ratio": case.total.hit_ratio or 0.0,
        }
        yield row_of(mix, own["cache"]["capacity"], case.settings["cache.partition"], values)


def of_goals(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the goals that are met on all mixes."""
    yield from goals(judging_mixes(given), given.out / "goals")


def of_goals_of_second_halves(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the goals that are met once they were learned: what learning costs while they count."""
    out = given.out / "goals-of-second-halves"
    yield from goals(fresh_mixes(fresh(given.captures)), out, warmup="30s")


def of_goals_with_room(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the goals that are met where they have room to spare."""
    out = given.out / "goals-with-room"
    yield from goals(fresh_mixes(fresh(given.captures)), out, share=GOAL_SHARE_WITH_ROOM)


class Means:
    """Means by scheme and volume over sizes and seeds: of hits, writes or responses."""

    def __init__(self, rows: Iterable[Row], value: str, *, geometric: bool = False) -> None:
        values: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            key = (row.scheme, f"{row.group} {row.subject}")
            values.setdefault(key, []).append(row.values[value])
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


def title(scheme: str) -> str:
    """Return a scheme as the page names it."""
    return TITLES.get(scheme, f"`{scheme}`")


def captures_table(folder: Path) -> dict[str, str]:
    """Return what the captures of a folder hold, a table per round, from documents beside them.

    Seeds of a round begin with the same digit.
    """
    head = ["row", "requests", "reads", "writes", "trims", "MiB read", "MiB written"]
    rounds: dict[str, list[list[str]]] = {}
    for kind in KINDS:
        paths = [*folder.glob(f"fresh-{kind}-*.json"), *folder.glob(f"long-{kind}-*.json")]
        for path in sorted(paths):
            about = json.loads(path.read_text(encoding="utf-8"))
            run, machine = about["run"], about["machine"]
            counts = [f"{run[key]:,}" for key in ("requests", "reads", "writes", "trims")]
            sizes = [run["read_bytes"] >> 20, run["written_bytes"] >> 20]
            sizes.append(run["distinct_4k_blocks"] * 4096 >> 20)
            rest = [f"{run['seconds']:.0f}", f"{machine['load_before']:.0f}"]
            row = [f"`{about['name']}`", *counts, *(f"{one:,}" for one in sizes), *rest]
            rounds.setdefault(path.stem.rsplit("-", 1)[1][0], []).append(row)
    head += ["distinct MiB", "seconds", "load average"]
    return {f"captures {digit}..": grid(head, rows) for digit, rows in rounds.items()}


def policies_table(found: Sequence[Row]) -> str:
    """Return hits and flash writes of every policy, by group of volumes."""
    hits, writes = Means(found, "hits"), Means(found, "writes")
    groups = [one for one in GROUPS if any(row.group == one for row in found)]
    head = ["policy", *(f"hits, {GROUPS[one]}" for one in groups), "hits, all", "writes, all"]
    names = _order([*rivals(), AUTO, *OWN], hits.over, most=True)
    others = [*ABLATED, *BOUNDS]
    rows = []
    for name in [*names, *others]:
        cells = [f"{hits.over(name, one):.4f}" for one in (*groups, "")]
        bound = " (bound)" if name in BOUNDS else ""
        rows.append([title(name) + bound, *cells, f"{writes.over(name):.3f}"])
    return grid(head, rows)


def volumes_table(found: Sequence[Row]) -> str:
    """Return ours beside the best rival of each volume."""
    hits, writes = Means(found, "hits"), Means(found, "writes")
    others = rivals()
    head = ["volume", "best rival", "its hits", "its writes"]
    for own in OWN:
        head += [f"{title(own)}: hits", "writes"]
    rows = []
    for volume in hits.volumes:
        best = hits.best_on(volume, others, most=True)
        row = [
            volume,
            title(best),
            f"{hits.of[best, volume]:.4f}",
            f"{writes.of[best, volume]:.3f}",
        ]
        for own in OWN:
            row += [f"{hits.of[own, volume]:.4f}", f"{writes.of[own, volume]:.3f}"]
        rows.append([*row, f"{hits.of['belady-bypass', volume]:.4f}"])
    return grid([*head, "`belady-bypass` (bound)"], rows)


def responses_table(found: Sequence[Row]) -> str:
    """Return mean responses of every policy in microseconds, by group of volumes."""
    means = Means(found, "response_ns", geometric=True)
    groups = [one for one in GROUPS if any(row.group == one for row in found)]
    head = ["policy", *(GROUPS[one] for one in groups), "all", "most above the best (volume)"]
    names = [*rivals(), AUTO, *OWN]
    rows = []
    for name in [*_order(names, means.over, most=False), *ABLATED_TIMED]:
        cells = [f"{means.over(name, one) / 1e3:,.0f}" for one in (*groups, "")]
        gaps = {
            one: means.of[name, one] / means.of[means.best_on(one, names, most=False), one] - 1
            for one in means.volumes
        }
        worst = max(gaps, key=lambda one: gaps[one])
        rows.append([title(name), *cells, f"{100 * gaps[worst]:.0f} % ({worst})"])
    rows.append([*_least(means, names, groups), ""])
    return grid(head, rows)


def _least(means: Means, names: Sequence[str], groups: Sequence[str]) -> list[str]:
    """Return the row of a choice among policies that is made afterwards, volume by volume."""
    least = {one: means.of[means.best_on(one, names, most=False), one] for one in means.volumes}
    cells = []
    for group in (*groups, ""):
        chosen = [value for one, value in least.items() if one.startswith(group)]
        cells.append(f"{geometric_mean(chosen) / 1e3:,.0f}")
    return ["the least on each volume, known afterwards (bound)", *cells]


def bounds_table(found: Sequence[Row]) -> str:
    """Return mean responses in an open loop, in microseconds, kind by kind."""
    means = Means(found, "response_ns", geometric=True)
    rows = []
    for name in [*BESIDE_BOUNDS, *OWN, *BOUNDS]:
        cells = [means.of[name, one] for one in means.volumes] + [means.over(name)]
        bound = " (bound)" if name in BOUNDS else ""
        rows.append([title(name) + bound, *(f"{one / 1e3:,.0f}" for one in cells)])
    kinds = [one.removeprefix("fresh ") for one in means.volumes]
    return grid(["policy", *kinds, "geometric mean"], rows)


def slow_table(found: Sequence[Row]) -> str:
    """Return hits at one size, kind by kind, and writes on the mean."""
    hits, writes = Means(found, "hits"), Means(found, "writes")
    rows = []
    for name in [*BESIDE_SLOW, *OWN]:
        cells = [hits.of[name, one] for one in hits.volumes] + [hits.over(name)]
        row = [title(name), *(f"{one:.4f}" for one in cells), f"{writes.over(name):.3f}"]
        rows.append(row)
    kinds = [one.removeprefix("fresh ") for one in hits.volumes]
    return grid(["policy", *kinds, "mean", "writes"], rows)


def extra_of(found: Sequence[Row], op: str) -> tuple[dict[tuple[str, str], float], list[str]]:
    """Return (F-U)/U by separation and volume, the mean of seeds, and the volumes."""
    values: dict[tuple[str, str], list[float]] = {}
    for one in found:
        if one.setting == op:
            values.setdefault((one.scheme, one.subject), []).append(one.values["extra"])
    extra = {key: sum(each) / len(each) for key, each in values.items()}
    return extra, list(dict.fromkeys(volume for _, volume in extra))


def drives_table(found: Sequence[Row], op: str) -> str:
    """Return (F-U)/U of every separation at one over-provisioning."""
    extra, names = extra_of(found, op)
    looped = {one.subject for one in found if one.setting == op and one.values["rounds"] > 1.0}
    head = ["separation", *(f"{one} †" if one in looped else one for one in names), "mean"]

    def mean(scheme: str) -> float:
        return sum(extra[scheme, one] for one in names) / len(names)

    rows = []
    for scheme in [
        *_order(DRIVES_COMPARED, mean, most=False),
        *DRIVES_ABLATED,
        DRIVE_BOUND,
    ]:
        bound = " (bound)" if scheme == DRIVE_BOUND else ""
        cells = [extra[scheme, one] for one in names]
        rows.append([title(scheme) + bound, *(f"{one:.3f}" for one in [*cells, mean(scheme)])])
    return grid(head, rows)


def goals_table(found: Sequence[Row]) -> str:
    """Return goals met by every partitioner, by number of tenants, and the mean hit ratio."""
    counts = sorted({one.tenants for one in found})
    rows = []
    for scheme in (*GOAL_SCHEMES, *GOAL_ABLATED):
        own = [one for one in found if one.scheme == scheme]
        cells = [_met([one for one in own if one.tenants == count]) for count in counts]
        hits = sum(one.values["hit_ratio"] for one in own) / max(len(own), 1)
        rows.append([title(scheme), *cells, _met(own), f"{hits:.4f}"])
    head = ["partitioner", *(f"{count} tenants" for count in counts), "all", "hit ratio"]
    return grid(head, rows)


def counted(found: Sequence[Row], value: str) -> int:
    """Return the sum of counts of rows."""
    return int(sum(one.values[value] for one in found))


def _met(found: Sequence[Row]) -> str:
    return f"{counted(found, 'met')} of {counted(found, 'goals')}"


def _order(names: Iterable[str], measure: Callable[[str], float], *, most: bool) -> list[str]:
    return sorted(names, key=measure, reverse=most)


@dataclass(frozen=True)
class Aim:
    """One aim: a bound on a measured share, which must not be exceeded (or fallen below)."""

    what: str
    bound: float
    found: float
    at_most: bool
    about: str

    @property
    def met(self) -> bool:
        """Say whether it is met."""
        return self.found <= self.bound if self.at_most else self.found >= self.bound

    def row(self) -> str:
        """Return its row of the table."""
        side = "at most" if self.at_most else "at least"
        missed = f"**missed** by {100 * abs(self.found - self.bound):.1f} points"
        verdict = "**met**" if self.met else missed
        asked = f"{side} {100 * self.bound:.0f} %"
        return f"| {self.what} | {asked} | {100 * self.found:+.1f} % | {verdict} | {self.about} |"


def aims_of_hits(found: Sequence[Row]) -> list[Aim]:
    """Return the aims of hits: the best own policy beside every rival."""
    hits, writes = Means(found, "hits"), Means(found, "writes")
    others = rivals()
    own, rival = hits.best(OWN, most=True), hits.best(others, most=True)
    gaps = {}
    for volume in hits.volumes:
        best = hits.best_on(volume, (*others, *OWN), most=True)
        # Beside next to no hits a ratio says nothing.
        if hits.of[best, volume] >= LEAST_HITS:
            gaps[volume] = hits.of[own, volume] / hits.of[best, volume] - 1
    worst = min(gaps, key=lambda one: gaps[one])
    within = sum(gap >= -0.02 for gap in gaps.values())
    about = f"{title(own)} beside {title(rival)}"
    return [
        Aim("Hits on the mean", 0.0, hits.over(own) / hits.over(rival) - 1, False, about),
        Aim(
            "Hits on each volume, beside its best",
            -0.02,
            gaps[worst],
            False,
            f"{title(own)}, worst on {worst}; within 2 % on {within} of {len(gaps)}",
        ),
        Aim("Flash writes", 0.7, writes.over(own) / writes.over(rival), True, about),
    ]


def aims_of_responses(found: Sequence[Row]) -> list[Aim]:
    """Return the aims of responses: the best own policy beside the best single rival."""
    means = Means(found, "response_ns", geometric=True)
    others = rivals()
    own, rival = means.best(OWN, most=False), means.best(others, most=False)
    gaps = {}
    for volume in means.volumes:
        best = means.best_on(volume, (*others, *OWN), most=False)
        gaps[volume] = means.of[own, volume] / means.of[best, volume] - 1
    worst = max(gaps, key=lambda one: gaps[one])
    within = sum(gap <= 0.05 for gap in gaps.values())
    ratio = means.over(own) / means.over(rival) - 1
    about = f"{title(own)} beside {title(rival)}"
    return [
        Aim("Mean response, geometric mean", -0.1, ratio, True, about),
        Aim(
            "Mean response on each volume, beside its best",
            0.05,
            gaps[worst],
            True,
            f"{title(own)}, worst on {worst}; within 5 % on {within} of {len(gaps)}",
        ),
    ]


def aims_of_drives(found: Sequence[Row]) -> list[Aim]:
    """Return the aims of drives, two per over-provisioning."""
    aims = []
    for op in PROVISIONED:
        extra, volumes = extra_of(found, op)
        mean = {
            scheme: sum(extra[scheme, one] for one in volumes) / len(volumes)
            for scheme in DRIVES_COMPARED
        }
        rule = min(RULES, key=lambda one: mean[one])
        about = f"beside `{rule}` with the same reclaim"
        for own, bound in DRIVE_AIMS:
            what = f"(F-U)/U of {title(own)} on the mean, {op} over-provisioned"
            aims.append(Aim(what, bound, mean[own] / mean[rule] - 1, True, about))
    return aims


def aims_of_goals(found: Sequence[Row]) -> list[Aim]:
    """Return the aim of goals: all that fit are met by `auto`."""
    own = [one for one in found if one.scheme == "auto"]
    met, goals = counted(own, "met"), counted(own, "goals")
    whole = sum(one.values["met"] == one.values["goals"] for one in own)
    about = f"{met} of {goals} goals, all in {whole} of {len(own)} studies"
    return [Aim("Goals that fit, met by `auto`", 1.0, met / max(goals, 1), False, about)]


def aims_table(aims: Sequence[Aim]) -> str:
    """Return the table of aims."""
    head = "| aim | asked | found | verdict | what was compared |\n|---|---|---|---|---|"
    return "\n".join([head, *(aim.row() for aim in aims)])


def options(parser: argparse.ArgumentParser) -> None:
    """Add what is given beside the usual."""
    parser.add_argument("--captures", type=Path, required=True, help="folder of fresh captures")
    parser.add_argument(
        "--traces", type=Path, required=True, help="folder of captured/ and public/"
    )


def one_table(
    name: str, table: Callable[[Sequence[Row]], str]
) -> Callable[[argparse.Namespace, Sequence[Row]], dict[str, str]]:
    """Return what makes the only table of a study."""
    return lambda _, rows: {name: table(rows)}


# The first judges. Second halves show what it costs that goals are learned while they count.
STUDIES = {
    "hits": Study(
        of_hits,
        lambda _, rows: {"hits": policies_table(rows), "volumes": volumes_table(rows)},
    ),
    "lrb": Study(of_slow, one_table("lrb", slow_table)),
    "responses": Study(of_responses, one_table("responses", responses_table)),
    "bounds": Study(of_bounds, one_table("bounds", bounds_table)),
    "drives": Study(
        of_drives, lambda _, rows: {f"drives {op}": drives_table(rows, op) for op in PROVISIONED}
    ),
    "goals": Study(of_goals, one_table("goals", goals_table)),
    "goals of second halves": Study(
        of_goals_of_second_halves, one_table("goals of second halves", goals_table)
    ),
    "goals with room": Study(of_goals_with_room, one_table("goals with room", goals_table)),
}
# What only explains has no aim.
AIMS: Mapping[str, Callable[[Sequence[Row]], list[Aim]]] = {
    "hits": aims_of_hits,
    "responses": aims_of_responses,
    "drives": aims_of_drives,
    "goals": aims_of_goals,
}


def together(given: argparse.Namespace, rows: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """Return the tables of the captures, and of the aims where all studies were run."""
    aims = [aim for name, own in rows.items() if name in AIMS for aim in AIMS[name](own)]
    if given.only:
        print(f"{aims_table(aims)}\n")
        return captures_table(given.captures)
    return {**captures_table(given.captures), "aims": aims_table(aims)}


PROGRAMME = Programme(
    "Judges our own schemes and their rivals on volumes that chose no constant.",
    PAGE,
    STUDIES,
    options,
    together,
)

if __name__ == "__main__":
    sys.exit(PROGRAMME.main())
