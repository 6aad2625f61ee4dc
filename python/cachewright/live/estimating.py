"""Estimates of what other sizes would give a live server that records nothing.

For: `cachewright advise` and the same from Python. Must never know: requests, how curves are
sampled. All numbers come from the curves of the server's status. Units: bytes, nanoseconds, ratios.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cachewright import _native, words
from cachewright._native import SpecError
from cachewright.answers import (
    AdviseAnswer,
    AdviseCase,
    AdviseGoal,
    AdviseTenant,
    LiveStatus,
    SampledCurve,
    TenantStatus,
)
from cachewright.live import advice, sampled_curves

CURVES = "curves"
SIZES = (0.5, 1.0, 2.0)
NS_PER_S = 1_000_000_000
BLOCKS = " blocks"
NEEDS_RECORDING = "expected a server with `serve.record`: curves say nothing of other schemes"


@dataclass(frozen=True)
class Tenant:
    """A tenant with accesses, its curve, and its part of the present cache."""

    status: TenantStatus
    curve: SampledCurve
    quota_bytes: int | None


def estimate(status: LiveStatus, capacities: Sequence[str] = ()) -> AdviseAnswer:
    """Return estimates for other sizes of the cache, and for the quotas that goals need.

    `status` is that of a server with sampled curves. Quotas change in proportion to the cache; a
    cache that tenants share is split as LRU would. Errors: `SpecError` for a capacity that is no
    size, and for a server without accesses.
    """
    tenants = list(_tenants(status))
    if not tenants:
        raise SpecError("found curves without accesses, expected a server with load")
    block, now = status.block_bytes, status.capacity_bytes
    usual = [max(block, round(now / block * size) * block) for size in SIZES]
    asked = [_bytes(text, block) for text in capacities]
    cases = {size: _case(status, tenants, size) for size in dict.fromkeys([now, *(asked or usual)])}
    goals = list(_goals(tenants, cases[now], block))
    best = sorted(cases.values(), key=lambda case: (-case.goals_met, -case.hit_ratio))
    return AdviseAnswer(
        cachewright=status.cachewright,
        schema_version=status.schema_version,
        name=status.stack,
        source=CURVES,
        recordings=(),
        requests=0,
        accesses=sum(one.curve.accesses for one in tenants),
        span_ns=round(max(one.curve.seconds for one in tenants) * NS_PER_S),
        present=cases[now],
        cases=tuple(best),
        goals=tuple(goals),
        causes=(),
        advice=tuple(_advice(status, tenants, cases[now], best, goals)),
        notes=tuple(_notes(status, tenants)),
    )


def has_curves(status: LiveStatus) -> bool:
    """Return whether a server samples curves."""
    return any(one.curve is not None for one in status.tenants)


def refuse(options: Sequence[str]) -> None:
    """Refuse options that want a replay. Errors: `SpecError` names the first."""
    if options:
        found = "found a server that records nothing"
        raise SpecError(f"`{options[0]}`: {found}, {NEEDS_RECORDING}")


def _tenants(status: LiveStatus) -> Iterator[Tenant]:
    for one in status.tenants:
        if one.curve is not None and one.curve.accesses > 0 and one.curve.points:
            yield Tenant(one, one.curve, one.quota_bytes)


def _bytes(text: str, block_bytes: int) -> int:
    count = text.removesuffix(BLOCKS)
    if count != text and count.isdigit():
        found = int(count) * block_bytes
    else:
        found = _native.parse_bytes(text)
    if found < block_bytes:
        raise SpecError(f"`capacity`: found {text}, expected a block or more")
    return found // block_bytes * block_bytes


def _is_shared(tenants: Sequence[Tenant]) -> bool:
    return any(one.quota_bytes is None for one in tenants)


def _held(status: LiveStatus, tenants: Sequence[Tenant], capacity_bytes: int) -> list[float]:
    """Return the bytes of each tenant in a cache of a size, divided as the present one is."""
    if _is_shared(tenants):
        return sampled_curves.shared([one.curve for one in tenants], capacity_bytes)
    scale = capacity_bytes / status.capacity_bytes
    return [(one.quota_bytes or 0) * scale for one in tenants]


def _case(status: LiveStatus, tenants: Sequence[Tenant], capacity_bytes: int) -> AdviseCase:
    shares, found = _held(status, tenants, capacity_bytes), []
    is_shared = _is_shared(tenants)
    for one, held in zip(tenants, shares, strict=True):
        ratio = 1.0 - sampled_curves.miss_ratio(one.curve, held)
        goal = one.status.goal_hit_ratio
        block = status.block_bytes
        quota = capacity_bytes if is_shared else int(held) // block * block
        met = None if goal is None else ratio >= goal
        name = one.status.name
        found.append(AdviseTenant(name=name, hit_ratio=ratio, quota_bytes=quota, goal_met=met))
    accesses = [one.curve.accesses for one in tenants]
    hits = sum(tenant.hit_ratio * count for tenant, count in zip(found, accesses, strict=True))
    return AdviseCase(
        policy=status.policy,
        partition=status.partition,
        capacity_bytes=capacity_bytes,
        hit_ratio=hits / sum(accesses),
        goals_met=sum(tenant.goal_met is True for tenant in found),
        tenants=tuple(found),
    )


def _goals(tenants: Sequence[Tenant], present: AdviseCase, block: int) -> Iterator[AdviseGoal]:
    """Give what each tenant with a goal needs beside its quota."""
    for one, now in zip(tenants, present.tenants, strict=True):
        goal = one.status.goal_hit_ratio
        if goal is None:
            continue
        need = sampled_curves.needed(one.curve, goal, block)
        quota = one.quota_bytes
        more = None if need is None or quota is None else need.size_bytes - quota
        yield AdviseGoal(
            name=one.status.name,
            goal_hit_ratio=goal,
            hit_ratio=now.hit_ratio,
            needed_bytes=None if need is None else need.size_bytes,
            safe_bytes=None if need is None else need.safe_bytes,
            more_bytes=more,
            best_hit_ratio=sampled_curves.best_hit_ratio(one.curve),
        )


def _advice(
    status: LiveStatus,
    tenants: Sequence[Tenant],
    present: AdviseCase,
    best: Sequence[AdviseCase],
    goals: Sequence[AdviseGoal],
) -> Iterator[str]:
    yield from map(advice.of_goal, goals)
    if goals and all(goal.needed_bytes is not None for goal in goals):
        size = _for_all_goals(status, tenants, goals)
        if size is None:
            which = f"all goals in hit ratio under {status.partition}"
            yield f"no size that the curves know keeps {which}"
        else:
            yield advice.of_all_goals(status.partition, size, present.capacity_bytes)
    yield from advice.of_smaller(present, best)


def _for_all_goals(
    status: LiveStatus, tenants: Sequence[Tenant], goals: Sequence[AdviseGoal]
) -> int | None:
    """Return the least size of the cache that keeps all goals.

    Tenants without a goal keep their quotas, where there are some.
    """
    if not _is_shared(tenants):
        named = {goal.name: goal.needed_bytes or 0 for goal in goals}
        return sum(named.get(one.name, one.quota_bytes or 0) for one in status.tenants)
    block = status.block_bytes
    known = sum(one.curve.points[-1].bytes for one in tenants)

    def keeps(blocks: int) -> bool:
        return _case(status, tenants, blocks * block).goals_met == len(goals)

    blocks = sampled_curves.least(keeps, -(-known // block))
    return None if blocks is None else blocks * block


def _notes(status: LiveStatus, tenants: Sequence[Tenant]) -> Iterator[str]:
    yield "these are estimates from sampled curves; `serve.record` and a replay compare policies"
    policies = dict.fromkeys(one.curve.policy for one in tenants)
    if (other := ", ".join(policies)) != status.policy:
        yield f"curves are those of {other}; the cache decides by {status.policy}"
    if _is_shared(tenants) and len(tenants) > 1:
        yield "tenants share the cache: estimates take it as LRU"
    for one in tenants:
        if one.curve.trusted_bytes > 0:
            size = words.size(one.curve.trusted_bytes)
            yield f"{one.status.name}: the sample is too small for sizes below {size}"
    for one in tenants:
        goal = one.status.goal
        if goal is not None and one.status.goal_hit_ratio is None:
            yield (
                f"{one.status.name}: `{goal.key}` is not judged: curves know hit ratios and no "
                "response times"
            )
    counted = {one.status.name for one in tenants}
    for left_out in status.tenants:
        if left_out.name not in counted:
            yield f"{left_out.name}: found no accesses in the last hour; it takes no part"
