"""Cases compared: who is best, by capacity, by policy and partition, over all.

For: the tables of the terminal and of the report, from a result answer. Must never know: how they
are drawn, or polars (the command line starts without it). Units: ratios in 0..1, blocks.

A policy that reads the future (the registry says which) is a bound, not a choice: it is shown and
ranked, but never called best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from cachewright import words
from cachewright.answers import (
    CacheDrive,
    Case,
    CaseTenant,
    CaseTotal,
    RunAnswer,
)

POLICY = "cache.policy"
PARTITION = "cache.partition"
CAPACITY = "cache.capacity"
SEPARATION = "flash.separation"
FLASH = "flash."
SHOWN = 20
SHOWN_PER_GROUP = 3
# Cutting fewer cases than this would hide more than it saves.
SLACK = 3

# The counters of a case or of one of its tenants.
Line = CaseTotal | CaseTenant


class Measure(NamedTuple):
    """One number of a case or tenant: its header and how it is shown.

    `highest` is best, else the lowest; a move of quotas has no best.
    """

    header: str
    of: Callable[[Line], float | None]
    show: Callable[[float | None], str]
    highest: bool = False
    moves: bool = False

    def shown(self, line: Line) -> str:
        """Return the number in words; of goals met also how many there are."""
        text = self.show(self.of(line))
        known = self.of is _goals_met and isinstance(line, CaseTotal) and line.goals
        return f"{text} of {words.count(known)}" if known else text


def _goals_met(line: Line) -> int | None:
    return line.goals_met if isinstance(line, CaseTotal) else None


def _byte_hit_ratio(line: Line) -> float | None:
    # Where accesses are of whole blocks it says nothing more than the hit ratio.
    return None if line.byte_hit_ratio == line.hit_ratio else line.byte_hit_ratio


def _moved_mean(line: Line) -> float | None:
    return line.moved_mean if isinstance(line, CaseTotal) else None


# Of every case and tenant.
MEASURES = (
    Measure("hit ratio", lambda line: line.hit_ratio, words.ratio, highest=True),
    Measure("read hit ratio", lambda line: line.read_hit_ratio, words.ratio, highest=True),
    Measure("byte hit ratio", _byte_hit_ratio, words.ratio, highest=True),
    Measure("goals met", _goals_met, words.count, highest=True),
    Measure("write-backs", lambda line: line.writebacks, words.count),
    Measure("cache writes", lambda line: line.cache_writes, words.count),
    Measure("mean response", lambda line: line.mean_response_ns, words.duration),
    Measure("p99 response", lambda line: line.p99_response_ns, words.duration),
    Measure("run time", lambda line: line.run_time_ns, words.duration),
    Measure("quota moved per division", _moved_mean, words.percent, moves=True),
    Measure("quota reversals", lambda line: line.turns, words.count, moves=True),
)
# Of the drive under the cache; the lowest is best.
FLASH_MEASURES: tuple[
    tuple[str, Callable[[CacheDrive], float], Callable[[float | None], str]], ...
] = (
    ("write amplification", lambda drive: drive.write_amplification, words.ratio),
    ("extra writes", lambda drive: drive.extra_writes, words.ratio),
    ("flash writes", lambda drive: drive.flash_pages, words.count),
)


class Pivot(NamedTuple):
    """Hit ratios of policies (rows) by partition (columns), all else equal.

    `ratios[row][column]` is None where the combination was not run; `best` gives the best row of
    each column.
    """

    title: str
    policies: list[str]
    partitions: list[str]
    ratios: list[list[float | None]]
    best: list[set[int]]


class Ranking(NamedTuple):
    """Cases that differ only in policy and partition, the best first.

    The first `shown` are for people: the best bound, then choices by goals met and hit ratio.
    `cases` holds all, so that the best of a column is the best of all.
    """

    title: str
    cases: list[Case]
    shown: int

    @property
    def ranked_by(self) -> str:
        """What the cases are ranked by, in words."""
        return "goals met, then hit ratio" if has_goals(self.cases) else "hit ratio"

    def best(self, values: Sequence[float | None], highest: bool) -> set[int]:
        """Return the shown places of the best value among choices; `values` is by case."""
        found = best_index(choices(self.cases, values), highest)
        return {place for place in found if place < self.shown}


def _worst_slowdown(case: Case) -> float | None:
    fairness = case.timing.fairness if case.timing else None
    return fairness.max_slowdown if fairness else None


def _drive_amplification(case: Case) -> float | None:
    drive = case.timing.drive if case.timing else None
    return drive.write_amplification if drive else None


# Of cases on devices; the lowest is best.
DEVICE_MEASURES: tuple[
    tuple[str, Callable[[Case], float | None], Callable[[float | None], str]], ...
] = (
    ("worst slowdown", _worst_slowdown, words.ratio),
    ("write amplification", _drive_amplification, words.ratio),
)


def measures(lines: Sequence[Line]) -> list[Measure]:
    """Return what there is to say of the lines: moves of quotas only where any moved."""
    moved = any(_moved_mean(line) or line.turns for line in lines)
    return [
        measure
        for measure in MEASURES
        if any(measure.of(line) is not None for line in lines) and (moved or not measure.moves)
    ]


def goal(line: CaseTenant, block_bytes: int) -> str:
    """Return a tenant's goal, whether it was met over the whole run, and what it lacks."""
    if line.goal_response_ns is not None:
        promised = f"mean {words.duration(line.goal_response_ns)}"
    elif line.goal_p99_ns is not None:
        promised = f"p99 {words.duration(line.goal_p99_ns)}"
    elif line.goal_hit_ratio is not None:
        promised = words.ratio(line.goal_hit_ratio)
    else:
        return words.NOTHING
    if line.goal_met:
        return f"{promised} met"
    more = None if line.goal_blocks is None else line.goal_blocks - line.quota_blocks
    if more is None or more <= 0:
        return f"{promised} missed"
    return f"{promised} missed, needs {words.size(more * block_bytes)} more"


def has_goal(line: CaseTenant) -> bool:
    """Return whether a tenant was promised anything."""
    return line.goal_met is not None


def hit_ratio(case: Case) -> float:
    """Return the case's share of block accesses that hit, in 0..1."""
    return case.total.hit_ratio


@cache
def bounds() -> frozenset[str]:
    """Return the names of the policies that need the future, or benefits made from it."""
    from cachewright import registries

    entries = registries.list("policies")
    return frozenset(e.name for e in entries if {"future", "benefit"} & set(e.needs))


def is_bound(case: Case) -> bool:
    """Return whether the case's policy reads the future."""
    return value(case, POLICY).split("(")[0] in bounds()


def policy_label(case: Case) -> str:
    """Return the case's policy, told apart when it is only a bound."""
    return value(case, POLICY) + (" (bound)" if is_bound(case) else "")


def goals(case: Case) -> int:
    """Return how many tenants of the case have a goal."""
    return case.total.goals or 0


def goals_met(case: Case) -> int:
    """Return how many goals the case meets over the whole run."""
    return case.total.goals_met or 0


def has_goals(cases: Iterable[Case]) -> bool:
    """Return whether a tenant of any case has a goal."""
    return any(goals(case) for case in cases)


def meets_all(case: Case) -> bool:
    """Return whether the case has goals and meets all of them."""
    return 0 < goals(case) == goals_met(case)


def preference(case: Case) -> tuple[float, ...]:
    """Return a key by which better cases sort first.

    Choices come before bounds, and cases that meet more goals before others. Of those that meet all
    the smaller cache is better; else the higher hit ratio, then the smaller cache. When all that is
    equal, fewer writes to flash, then the first case.
    """
    size = capacity_bytes(case)
    cost = size if meets_all(case) else 0
    ratio = -hit_ratio(case)
    return (is_bound(case), -goals_met(case), cost, ratio, size, flash_pages(case), case.case)


def best_of(cases: Iterable[Case]) -> Case:
    """Return the best of some cases by `preference`."""
    return min(cases, key=preference)


def best_case(answer: RunAnswer) -> Case:
    """Return the best case of a result.

    With goals it is the smallest cache that meets all of them, or else the one that meets the most.
    Without goals it is the highest hit ratio, thus nearly always one of the largest cache: compare
    capacities by `verdict.sentences` then.
    """
    return best_of(answer.cases)


def by_capacity(answer: RunAnswer) -> list[tuple[str, list[Case]]]:
    """Return the cases of each capacity under its label, the smallest first."""
    found: dict[str, list[Case]] = {}
    for case in sorted(answer.cases, key=lambda c: (capacity_bytes(c), c.case)):
        found.setdefault(capacity_title(case), []).append(case)
    return list(found.items())


def flash_pages(case: Case) -> int:
    """Return the pages that the drive under the case's cache programmed; 0 without a drive."""
    return case.flash.flash_pages if case.flash else 0


def has_flash(cases: Iterable[Case]) -> bool:
    """Return whether any case has a drive under its cache."""
    return any(case.flash for case in cases)


def one_per_cache(cases: Iterable[Case]) -> list[Case]:
    """Return the cases without those that differ from an earlier one only in the drive."""
    found: dict[tuple[str, ...], Case] = {}
    for case in cases:
        keys = sorted(key for key in case.settings if not key.startswith(FLASH))
        found.setdefault(tuple(value(case, key) for key in keys), case)
    return list(found.values())


def fewest_flash_writes(answer: RunAnswer) -> Case | None:
    """Return the choice that programs the fewest flash pages; None without a drive."""
    choices = [c for c in answer.cases if c.flash and not is_bound(c)]
    return min(choices, key=lambda c: (flash_pages(c), c.case), default=None)


def choices(cases: Sequence[Case], values: Sequence[float | None]) -> list[float | None]:
    """Return `values` with those of bounds left out, for marking the best."""
    return [None if is_bound(case) else v for case, v in zip(cases, values, strict=True)]


def capacity_bytes(case: Case) -> int:
    """Return the case's cache size in bytes."""
    return case.capacity_blocks * case.block_bytes


def label(case: Case, keys: Iterable[str]) -> str:
    """Return the case's values of `keys` in a few words: `arc, hull, 64MiB`."""
    found = [words.setting(case.settings[key]) for key in keys if key in case.settings]
    return ", ".join(found) or "the stack as it is"


def value(case: Case, key: str) -> str:
    """Return one setting of the case as a label."""
    return words.setting(case.settings.get(key, words.NOTHING))


def ordered(cases: Iterable[Case], key: str) -> list[str]:
    """Return the labels of a setting: capacities by size, everything else as first met."""
    found: dict[str, int] = {}
    for case in cases:
        found.setdefault(value(case, key), capacity_bytes(case))
    return sorted(found, key=found.__getitem__) if key == CAPACITY else list(found)


def other_keys(answer: RunAnswer) -> list[str]:
    """Return the varied keys that are neither policy nor partition nor the drive's."""
    keys = answer.varied
    return [k for k in keys if k not in (POLICY, PARTITION) and not k.startswith(FLASH)]


def flash_keys(answer: RunAnswer) -> list[str]:
    """Return the drive's keys to show with each case: the separation, then what is varied."""
    if not has_flash(answer.cases):
        return []
    varied = [key for key in answer.varied if key.startswith(FLASH) and key != SEPARATION]
    return [SEPARATION, *varied]


def groups(answer: RunAnswer) -> list[tuple[str, list[Case]]]:
    """Return the cases in groups of one cache size, smallest first.

    Those of a group differ only in policy, partition and the drive.
    """
    keys = other_keys(answer)
    found: dict[str, list[Case]] = {}
    for case in sorted(answer.cases, key=lambda c: (capacity_bytes(c), c.case)):
        found.setdefault(_group_title(case, keys), []).append(case)
    return list(found.items())


def capacity_title(case: Case) -> str:
    """Return the case's capacity in words: `capacity 10%wss (5MiB)`."""
    capacity = value(case, CAPACITY)
    relative = "" if capacity.endswith("B") else f" ({words.size(capacity_bytes(case))})"
    return f"capacity {capacity}{relative}"


def _group_title(case: Case, keys: Sequence[str]) -> str:
    others = [key for key in keys if key != CAPACITY]
    named = [f"{key.removeprefix('cache.')}={value(case, key)}" for key in others]
    return ", ".join([capacity_title(case), *named])


def pivots(answer: RunAnswer) -> list[Pivot]:
    """Return one pivot per group with more than one case."""
    return [_pivot(title, cases) for title, cases in groups(answer) if len(cases) > 1]


def _pivot(title: str, cases: list[Case]) -> Pivot:
    partitions = ordered(cases, PARTITION)
    cells = {(policy_label(c), value(c, PARTITION)): c for c in cases}
    found = {policy: [cells.get((policy, p)) for p in partitions] for policy, _ in cells}
    tops = {policy: max(_ratio(c) or 0.0 for c in line) for policy, line in found.items()}
    policies = sorted(found, key=lambda policy: -tops[policy])[:SHOWN]
    ratios = [[_ratio(c) for c in found[policy]] for policy in policies]
    best = []
    for column in range(len(partitions)):
        line = [found[policy][column] for policy in policies]
        values = [None if c is None or is_bound(c) else hit_ratio(c) for c in line]
        best.append(best_index(values, highest=True))
    return Pivot(title, policies, partitions, ratios, best)


def _ratio(case: Case | None) -> float | None:
    return None if case is None else hit_ratio(case)


def rankings(answer: RunAnswer) -> list[Ranking]:
    """Return every group ranked by goals met, then hit ratio; long ones show their best."""
    grouped = groups(answer)
    shown = max(SHOWN // max(len(grouped), 1), SHOWN_PER_GROUP)
    result = []
    for title, cases in grouped:
        ranked = sorted(cases, key=lambda c: (-goals_met(c), -hit_ratio(c), flash_pages(c), c.case))
        if len(ranked) > shown + SLACK:
            bound = next((case for case in ranked if is_bound(case)), None)
            ranked.sort(key=lambda c: (c is not bound, is_bound(c)))
            result.append(Ranking(title, ranked, shown))
        else:
            result.append(Ranking(title, ranked, len(ranked)))
    return result


def best_index(values: Sequence[float | None], highest: bool) -> set[int]:
    """Return where the best value stands (all places when equal), empty if nothing differs."""
    known = [v for v in values if v is not None]
    if len(known) < 2 or min(known) == max(known):
        return set()
    best = max(known) if highest else min(known)
    return {index for index, v in enumerate(values) if v == best}
