"""Tables of lab/judgement.md.

For: lab/studies/judge.py. Must never know: how studies are run. The best of a column is bold,
bounds and settings that are no entries left out of that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from pathlib import Path
from statistics import geometric_mean

import judge_drives
import judge_mixes
import judge_policies
from judge_drives import Drive
from judge_mixes import Mix
from judge_policies import Means, Measured
from judge_volumes import KINDS

GROUPS = {"later": "later parts", "elsewhere": "other volumes", "fresh": "fresh captures"}
# A slowdown that no partitioner keeps below this is that of a device whose queue only grows.
OVERRUN = 30
# The least of `auto` and what stands beside it to find causes, known afterwards.
BEST_SETTING = "the best setting (bound)"
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


def title(scheme: str) -> str:
    """Return a scheme as the page names it."""
    return TITLES.get(scheme, f"`{scheme}`")


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|---{'|--:' * (len(head) - 1)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def captures(folder: Path) -> dict[str, str]:
    """Return what the captures of a folder hold, a table per round, from documents beside them.

    Seeds of a round begin with the same digit.
    """
    head = ["row", "requests", "reads", "writes", "trims", "MiB read", "MiB written"]
    rounds: dict[str, list[list[str]]] = {}
    for kind in KINDS:
        for path in sorted(folder.glob(f"fresh-{kind}-*.json")):
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


def policies(found: Sequence[Measured]) -> str:
    """Return hits and flash writes of every policy, by group of volumes."""
    hits, writes = Means(found, "hits"), Means(found, "writes")
    groups = [one for one in GROUPS if any(row.group == one for row in found)]
    head = ["policy", *(f"hits, {GROUPS[one]}" for one in groups), "hits, all", "writes, all"]
    names = _order(
        [*judge_policies.rivals(), judge_policies.AUTO, *judge_policies.OWN], hits.over, most=True
    )
    others = [*judge_policies.ABLATED, *judge_policies.BOUNDS]
    rows = []
    for name in [*names, *others]:
        cells = [f"{hits.over(name, one):.4f}" for one in (*groups, "")]
        bound = " (bound)" if name in judge_policies.BOUNDS else ""
        rows.append([title(name) + bound, *cells, f"{writes.over(name):.3f}"])
    return grid(head, rows)


def volumes(found: Sequence[Measured]) -> str:
    """Return ours beside the best rival of each volume."""
    hits, writes = Means(found, "hits"), Means(found, "writes")
    rivals = judge_policies.rivals()
    head = ["volume", "best rival", "its hits", "its writes"]
    for own in judge_policies.OWN:
        head += [f"{title(own)}: hits", "writes"]
    rows = []
    for volume in hits.volumes:
        best = hits.best_on(volume, rivals, most=True)
        row = [
            volume,
            title(best),
            f"{hits.of[best, volume]:.4f}",
            f"{writes.of[best, volume]:.3f}",
        ]
        for own in judge_policies.OWN:
            row += [f"{hits.of[own, volume]:.4f}", f"{writes.of[own, volume]:.3f}"]
        rows.append([*row, f"{hits.of['belady-bypass', volume]:.4f}"])
    return grid([*head, "`belady-bypass` (bound)"], rows)


def responses(found: Sequence[Measured]) -> str:
    """Return mean responses of every policy in microseconds, by group of volumes."""
    means = Means(found, "response_ns", geometric=True)
    groups = [one for one in GROUPS if any(row.group == one for row in found)]
    head = ["policy", *(GROUPS[one] for one in groups), "all", "most above the best (volume)"]
    names = [*judge_policies.rivals(), judge_policies.AUTO, *judge_policies.OWN]
    rows = []
    for name in [*_order(names, means.over, most=False), *judge_policies.ABLATED_TIMED]:
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


def bounds(found: Sequence[Measured]) -> str:
    """Return mean responses in an open loop, in microseconds, kind by kind."""
    means = Means(found, "response_ns", geometric=True)
    rows = []
    for name in [*judge_policies.BESIDE_BOUNDS, *judge_policies.OWN, *judge_policies.BOUNDS]:
        cells = [means.of[name, one] for one in means.volumes] + [means.over(name)]
        bound = " (bound)" if name in judge_policies.BOUNDS else ""
        rows.append([title(name) + bound, *(f"{one / 1e3:,.0f}" for one in cells)])
    kinds = [one.removeprefix("fresh ") for one in means.volumes]
    return grid(["policy", *kinds, "geometric mean"], rows)


def slow(found: Sequence[Measured]) -> str:
    """Return hits at one size, kind by kind, and writes on the mean."""
    hits, writes = Means(found, "hits"), Means(found, "writes")
    rows = []
    for name in [*judge_policies.BESIDE_SLOW, *judge_policies.OWN]:
        cells = [hits.of[name, one] for one in hits.volumes] + [hits.over(name)]
        row = [title(name), *(f"{one:.4f}" for one in cells), f"{writes.over(name):.3f}"]
        rows.append(row)
    kinds = [one.removeprefix("fresh ") for one in hits.volumes]
    return grid(["policy", *kinds, "mean", "writes"], rows)


def extra_of(found: Sequence[Drive], op: str) -> tuple[dict[tuple[str, str], float], list[str]]:
    """Return (F-U)/U by separation and volume, the mean of seeds, and the volumes."""
    values: dict[tuple[str, str], list[float]] = {}
    for one in found:
        if one.op == op:
            values.setdefault((one.scheme, one.volume), []).append(one.extra)
    extra = {key: sum(each) / len(each) for key, each in values.items()}
    return extra, list(dict.fromkeys(volume for _, volume in extra))


def drives(found: Sequence[Drive], op: str) -> str:
    """Return (F-U)/U of every separation at one over-provisioning."""
    extra, names = extra_of(found, op)
    looped = {one.volume for one in found if one.op == op and one.rounds > 1.0}
    head = ["separation", *(f"{one} †" if one in looped else one for one in names), "mean"]

    def mean(scheme: str) -> float:
        return sum(extra[scheme, one] for one in names) / len(names)

    rows = []
    for scheme in [
        *_order(judge_drives.COMPARED, mean, most=False),
        *judge_drives.ABLATED,
        judge_drives.BOUND,
    ]:
        bound = " (bound)" if scheme == judge_drives.BOUND else ""
        cells = [extra[scheme, one] for one in names]
        rows.append([title(scheme) + bound, *(f"{one:.3f}" for one in [*cells, mean(scheme)])])
    return grid(head, rows)


def slowdowns(found: Sequence[Mix]) -> str:
    """Return the largest slowdown of each mix: `auto`, the best, and the regret of each scheme.

    The last column is no scheme: it takes the best setting of `icache-x` in each row.
    """
    settings = ["auto", *judge_mixes.ABLATED]
    schemes = [*judge_mixes.SCHEMES, *judge_mixes.ABLATED, BEST_SETTING]
    rows: list[list[str]] = []
    beside: dict[str, list[float]] = {scheme: [] for scheme in schemes}
    carried = []
    for key in dict.fromkeys((one.name, one.capacity) for one in found):
        own = {one.scheme: one.slowdown for one in found if (one.name, one.capacity) == key}
        best = min(judge_mixes.SCHEMES, key=lambda one: own[one])
        own[BEST_SETTING] = min(own[one] for one in settings)
        carried.append(own[best] < OVERRUN)
        for scheme in schemes:
            beside[scheme].append(own[scheme] / own[best])
        cells = [f"**{own[one]:.2f}**" if one == best else f"{own[one]:.2f}" for one in schemes]
        rows.append([f"{key[0]}, {key[1]}", *cells])
    worst = [f"{max(each):,.2f}" for each in beside.values()]
    rows.append(["beside the best, at worst", *worst])
    parts = {
        "geometric mean": [True] * len(carried),
        f"geometric mean of {sum(carried)} whose best is below {OVERRUN}": carried,
        f"geometric mean of the other {len(carried) - sum(carried)}": [not one for one in carried],
    }
    for name, chosen in parts.items():
        means = [geometric_mean(compress(each, chosen)) for each in beside.values()]
        rows.append([f"beside the best, {name}", *(f"{one:,.2f}" for one in means)])
    titles = [one if one == BEST_SETTING else title(one) for one in schemes]
    return grid(["mix", *titles], rows)


def constant_parts(found: Sequence[Mix]) -> str:
    """Return the best constant part of each mix of two, and the schemes beside it."""
    rows = []
    for key in dict.fromkeys((one.name, one.capacity) for one in found):
        own = {one.scheme: one.slowdown for one in found if (one.name, one.capacity) == key}
        beside = {scheme: own.pop(scheme) for scheme in judge_mixes.BESIDE_PARTS}
        share = min(own, key=lambda one: own[one])
        cells = [f"{value:.2f}" for value in (own[share], *beside.values())]
        rows.append([f"{key[0]}, {key[1]}", share, *cells])
    schemes = [title(one) for one in judge_mixes.BESIDE_PARTS]
    return grid(["mix", "first has", "best constant parts", *schemes], rows)


def goals(found: Sequence[Mix]) -> str:
    """Return goals met by every partitioner, by number of tenants, and the mean hit ratio."""
    counts = sorted({one.tenants for one in found})
    rows = []
    for scheme in (*judge_mixes.GOAL_SCHEMES, *judge_mixes.GOAL_ABLATED):
        own = [one for one in found if one.scheme == scheme]
        cells = [_met([one for one in own if one.tenants == count]) for count in counts]
        hits = sum(one.hit_ratio for one in own) / max(len(own), 1)
        rows.append([title(scheme), *cells, _met(own), f"{hits:.4f}"])
    head = ["partitioner", *(f"{count} tenants" for count in counts), "all", "hit ratio"]
    return grid(head, rows)


def _met(found: Sequence[Mix]) -> str:
    return f"{sum(one.met for one in found)} of {sum(one.goals for one in found)}"


def _order(names: Iterable[str], measure: Callable[[str], float], *, most: bool) -> list[str]:
    return sorted(names, key=measure, reverse=most)
