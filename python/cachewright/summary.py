"""Cases compared: who is best, by capacity, by policy and partition, over all.

For: the tables of the terminal and of the report, from a result document. Must never know: how they
are drawn, or polars (the command line starts without it). Units: ratios in 0..1, blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cachewright import words

POLICY = "cache.policy"
PARTITION = "cache.partition"
CAPACITY = "cache.capacity"
SHOWN = 20
SHOWN_PER_GROUP = 3

Document = dict[str, Any]
Case = dict[str, Any]


@dataclass(frozen=True)
class Pivot:
    """Hit ratios of policies (rows) by partition (columns), all else equal.

    `ratios[row][column]` is None where the combination was not run; `best` is (row, column).
    """

    title: str
    policies: list[str]
    partitions: list[str]
    ratios: list[list[float | None]]
    best: tuple[int, int] | None


@dataclass(frozen=True)
class Ranking:
    """Cases from the best hit ratio down, all else but policy and partition equal."""

    title: str
    cases: list[Case]
    left_out: int


def hit_ratio(case: Case) -> float:
    """Return the case's share of block accesses that hit, in 0..1."""
    return float(case["total"]["hit_ratio"])


def best_case(document: Document) -> Case:
    """Return the case with the highest hit ratio; the smaller cache, then the first, when equal."""
    return min(document["cases"], key=lambda c: (-hit_ratio(c), capacity_bytes(c), c["case"]))


def capacity_bytes(case: Case) -> int:
    """Return the case's cache size in bytes."""
    return int(case["capacity_blocks"]) * int(case["block_bytes"])


def label(case: Case, keys: Iterable[str]) -> str:
    """Return the case's values of `keys` in a few words: `arc, hull, 64MiB`."""
    found = [words.setting(case["settings"][key]) for key in keys if key in case["settings"]]
    return ", ".join(found) or "the stack as it is"


def value(case: Case, key: str) -> str:
    """Return one setting of the case as a label."""
    return words.setting(case["settings"].get(key, words.NOTHING))


def ordered(cases: Iterable[Case], key: str) -> list[str]:
    """Return the labels of a setting: capacities by size, everything else as first met."""
    found: dict[str, int] = {}
    for case in cases:
        found.setdefault(value(case, key), capacity_bytes(case))
    return sorted(found, key=found.__getitem__) if key == CAPACITY else list(found)


def other_keys(document: Document) -> list[str]:
    """Return the varied keys that are neither policy nor partition."""
    return [key for key in document["varied"] if key not in (POLICY, PARTITION)]


def groups(document: Document) -> list[tuple[str, list[Case]]]:
    """Return the cases in groups that differ only in policy and partition, smallest cache first."""
    keys = other_keys(document)
    found: dict[str, list[Case]] = {}
    for case in sorted(document["cases"], key=lambda c: (capacity_bytes(c), c["case"])):
        found.setdefault(_group_title(case, keys), []).append(case)
    return list(found.items())


def _group_title(case: Case, keys: Sequence[str]) -> str:
    named = [f"{key.removeprefix('cache.')} {value(case, key)}" for key in keys]
    if CAPACITY not in keys:
        named.insert(0, f"capacity {value(case, CAPACITY)}")
    elif not value(case, CAPACITY).endswith("B"):
        named.append(f"({words.size(capacity_bytes(case))})")
    return " ".join(named) if len(named) <= 2 else ", ".join(named)


def pivots(document: Document) -> list[Pivot]:
    """Return one pivot per group with more than one case."""
    return [_pivot(title, cases) for title, cases in groups(document) if len(cases) > 1]


def _pivot(title: str, cases: list[Case]) -> Pivot:
    partitions = ordered(cases, PARTITION)
    cells = {(value(c, POLICY), value(c, PARTITION)): hit_ratio(c) for c in cases}
    policies = ordered(cases, POLICY)
    policies.sort(key=lambda policy: -max(cells.get((policy, p), -1.0) for p in partitions))
    policies = policies[:SHOWN]
    ratios = [[cells.get((policy, p)) for p in partitions] for policy in policies]
    filled = [
        (ratio, -row, -column)
        for row, line in enumerate(ratios)
        for column, ratio in enumerate(line)
        if ratio is not None
    ]
    top = max(filled, default=None)
    best = None if top is None else (-top[1], -top[2])
    return Pivot(title, policies, partitions, ratios, best)


def rankings(document: Document) -> list[Ranking]:
    """Return every group ranked by hit ratio; long ones cut, `left_out` says by how many."""
    grouped = groups(document)
    shown = max(SHOWN // max(len(grouped), 1), SHOWN_PER_GROUP)
    result = []
    for title, cases in grouped:
        ranked = sorted(cases, key=lambda c: (-hit_ratio(c), c["case"]))
        result.append(Ranking(title, ranked[:shown], max(len(ranked) - shown, 0)))
    return result


def best_index(values: Sequence[float | None], highest: bool) -> set[int]:
    """Return where the best value stands (all places when equal), empty if nothing differs."""
    known = [v for v in values if v is not None]
    if len(known) < 2 or min(known) == max(known):
        return set()
    best = max(known) if highest else min(known)
    return {index for index, v in enumerate(values) if v == best}
