"""What to conclude from caches that were tried on a load.

For: the sentences of `cachewright advise`. Must never know: how a case is replayed or estimated.
Units: bytes, ratios in 0..1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cachewright import words
from cachewright.tables import conclusion as endings
from cachewright.tables import summary

if TYPE_CHECKING:
    from cachewright.answers import (
        AdviseAnswer,
        AdviseCase,
        AdviseCauses,
        AdviseGoal,
        PlanAnswer,
    )

SHARED = "shared"
# Causes that a sentence names at most.
MOST_CAUSES = 3
# A gain below this is no reason to change anything.
LEAST_GAIN = 0.005
EMPTY = "each replay begins with an empty cache; the server may have begun with a warm one"


def sentences(
    present: AdviseCase,
    cases: Sequence[AdviseCase],
    goals: Sequence[AdviseGoal],
    plan: PlanAnswer | None,
) -> list[str]:
    """Return what to change, goals first; `cases` come the best first."""
    lines = [of_goal(goal) for goal in goals]
    if plan is not None:
        lines.append(_of_plan(present, plan))
    same = [case for case in cases if case.capacity_bytes == present.capacity_bytes]
    lines.append(_at_this_size(present, same))
    return [*lines, *of_smaller(present, cases)]


def conclusion(found: AdviseAnswer) -> str:
    """Return in a paragraph what to change at the present size, and what other sizes give."""
    now = found.present
    best = advised(found)
    size, ratio = words.size(now.capacity_bytes), _ratio(now)
    if best is None:
        parts = [f"Keep {label(now)} at {size}: hit ratio {ratio}, and nothing tried is better"]
        best = now
    else:
        gain = f"hit ratio {_ratio(best)} instead of {ratio}"
        parts = [f"At {size} use {label(best)} instead of {label(now)}: {gain}"]
    if found.goals:
        judged = sum(tenant.goal_met is not None for tenant in best.tenants)
        kind = "" if judged > len(found.goals) else " in hit ratio"
        parts.append(f"It meets {best.goals_met} of {words.counted(judged, 'goal')}{kind}")
    larger = [case for case in found.cases if case.capacity_bytes > now.capacity_bytes]
    as_good = [case for case in larger if case.goals_met >= best.goals_met]
    if as_good:
        most = max(as_good, key=lambda case: case.hit_ratio)
        parts.append(
            endings.more_hits(
                best.capacity_bytes, best.hit_ratio, most.capacity_bytes, most.hit_ratio
            )
        )
    return endings.paragraph([*parts, *of_smaller(now, found.cases)])


def advised(found: AdviseAnswer) -> AdviseCase | None:
    """Return the best case of the present size; None where the present one is as good."""
    now = found.present
    same = [case for case in found.cases if case.capacity_bytes == now.capacity_bytes]
    return same[0] if same and _is_better(same[0], now) else None


def _is_better(case: AdviseCase, present: AdviseCase) -> bool:
    gain = case.hit_ratio - present.hit_ratio
    return case.goals_met > present.goals_met or gain >= LEAST_GAIN


def of_goal(goal: AdviseGoal) -> str:
    """Return whether a goal is met, and what it needs."""
    is_met = goal.hit_ratio >= goal.goal_hit_ratio
    found = f"{goal.name}: {words.ratio(goal.hit_ratio)} of the goal "
    found += f"{words.ratio(goal.goal_hit_ratio)}, {'met' if is_met else 'missed'}"
    if goal.needed_bytes is None:
        return (
            f"{found}; no quota keeps it; the best possible is {words.ratio(goal.best_hit_ratio)}"
        )
    needed = f"{found}; needs {words.size(goal.needed_bytes)}"
    if goal.safe_bytes is not None and goal.safe_bytes > goal.needed_bytes:
        needed += f" (at most {words.size(goal.safe_bytes)} by the sample)"
    if goal.more_bytes is None:
        return f"{needed} to itself"
    if goal.more_bytes > 0:
        return f"{needed}, {words.size(goal.more_bytes)} more than its quota"
    return f"{needed}, {words.size(-goal.more_bytes)} less than its quota"


def of_all_goals(partition: str, size_bytes: int, present_bytes: int) -> str:
    """Return the size that keeps all goals in hit ratio beside the present one."""
    line = f"all goals in hit ratio: {words.size(size_bytes)} under {partition}"
    difference = size_bytes - present_bytes
    if difference > 0:
        return f"{line}, {words.size(difference)} more than now"
    return f"{line}, {words.size(-difference)} less than now"


def of_smaller(present: AdviseCase, cases: Sequence[AdviseCase]) -> Iterator[str]:
    """Give the smallest case that would do as well, if there is one."""
    smaller = [
        case
        for case in cases
        if case.capacity_bytes < present.capacity_bytes
        and case.hit_ratio >= present.hit_ratio - LEAST_GAIN
        and case.goals_met >= present.goals_met
    ]
    if smaller:
        least = min(smaller, key=lambda case: (case.capacity_bytes, -case.hit_ratio))
        size = words.size(least.capacity_bytes)
        yield f"{size} under {label(least)} would do as well as now: hit ratio {_ratio(least)}"


def of_misses(causes: Sequence[AdviseCauses], tenants: Sequence[str]) -> Iterator[str]:
    """Give the most frequent causes of each tenant's misses, of all `tenants` of the cache."""
    for one in causes:
        # Some causes are a server's alone, and a replay does not name them.
        headings = summary.CAUSES.items()
        found = {heading: getattr(one.causes, key, None) or 0 for key, heading in headings}
        others = zip(tenants, one.causes.pushed_out_by, strict=True)
        found |= {f"pushed out by {name}": count for name, count in others}
        known = sorted(filter(found.get, found), key=lambda heading: -found[heading])
        shares = [f"{words.percent(found[heading] / one.misses)} {heading}" for heading in known]
        yield f"{one.name}: of {words.count(one.misses)} misses {', '.join(shares[:MOST_CAUSES])}"


def label(case: AdviseCase) -> str:
    """Return the schemes of a case."""
    return f"{case.policy}, {case.partition}"


def _ratio(case: AdviseCase) -> str:
    return words.ratio(case.hit_ratio)


def _of_plan(present: AdviseCase, plan: PlanAnswer) -> str:
    sizes = {one.partition: one.smallest_blocks for one in plan.partitions}
    best = plan.best
    blocks = None if best is None else sizes[best]
    if best is None or blocks is None:
        return f"no size keeps all goals in hit ratio under {' or '.join(sizes)}"
    return of_all_goals(best, blocks * plan.block_bytes, present.capacity_bytes)


def _at_this_size(present: AdviseCase, same: Sequence[AdviseCase]) -> str:
    """Return the best case of the present size, `same` coming the best first."""
    if not same:
        return f"now: {label(present)}: hit ratio {_ratio(present)}"
    best = same[0]
    if not _is_better(best, present):
        return f"at this size nothing that was tried is better than {label(present)}"
    line = f"at this size {label(best)}: hit ratio {_ratio(best)} instead of {_ratio(present)}"
    if best.goals_met != present.goals_met:
        line += f", {best.goals_met} instead of {present.goals_met} goals met"
    return line
