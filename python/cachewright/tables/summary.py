"""What a run found: cases compared, who is best by capacity, by policy and partition, over all.

The tables of `run` and `compare` and the sentences that conclude from them, for the terminal and
for the page; the command line needs no polars for them. Units: ratios in 0..1, blocks, bytes.

A policy that reads the future (the registry says which) is a bound, not a choice: it is shown and
ranked, but never called best. More cache always hits more, so one best over several capacities says
nothing: without goals each capacity has a best of its own. With goals the choice is the smallest
cache that meets all of them. What cases are ranked by is `cachewright.tables.ranking`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from cachewright import tables, words
from cachewright.answers import CacheDrive, Case, CaseTenant, CaseTotal, RunAnswer
from cachewright.documents import values
from cachewright.tables import Column, Table, ranking, timing
from cachewright.tables import conclusion as conclusions
from cachewright.tables.ranking import GOALS, HITS, Rank

POLICY = "cache.policy"
PARTITION = "cache.partition"
CAPACITY = "cache.capacity"
SEPARATION = "flash.separation"
# Keys whose values tell by themselves what they are.
SELF_EVIDENT = (POLICY, PARTITION, CAPACITY)
FLASH = "flash."
SHOWN = 20
SHOWN_PER_GROUP = 3
# Cutting fewer cases than this would hide more than it saves.
SLACK = 3
# More tenants than this have no column of their own in a ranking.
TENANT_COLUMNS = 8
# Capacities that get a sentence of their own.
SHOWN_CAPACITIES = 10
# Choices named that are as good as the one to use.
SAME_SHOWN = 3
# Times the span of the arrivals after which the last answer shows that devices did not keep up.
OVERRUN = 2
ALL = "all"
# Causes of misses by their key, other tenants apart.
CAUSES = {
    "first_use": "first use",
    "trimmed": "trimmed",
    "lost": "lost",
    "restart": "restart",
    "in_flight": "in flight",
    "bypassed": "bypassed",
    "policy": "policy",
    "quota": "quota",
    "division": "division",
    "capacity": "capacity",
    "beyond": "beyond any policy",
}
# What follows the name of a policy that is no choice.
BOUND = " (bound)"

# The counters of a case or of one of its tenants.
Line = CaseTotal | CaseTenant


def _goals_met(line: Line) -> str | None:
    """Return how many goals were met, and of how many."""
    if not isinstance(line, CaseTotal) or line.goals_met is None:
        return None
    of = f" of {words.count(line.goals)}" if line.goals else ""
    return words.Number(f"{words.count(line.goals_met)}{of}", line.goals_met)


def _byte_hit_ratio(line: Line) -> float | None:
    # Where accesses are of whole blocks it says nothing more than the hit ratio.
    return None if line.byte_hit_ratio == line.hit_ratio else line.byte_hit_ratio


def _moved_mean(line: Line) -> float | None:
    return line.moved_mean if isinstance(line, CaseTotal) else None


# Of every case and tenant.
MEASURES: tuple[Column[Line], ...] = (
    Column("hit ratio", lambda line: line.hit_ratio, words.ratio, "high"),
    Column("read hit ratio", lambda line: line.read_hit_ratio, words.ratio, "high"),
    Column("byte hit ratio", _byte_hit_ratio, words.ratio, "high"),
    Column("goals met", _goals_met, None, "high", numeric=True),
    Column("write-backs", lambda line: line.writebacks, words.count, "low"),
    Column("cache writes", lambda line: line.cache_writes, words.count, "low"),
    Column("mean response", lambda line: line.mean_response_ns, words.duration, "low"),
    Column("p99 response", lambda line: line.p99_response_ns, words.duration, "low"),
    Column("run time", lambda line: line.run_time_ns, words.duration, "low"),
)
# How far a partitioner moved quotas, and how often back: neither end is best.
MOVES: tuple[Column[Line], ...] = (
    Column("quota moved per division", _moved_mean, words.percent),
    Column("quota turns", lambda line: line.turns, words.count),
)
# Of the drive under the cache.
FLASH_MEASURES: tuple[Column[CacheDrive], ...] = (
    Column("write amplification", lambda drive: drive.write_amplification, words.ratio, "low"),
    Column("extra writes", lambda drive: drive.extra_writes, words.ratio, "low"),
    Column("flash writes", lambda drive: drive.flash_pages, words.count, "low"),
)


class Ranking(NamedTuple):
    """Cases of one capacity, the best first.

    The first `shown` are for people: the best bound, then choices by rank. `cases` holds all, so
    that the best of a column is the best of all.
    """

    title: str
    cases: list[Case]
    shown: int
    rank: Rank

    @property
    def ranked_by(self) -> str:
        """What the cases are ranked by, in words."""
        return "goals met, then hit ratio" if self.rank is GOALS else self.rank.title


def _timed_amplification(case: Case) -> float | None:
    return ranking.amplification(case) if case.timing else None


# Keys of goals that are judged by measured response times, and what they promise.
MEASURED_GOALS = {"goal_response": "mean", "goal_p99": "p99"}

# Of cases on devices.
DEVICE_MEASURES: tuple[Column[Case], ...] = (
    Column("worst slowdown", ranking.slowdown, words.ratio, "low"),
    Column("write amplification", _timed_amplification, words.ratio, "low"),
    Column(ranking.IN_BYTES, ranking.amplification_in_bytes, words.ratio, "low"),
)


def measures(lines: Sequence[Line]) -> list[Column[Line]]:
    """Return what there is to say of the lines: moves of quotas only where any moved."""
    moved = any(_moved_mean(line) or line.turns for line in lines)
    return _known([*MEASURES, *(MOVES if moved else ())], lines)


def _known(columns: Iterable[Column[tables.R]], rows: Sequence[tables.R]) -> list[Column[tables.R]]:
    """Return the columns that have a value of any row."""
    return [one for one in columns if any(one.of(row) is not None for row in rows)]


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


def measured_goals(answer: RunAnswer) -> dict[str, str]:
    """Return by tenant the goals in measured response times, such as `p99 2ms`."""
    found = {}
    for tenant, facts in zip(answer.spec.get("tenant", ()), answer.tenants, strict=False):
        for key, name in MEASURED_GOALS.items():
            if tenant.get(key) is not None:
                found[facts.name] = f"{name} {tenant[key]}"
    return found


def is_closed(answer: RunAnswer) -> bool:
    """Return whether requests wait for answers, so that their times are not those of the traces."""
    return bool(answer.spec.get("replay", {}).get("loop") == "closed")


def unequal_work(answer: RunAnswer) -> str:
    """Return that cases answered different requests, which a time that ends them brings about."""
    done = [case.total.requests for case in answer.cases]
    stops = [answer.spec.get("replay", {}), *answer.spec.get("tenant", ())]
    if not is_closed(answer) or len(set(done)) < 2 or not any(one.get("stop") for one in stops):
        return ""
    return (
        f"a closed loop that stops by time does as much as its answers allow: cases differ in "
        f"their work, from {words.count(min(done))} to {words.counted(max(done), 'request')}"
    )


def goals_not_judged(answer: RunAnswer) -> list[str]:
    """Return which goals no case judges, since nothing in the stack takes time."""
    if answer.spec.get("device"):
        return []
    return [
        f"{name}: the goal of {goal} is not judged: a replay measures response times with "
        "`[device]` tables alone"
        for name, goal in measured_goals(answer).items()
    ]


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
    return value(case, POLICY) + (BOUND if is_bound(case) else "")


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


def preference(rank: Rank, case: Case) -> tuple[float, ...]:
    """Return a key by which better cases sort first.

    Choices come before bounds. By goals, cases that meet more come before others, and of those that
    meet all the smaller cache is better. Then the value of the rank decides, the hit ratio, the
    smaller cache; when all that is equal, fewer writes to flash, then the first case.
    """
    size, met, cost = capacity_bytes(case), 0, 0
    if rank is GOALS:
        met, cost = goals_met(case), size if meets_all(case) else 0
    value = 0.0 if rank is GOALS else rank.key(case)
    least = (-hit_ratio(case), size, flash_pages(case), case.case)
    return (is_bound(case), -met, cost, value, *least)


def best_of(cases: Iterable[Case], rank: Rank) -> Case:
    """Return the best of some cases by `preference`."""
    return min(cases, key=partial(preference, rank))


def best_case(answer: RunAnswer, rank: Rank | None = None) -> Case:
    """Return the best case of a result, by a rank or by that which follows from its stack.

    With goals it is the smallest cache that meets all of them, or else the one that meets the most.
    By hits it is nearly always one of the largest cache: compare capacities by `sentences` then.
    """
    return best_of(answer.cases, rank or ranking.rank_of(answer))


def by_capacity(answer: RunAnswer) -> list[tuple[str, list[Case]]]:
    """Return the cases of each capacity under its label, the smallest first."""
    found: dict[tuple[str, int], list[Case]] = {}
    for case in sorted(answer.cases, key=lambda c: (capacity_bytes(c), c.case)):
        found.setdefault((capacity_title(case), capacity_bytes(case)), []).append(case)
    return [(title, cases) for (title, _), cases in found.items()]


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


def capacity_bytes(case: Case) -> int:
    """Return the case's cache size in bytes."""
    return case.capacity_blocks * case.block_bytes


def label(case: Case, keys: Iterable[str]) -> str:
    """Return the case's values of `keys` in a few words: `arc, hull, 64MiB, separation=2r`."""
    known = [key for key in keys if key in case.settings]
    heads = dict(zip(known, _heads_of_keys(known), strict=True))
    found = [
        value(case, key) if key in SELF_EVIDENT else f"{heads[key]}={value(case, key)}"
        for key in known
    ]
    return ", ".join(found) or "the stack as it is"


def value(case: Case, key: str) -> str:
    """Return one setting of the case as a label; capacities in a unit that people read."""
    found = words.setting(case.settings.get(key, words.NOTHING))
    return words.readable(found, capacity_bytes(case)) if key == CAPACITY else found


def ordered(cases: Iterable[Case], key: str) -> list[str]:
    """Return the labels of a setting: capacities by size, everything else as first met."""
    found: dict[str, int] = {}
    for case in cases:
        found.setdefault(value(case, key), capacity_bytes(case))
    return sorted(found, key=found.__getitem__) if key == CAPACITY else list(found)


def _columns_of_keys(answer: RunAnswer) -> list[str]:
    """Return the settings that tell cases of one capacity apart, a column each.

    The policy is always one, the partition where tenants share a cache, then whatever is varied.
    """
    keys = [POLICY]
    if PARTITION in answer.varied or len(answer.tenants) > 1:
        keys.append(PARTITION)
    keys += [key for key in flash_keys(answer) if key not in keys]
    return [*keys, *(key for key in answer.varied if key not in (*keys, CAPACITY))]


def _heads_of_keys(keys: Sequence[str]) -> list[str]:
    """Return the shortest ends of keys that tell them apart, such as `separation`."""
    found = []
    for key in keys:
        parts = key.split(".")
        ends = [".".join(parts[at:]) for at in range(len(parts) - 1, -1, -1)]
        others = [other for other in keys if other != key]
        found.append(next(end for end in ends if not any(o.endswith(f".{end}") for o in others)))
    return found


def flash_keys(answer: RunAnswer) -> list[str]:
    """Return the drive's keys to show with each case: the separation, then what is varied."""
    if not has_flash(answer.cases):
        return []
    varied = [key for key in answer.varied if key.startswith(FLASH) and key != SEPARATION]
    return [SEPARATION, *varied]


def _pivot_groups(answer: RunAnswer) -> list[tuple[str, list[Case]]]:
    """Return the cases in groups that differ only in policy, partition and the drive."""
    keys = [k for k in answer.varied if k not in (POLICY, PARTITION) and not k.startswith(FLASH)]
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


def pivots(answer: RunAnswer) -> list[Table[Mapping[str, Case]]]:
    """Return hit ratios of policies (rows) by partition (columns), a table per group.

    Groups with one partition are left out. Combinations that were not run have no ratio.
    """
    found = [(title, cases, ordered(cases, PARTITION)) for title, cases in _pivot_groups(answer)]
    return [_pivot(title, cases, names) for title, cases, names in found if len(names) > 1]


def _pivot(
    title: str, cases: Sequence[Case], partitions: Sequence[str]
) -> Table[Mapping[str, Case]]:
    by_policy: dict[str, dict[str, Case]] = {}
    for case in cases:
        by_policy.setdefault(policy_label(case), {})[value(case, PARTITION)] = case
    rows = sorted(by_policy.values(), key=lambda row: -max(map(hit_ratio, row.values())))
    columns: list[Column[Mapping[str, Case]]] = [
        Column("policy", lambda row: policy_label(_any(row)))
    ]
    columns += [Column(name, _ratio_under(name), words.ratio, "high") for name in partitions]
    return Table(
        f"{title}: hit ratio by policy and partition",
        columns,
        rows,
        shown=SHOWN,
        choice=lambda row: not is_bound(_any(row)),
    )


def _any(row: Mapping[str, Case]) -> Case:
    return next(iter(row.values()))


def _ratio_under(partition: str) -> Callable[[Mapping[str, Case]], float | None]:
    return lambda row: hit_ratio(row[partition]) if partition in row else None


def rankings(answer: RunAnswer, rank: Rank | None = None) -> list[Ranking]:
    """Return the cases of every capacity, ranked; long rankings show their best."""
    rank = rank or ranking.rank_of(answer)
    grouped = by_capacity(answer)
    shown = max(SHOWN // max(len(grouped), 1), SHOWN_PER_GROUP)
    result = []
    for title, cases in _advised_first(answer, rank, grouped):
        ranked = sorted(cases, key=lambda c: (rank.key(c), -hit_ratio(c), flash_pages(c), c.case))
        if len(ranked) > shown + SLACK:
            bound = next((case for case in ranked if is_bound(case)), None)
            ranked.sort(key=lambda c: (c is not bound, is_bound(c)))
            result.append(Ranking(title, ranked, shown, rank))
        else:
            result.append(Ranking(title, ranked, len(ranked), rank))
    return result


def _advised_first(
    answer: RunAnswer, rank: Rank, grouped: list[tuple[str, list[Case]]]
) -> list[tuple[str, list[Case]]]:
    """Return the capacity of the answer before the others, which keep their order."""
    if len(grouped) < 2:
        return grouped
    best = advised(answer, rank)
    return sorted(grouped, key=lambda group: best not in group[1])


def ranked(answer: RunAnswer, ranking: Ranking) -> Table[Case]:
    """Return the table of a ranking: all that is known of its cases, the best of each marked."""
    cases = ranking.cases

    def total(case: Case) -> CaseTotal:
        return case.total

    keys = _columns_of_keys(answer)
    named: list[Column[Case]] = [
        tables.rank(cases),
        *(
            Column(head, policy_label if key == POLICY else _set_to(key))
            for key, head in zip(keys, _heads_of_keys(keys), strict=True)
        ),
    ]
    columns: list[Column[Case]] = [
        *(measure.on(total) for measure in measures([case.total for case in cases])),
        *_by_kind(cases),
        *_known(DEVICE_MEASURES, cases),
    ]
    if has_flash(cases):
        columns += [measure.on(lambda case: case.flash) for measure in FLASH_MEASURES]
    names = [tenant.name for tenant in answer.tenants]
    if 1 < len(names) <= TENANT_COLUMNS:
        columns += [
            Column(name, _hits_of(place), words.ratio, "high") for place, name in enumerate(names)
        ]
    # What the rows are ranked by stands beside their names, where no page cuts it off.
    columns.sort(key=lambda column: column.heading != ranking.rank.title)
    return Table(
        f"{ranking.title}: ranked by {ranking.ranked_by}",
        [*named, *columns],
        cases,
        shown=ranking.shown,
        choice=lambda case: not is_bound(case),
    )


def _set_to(key: str) -> Callable[[Case], str]:
    return lambda case: value(case, key)


def _hits_of(place: int) -> Callable[[Case], float]:
    return lambda case: case.tenants[place].hit_ratio


def _by_kind(cases: Sequence[Case]) -> list[Column[Case]]:
    """Return the response times of reads and writes apart, of cases that are all on devices."""
    totals = [case.timing.total for case in cases if case.timing]
    if len(totals) < len(cases):
        return []
    return [
        column._replace(better="low").on(lambda case: timing.of(case).total)
        for column in timing.kinds(totals)
    ]


def tenants(case: Case) -> Table[Line]:
    """Return what each tenant of a case got, and all together; a lone tenant is all."""
    lone = case.tenants[0] if len(case.tenants) == 1 else None
    lines: list[Line] = [case.total] if lone else [*case.tenants, case.total]
    own = [lone] if lone else list(case.tenants)

    def tenant(line: Line) -> CaseTenant | None:
        return line if isinstance(line, CaseTenant) else lone

    columns: list[Column[Line]] = [
        Column("tenant", lambda line: line.name if isinstance(line, CaseTenant) else ALL),
        Column("accesses", lambda line: line.accesses, words.count),
        *(measure._replace(better=None) for measure in measures(lines)),
    ]
    further: list[Column[CaseTenant]] = []
    if any(map(has_goal, own)):
        further.append(Column("goal", lambda one: goal(one, case.block_bytes), numeric=True))
    further.append(
        Column("occupancy", lambda one: one.occupancy_blocks * case.block_bytes, words.size)
    )
    further.append(Column("quota", lambda one: one.quota_blocks * case.block_bytes, words.size))
    if any(one.states for one in own):
        further += [
            Column("over quota", lambda one: one.states and one.states.supply, words.percent),
            Column("under quota", lambda one: one.states and one.states.demand, words.percent),
            Column("at quota", lambda one: one.states and one.states.stable, words.percent),
        ]
    keys = [key for key in case.settings if key != CAPACITY]
    title = f"{label(case, keys)}, {words.size(capacity_bytes(case))}"
    return Table(title, [*columns, *(column.on(tenant) for column in further)], lines)


def causes(case: Case) -> Table[CaseTenant] | None:
    """Return the misses of each tenant by cause, and by whom they were pushed out.

    None unless the stack asks for causes. Causes that no miss has are left out.
    """
    lines = [one for one in case.tenants if one.causes]
    if not lines:
        return None
    known: list[Column[CaseTenant]] = [
        *(
            Column(heading, _of_cause(key), words.count)
            for key, heading in CAUSES.items()
            if any(_of_cause(key)(line) for line in lines)
        ),
        *(
            Column(f"pushed out by {other.name}", _pushed_out_by(place), words.count)
            for place, other in enumerate(case.tenants)
            if any(_pushed_out_by(place)(line) for line in lines)
        ),
    ]
    columns: list[Column[CaseTenant]] = [
        Column("tenant", lambda line: line.name),
        Column("misses", lambda line: line.misses, words.count),
        *known,
    ]
    if any(line.causes and line.causes.pushed_out for line in lines):
        columns.append(Column("time for others", _time_for_others, words.duration))
    keys = [key for key in case.settings if key != CAPACITY]
    return Table(f"causes of misses: {label(case, keys)}", columns, lines)


def _of_cause(key: str) -> Callable[[CaseTenant], int | None]:
    return lambda line: getattr(line.causes, key, None)


def _pushed_out_by(place: int) -> Callable[[CaseTenant], int | None]:
    return lambda line: line.causes.pushed_out_by[place] if line.causes else None


def _time_for_others(line: CaseTenant) -> int | None:
    return sum(line.causes.pushed_out_ns) if line.causes else None


def records(answer: RunAnswer) -> list[dict[str, Any]]:
    """Return a record per case and tenant, and one for `all`, with a drive's numbers."""
    return [record for case in answer.cases for record in _records_of(case)]


def _records_of(case: Case) -> Iterator[dict[str, Any]]:
    from cachewright.results import capacity, case_keys, flash, without_name

    head = {**case_keys(case), **capacity(case)}
    times: dict[str, dict[str, Any]] = {}
    if case.timing:
        found: list[timing.Line] = [*case.timing.tenants, timing.all_together(case.timing)]
        times = {line.name: timing.flat(line) for line in found}
    for tenant in case.tenants:
        rest = without_name(tenant)
        yield {**head, "tenant": tenant.name, **rest, **times.get(tenant.name, {})}
    yield {**head, "tenant": ALL, **values(case.total), **times.get(ALL, {}), **flash(case)}


def sentences(answer: RunAnswer, rank: Rank | None = None) -> list[str]:
    """Return what to conclude from several cases, the most important first."""
    rank = rank or ranking.rank_of(answer)
    sizes = by_capacity(answer)
    if len(sizes) == 1:
        ((_, cases),) = sizes
        return [f"best: {_best_of_size(cases, answer.varied, rank)}"]
    lines = [_cheapest(answer)] if rank is GOALS else []
    keys = [key for key in answer.varied if key != CAPACITY]
    if not keys:
        return [*lines, _ratios(sizes, rank)]
    shown = sizes[:SHOWN_CAPACITIES]
    lines += [f"best at {title}: {_best_of_size(cases, keys, rank)}" for title, cases in shown]
    left_out = len(sizes) - len(shown)
    return [*lines, f"{left_out} more capacities not shown"] if left_out else lines


def conclusion(answer: RunAnswer, rank: Rank | None = None) -> str:
    """Return the answer of a comparison in a paragraph: what to use, how good it is, its price.

    By hits it is the smallest cache that gives nearly what the largest one compared gives, under
    the scheme that hits most there. Of one case it says whether its devices were overrun.
    """
    rank = rank or ranking.rank_of(answer)
    best = advised(answer, rank)
    if len(answer.cases) < 2:
        return conclusions.paragraph([_overrun(answer, best)])
    if all(_is_same(case, best, rank) for case in answer.cases):
        same = (
            f"Nothing compared differs: all {len(answer.cases)} cases have {_numbers(best, rank)}"
        )
        return conclusions.paragraph([same, _overrun(answer, best)])
    if is_worthless(best, rank):
        return f"No cache compared is worth its space: {_most_hits(answer)}."
    keys = [key for key in answer.varied if key != CAPACITY]
    size = f"at {words.size(capacity_bytes(best))} " if CAPACITY in answer.varied else ""
    use = f"use {label(best, keys)}" if keys else "the stack as it is"
    first = f"{size}{use}: {_numbers(best, rank)}"
    parts = [first[:1].upper() + first[1:], _as_good(answer, best, rank)]
    parts.append(_more_cache(answer, best, rank))
    parts += [_of_possible(answer, best), _written_per_day(answer, best)]
    return conclusions.paragraph([*parts, _overrun(answer, best)])


def _is_same(case: Case, best: Case, rank: Rank) -> bool:
    """Return whether two cases of one capacity counted and took the same."""
    return (
        capacity_bytes(case) == capacity_bytes(best)
        and case.total == best.total
        and rank.of(case) == rank.of(best)
        and ranking.amplification(case) == ranking.amplification(best)
    )


def _as_good(answer: RunAnswer, best: Case, rank: Rank) -> str:
    """Return the other choices that give the same as the one to use."""
    keys = [key for key in answer.varied if key != CAPACITY]
    same = [
        label(case, keys)
        for case in answer.cases
        if case is not best and not is_bound(case) and _is_same(case, best, rank)
    ]
    more = len(same) - SAME_SHOWN
    named = "; ".join(same[:SAME_SHOWN]) + (f"; {more} more" if more > 0 else "")
    return f"As good in every number: {named}" if same else ""


def _keeps_times(answer: RunAnswer) -> bool:
    """Return whether all requests arrive at the times of their traces."""
    replay, tenants = answer.spec["replay"], answer.spec["tenant"]
    is_whole = replay["loop"] == "open" and not replay["stop"] and replay["warmup"] != "history"
    is_as_recorded = all(one["time_scale"] == 1 and one["start"] == "0s" for one in tenants)
    return is_whole and is_as_recorded and all(one.has_times for one in answer.tenants)


def _overrun(answer: RunAnswer, case: Case) -> str:
    """Return that requests came faster than the devices answer; nothing where they kept up.

    Arrivals of a closed loop, or at other times than the traces', say nothing of that.
    """
    if case.timing is None or not _keeps_times(answer):
        return ""
    span, end = answer.workload.span_ns, case.timing.end_ns
    if end < OVERRUN * span:
        return ""
    return (
        f"The devices are overrun: requests arrive for {words.duration(span)}, the last is "
        f"answered after {words.duration(end)}, so that response times tell of the queue"
    )


def is_worthless(best: Case, rank: Rank) -> bool:
    """Return whether even the case to use hits so little that no cache is worth its space."""
    return rank is HITS and hit_ratio(best) < conclusions.HARDLY


def _most_hits(answer: RunAnswer) -> str:
    """Return the hits of the case that hits most, as a reason to have no cache."""
    most = best_case(answer, HITS)
    return f"{label(most, answer.varied)} hits most, {words.ratio(hit_ratio(most))} of accesses"


def advised(answer: RunAnswer, rank: Rank | None = None) -> Case:
    """Return the case to use.

    By hits, of several capacities, it is the best of the smallest one that gives nearly what the
    largest gives.
    """
    rank = rank or ranking.rank_of(answer)
    if rank is not HITS:
        return best_case(answer, rank)
    found = [best_of(cases, HITS) for _, cases in by_capacity(answer)]
    top = max(map(hit_ratio, found))
    return next(case for case in found if hit_ratio(case) >= conclusions.NEARLY * top)


def is_largest_tried(answer: RunAnswer, best: Case) -> bool:
    """Return whether a case has the largest of several capacities, and a larger one may hit more.

    One capacity is a choice of its own. A cache of the whole working set hits all it can.
    """
    sizes = {capacity_bytes(case) for case in answer.cases}
    size = capacity_bytes(best)
    return len(sizes) > 1 and size == max(sizes) and size < answer.workload.working_set_bytes


def _more_cache(answer: RunAnswer, best: Case, rank: Rank) -> str:
    """Return what the largest cache compared would give beyond the one that is advised."""
    if rank is not HITS:
        return ""
    if is_largest_tried(answer, best):
        return "Larger sizes were not tried"
    choices = [case for case in answer.cases if not is_bound(case)] or list(answer.cases)
    most = max(map(capacity_bytes, choices))
    top = max(hit_ratio(case) for case in choices if capacity_bytes(case) == most)
    return conclusions.more_hits(capacity_bytes(best), hit_ratio(best), most, top)


def _of_possible(answer: RunAnswer, best: Case) -> str:
    """Return how much of the best bound's hits a case has; nothing without a bound of its size."""
    size = capacity_bytes(best)
    same = [c for c in answer.cases if is_bound(c) and capacity_bytes(c) == size]
    top = max(same, key=hit_ratio, default=None)
    if top is None or is_bound(best):
        return ""
    return conclusions.of_possible(hit_ratio(best), value(top, POLICY), hit_ratio(top))


def _written_per_day(answer: RunAnswer, case: Case) -> str:
    """Return the bytes that a case writes to the cache in a day at the rate of its requests."""
    if not all(tenant.has_times for tenant in answer.tenants):
        return ""
    written = case.total.cache_writes * case.block_bytes
    if is_closed(answer) and case.total.finished_ns is not None:
        rate = "the rate of this replay"
        return conclusions.written_per_day(written, case.total.finished_ns, "the cache", rate)
    return conclusions.written_per_day(written, answer.workload.span_ns, "the cache")


def choice(answer: RunAnswer, rank: Rank | None = None) -> Case | None:
    """Return the one case to choose; None where several capacities are ranked by hits alone."""
    rank = rank or ranking.rank_of(answer)
    if rank is HITS and len(by_capacity(answer)) > 1:
        return None
    return best_case(answer, rank)


def named(answer: RunAnswer, rank: Rank | None = None) -> str:
    """Return what the case shown in detail is: the best, or the one with the most hits."""
    rank = rank or ranking.rank_of(answer)
    chosen = choice(answer, rank)
    case = best_case(answer, rank) if chosen is None else chosen
    what = "the case with the highest hit ratio" if chosen is None else "the best case"
    return f"{what}, {label(case, answer.varied)}"


def _best_of_size(cases: Sequence[Case], keys: Sequence[str], rank: Rank) -> str:
    """Return which of `cases` of one capacity is best, and how far it is from the worst."""
    best = best_of(cases, rank)
    line = f"{label(best, keys)}: {_numbers(best, rank)}"
    real = [case for case in cases if not is_bound(case)] or list(cases)
    if rank is GOALS:
        line += _more_hits(best, real, keys)
    else:
        worst = max(real, key=lambda c: (rank.key(c), c.case))
        line += _ahead_of(worst, best, keys, rank)
    ahead = [case for case in cases if is_bound(case) and case is not best]
    if ahead and rank in (HITS, GOALS):
        top = max(ahead, key=hit_ratio)
        ratio = words.ratio(hit_ratio(top))
        line += f"; the bound {label(top, keys)} has {ratio}"
    return line


def _ahead_of(worst: Case, best: Case, keys: Sequence[str], rank: Rank) -> str:
    """Return how far the best case is from the worst; nothing where they are one."""
    if worst is best:
        return ""
    if rank is HITS:
        gain = hit_ratio(best) - hit_ratio(worst)
        return f", {words.ratio(gain)} above the worst ({label(worst, keys)})"
    value = rank.of(worst)
    shown = words.NOTHING if value is None else rank.text(value)
    return f"; the worst ({label(worst, keys)}) has {shown}"


def _more_hits(best: Case, cases: Sequence[Case], keys: Sequence[str]) -> str:
    """Return which case hits more than the best but meets fewer goals, if there is one."""
    top = max(cases, key=lambda c: (hit_ratio(c), -c.case))
    if hit_ratio(top) <= hit_ratio(best):
        return ""
    return f"; {label(top, keys)} hits more but not where goals ask for it: {_numbers(top, GOALS)}"


def _numbers(case: Case, rank: Rank) -> str:
    ratio = f"hit ratio {words.ratio(hit_ratio(case))}"
    if rank is GOALS:
        known = goals(case)
        return f"{words.count(goals_met(case))} of {words.counted(known, 'goal')} met, {ratio}"
    if rank is HITS:
        return ratio
    others = [ranking.AMPLIFICATION, ranking.MEAN, ranking.P99]
    parts = [one.shown(case) for one in others if one is not rank and one.of(case) is not None]
    if (in_bytes := ranking.amplification_in_bytes(case)) is not None:
        parts.append(f"{words.ratio(in_bytes)} {ranking.IN_BYTES}")
    return ", ".join([rank.shown(case), *parts, ratio])


def _cheapest(answer: RunAnswer) -> str:
    """Return the smallest capacity that meets all goals, or that none does."""
    cases, keys = answer.cases, answer.varied
    best = best_case(answer, GOALS)
    if meets_all(best) and not is_bound(best):
        title = f"smallest cache that meets all goals: {capacity_title(best)}"
        rest = [key for key in keys if key != CAPACITY]
        rest_of_it = f", {label(best, rest)}" if rest else ""
        return f"{title}{rest_of_it}: {_numbers(best, GOALS)}"
    line = f"no case meets all goals; nearest: {label(best, keys)}: {_numbers(best, GOALS)}"
    bound = [case for case in cases if is_bound(case) and meets_all(case)]
    if bound:
        first = min(bound, key=capacity_bytes)
        line += f"; the bound {label(first, keys)} meets all"
    return line


def _ratios(sizes: Sequence[tuple[str, Sequence[Case]]], rank: Rank) -> str:
    """Return the numbers of each capacity, of one case each."""
    shown = [f"{title}: {_numbers(cases[0], rank)}" for title, cases in sizes[:SHOWN_CAPACITIES]]
    left_out = len(sizes) - len(shown)
    return "; ".join([*shown, f"{left_out} more not shown"] if left_out else shown)


def fewest_flash_writes_sentence(answer: RunAnswer) -> str:
    """Return which case writes least to flash; nothing without a drive or a choice."""
    best = fewest_flash_writes(answer)
    if best is None or best.flash is None or len(answer.cases) < 2:
        return ""
    return (
        f"fewest flash writes: {label(best, answer.varied)}: "
        f"{words.count(best.flash.flash_pages)} pages, "
        f"write amplification {words.ratio(best.flash.write_amplification)}, "
        f"hit ratio {words.ratio(hit_ratio(best))}"
    )


def fastest(answer: RunAnswer) -> Case | None:
    """Return the choice with the lowest mean response; None without devices."""
    found = [case for case in answer.cases if case.timing and not is_bound(case)]
    return min(found, key=lambda case: (timing.of(case).total.mean_ns, case.case), default=None)


def fastest_sentence(answer: RunAnswer) -> str:
    """Return which choice answers fastest; nothing without devices or a choice."""
    best = fastest(answer)
    if best is None or len(answer.cases) < 2:
        return ""
    total = timing.of(best).total
    line = f"fastest: {label(best, answer.varied)}: "
    line += f"mean response {words.duration(total.mean_ns)}, p99 {words.duration(total.p99_ns)}"
    return f"{line}, hit ratio {words.ratio(hit_ratio(best))}"
