"""Which case to choose: what meets the goals in the smallest cache, and the best at each size.

For: the conclusion of the terminal and of the report from a result document. Must never know: how
they are drawn. Units: ratios in 0..1, bytes.

More cache always hits more, so one best over several capacities says nothing: without goals each
capacity has a best of its own. With goals the choice is the smallest cache that meets all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright import summary, words
from cachewright.answers import Case, RunAnswer

# Capacities that get a sentence of their own.
SHOWN_CAPACITIES = 10


def sentences(answer: RunAnswer) -> list[str]:
    """Return what to conclude from several cases, the most important first."""
    by_capacity = summary.by_capacity(answer)
    if len(by_capacity) == 1:
        ((_, cases),) = by_capacity
        return ["best: " + _best(answer, cases, answer.varied)]
    lines = [_cheapest(answer)] if summary.has_goals(answer.cases) else []
    keys = [key for key in answer.varied if key != summary.CAPACITY]
    if not keys:
        return [*lines, _ratios(by_capacity)]
    shown = by_capacity[:SHOWN_CAPACITIES]
    lines += [f"best at {title}: {_best(answer, cases, keys)}" for title, cases in shown]
    left_out = len(by_capacity) - len(shown)
    return [*lines, f"{left_out} more capacities not shown"] if left_out else lines


def choice(answer: RunAnswer) -> Case | None:
    """Return the one case to choose; None where several capacities have no goal to choose by."""
    several = len(summary.by_capacity(answer)) > 1
    if several and not summary.has_goals(answer.cases):
        return None
    return summary.best_case(answer)


def named(answer: RunAnswer) -> str:
    """Return what the case shown in detail is: the best, or the one with the most hits."""
    chosen = choice(answer)
    case = summary.best_case(answer) if chosen is None else chosen
    what = "the case with the highest hit ratio" if chosen is None else "the best case"
    return f"{what}, {summary.label(case, answer.varied)}"


def _best(answer: RunAnswer, cases: Sequence[Case], keys: Sequence[str]) -> str:
    """Return which of `cases` of one capacity is best, and how far it is above the worst."""
    best = summary.best_of(cases)
    line = f"{summary.label(best, keys)}: {_numbers(best)}"
    real = [case for case in cases if not summary.is_bound(case)] or list(cases)
    if summary.has_goals(cases):
        line += _more_hits(best, real, keys)
    else:
        worst = min(real, key=lambda c: (summary.hit_ratio(c), -c.case))
        if worst is not best:
            gain = summary.hit_ratio(best) - summary.hit_ratio(worst)
            line += f", {words.ratio(gain)} above the worst ({summary.label(worst, keys)})"
    ahead = [case for case in cases if summary.is_bound(case) and case is not best]
    if ahead:
        top = max(ahead, key=summary.hit_ratio)
        ratio = words.ratio(summary.hit_ratio(top))
        line += f"; the bound {summary.label(top, keys)} has {ratio}"
    return line


def _more_hits(best: Case, cases: Sequence[Case], keys: Sequence[str]) -> str:
    """Return which case hits more than the best but meets fewer goals, if there is one."""
    top = max(cases, key=lambda c: (summary.hit_ratio(c), -c.case))
    if summary.hit_ratio(top) <= summary.hit_ratio(best):
        return ""
    return f"; {summary.label(top, keys)} hits more but not where goals ask for it: {_numbers(top)}"


def _numbers(case: Case) -> str:
    ratio = f"hit ratio {words.ratio(summary.hit_ratio(case))}"
    goals = summary.goals(case)
    if not goals:
        return ratio
    return f"{words.count(summary.goals_met(case))} of {words.counted(goals, 'goal')} met, {ratio}"


def _cheapest(answer: RunAnswer) -> str:
    """Return the smallest capacity that meets all goals, or that none does."""
    cases, keys = answer.cases, answer.varied
    best = summary.best_case(answer)
    if summary.meets_all(best) and not summary.is_bound(best):
        title = f"smallest cache that meets all goals: {summary.capacity_title(best)}"
        rest = [key for key in keys if key != summary.CAPACITY]
        label = f", {summary.label(best, rest)}" if rest else ""
        return f"{title}{label}: {_numbers(best)}"
    line = f"no case meets all goals; nearest: {summary.label(best, keys)}: {_numbers(best)}"
    bound = [case for case in cases if summary.is_bound(case) and summary.meets_all(case)]
    if bound:
        first = min(bound, key=summary.capacity_bytes)
        line += f"; the bound {summary.label(first, keys)} meets all"
    return line


def _ratios(by_capacity: Sequence[tuple[str, Sequence[Case]]]) -> str:
    """Return the hit ratio at each capacity, of one case each."""
    shown = [f"{title}: {_numbers(cases[0])}" for title, cases in by_capacity[:SHOWN_CAPACITIES]]
    left_out = len(by_capacity) - len(shown)
    return "; ".join([*shown, f"{left_out} more not shown"] if left_out else shown)
