"""What `plan` found: the smallest cache that meets the tenants' goals, and how it is split.

The tables are for the terminal and for the page. Sizes come in blocks and are shown in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cachewright import words
from cachewright.answers import PlanAnswer, PlanPartition, PlanTenant
from cachewright.tables import Column, Table
from cachewright.tables import conclusion as endings

BEST_EFFORT = "best effort"
# A hit ratio below this is shown as 0.0000.
LEAST_SHOWN = 0.00005


def alone(answer: PlanAnswer) -> Table[PlanTenant]:
    """Return what each tenant needs if it has a cache of its own."""
    block = answer.block_bytes
    return Table(
        "what each tenant needs alone",
        [
            Column("tenant", lambda tenant: tenant.name),
            Column("goal", _goal, numeric=True),
            Column("cache", lambda tenant: _needed(tenant, block), numeric=True),
            Column("best possible", lambda tenant: tenant.best_hit_ratio, words.ratio),
        ],
        answer.tenants,
    )


def remarks(answer: PlanAnswer) -> list[str]:
    """Return what these caches are together, and which goals no size meets."""
    smallest, found = answer.smallest_blocks, []
    if smallest is not None:
        size = _blocks(smallest, answer.block_bytes)
        found.append(f"together: {size}, split as above and never changed")
    return found + [
        f"{tenant.name}: no cache size meets the goal {_goal(tenant)}; the best "
        f"achievable hit ratio is {words.ratio(tenant.best_hit_ratio)}"
        for tenant in answer.tenants
        if tenant.goal_hit_ratio is not None and tenant.alone_blocks is None
    ]


def together(answer: PlanAnswer) -> Table[PlanPartition] | None:
    """Return what each partitioner needs for all; None where none was asked for."""
    block, sized = answer.block_bytes, answer.partitions
    if not sized:
        return None
    sizes = [one.smallest_blocks for one in sized if one.smallest_blocks is not None]
    columns: list[Column[PlanPartition]] = [
        Column("partition", lambda one: one.partition),
        Column("smallest cache", lambda one: _smallest(one, block), None, "low", numeric=True),
        Column("of the sum alone", _times_of(answer.smallest_blocks), numeric=True),
    ]
    if len(sized) > 1:
        least = min(sizes, default=None)
        columns.append(Column("of the smallest", _times_of(least), numeric=True))
    columns += [
        Column(tenant.name, _share_of(at, block), numeric=True)
        for at, tenant in enumerate(answer.tenants)
    ]
    title = "smallest cache that meets every goal; each tenant's hit ratio and last quota"
    return Table(title, columns, sized)


def conclusion(answer: PlanAnswer) -> str:
    """Return in a paragraph the smallest cache, by which partitioner, and what it leaves out.

    Empty where no partitioner was asked for.
    """
    block, sized = answer.block_bytes, answer.partitions
    found = {one.partition: one.smallest_blocks for one in sized}
    if not sized:
        return ""
    goals = [tenant.goal_hit_ratio for tenant in answer.tenants]
    number = words.counted(sum(goal is not None for goal in goals), "goal")
    best = answer.best
    if best is None:
        tried = ", ".join(found)
        return f"No cache size meets every goal ({number}) under {tried}; hit ratios are the best."
    least, size = answer.smallest_blocks, found[best]
    parts = [f"{_blocks(size, block)} under {best} is the smallest cache that meets {number}"]
    if least and size:
        share = words.significant(size / least, 3)
        parts.append(f"That is {share} times the sum of what each tenant needs alone")
    others = {name: size for name, size in found.items() if size is not None and name != best}
    if others:
        second = min(others, key=others.__getitem__)
        parts.append(f"Next is {second} with {_blocks(others[second], block)}")
    parts += [_largest_need(answer), _without_hits(answer)]
    return endings.paragraph(parts)


def _largest_need(answer: PlanAnswer) -> str:
    """Return whose goal takes most of the cache; nothing where there is one goal."""
    needs = [one for one in answer.tenants if one.alone_blocks]
    if len(needs) < 2:
        return ""
    most = max(needs, key=lambda one: one.alone_blocks or 0)
    size = _blocks(most.alone_blocks, answer.block_bytes)
    return f"The largest need is that of {most.name}: {size} alone for a hit ratio of {_goal(most)}"


def _without_hits(answer: PlanAnswer) -> str:
    """Return which tenants without a goal hit nothing there."""
    sized = next(one for one in answer.partitions if one.partition == answer.best)
    found = [
        tenant.name
        for tenant, ratio in zip(answer.tenants, sized.hit_ratios or (), strict=False)
        if tenant.goal_hit_ratio is None and ratio < LEAST_SHOWN
    ]
    if not found:
        return ""
    return f"Without a goal, {' and '.join(found)} hit nothing there: a goal would reserve space"


def records(answer: PlanAnswer) -> list[dict[str, Any]]:
    """Return a record per partitioner and tenant: its need alone, and what it gets together."""
    block = answer.block_bytes
    found = []
    for sized in answer.partitions:
        blocks = sized.smallest_blocks
        for at, tenant in enumerate(answer.tenants):
            found.append(
                {
                    "partition": sized.partition,
                    "smallest_blocks": blocks,
                    "smallest_bytes": None if blocks is None else blocks * block,
                    "tenant": tenant.name,
                    "goal_hit_ratio": tenant.goal_hit_ratio,
                    "alone_blocks": tenant.alone_blocks,
                    "best_hit_ratio": tenant.best_hit_ratio,
                    "hit_ratio": _at(sized.hit_ratios, at),
                    "quota_blocks": _at(sized.quota_blocks, at),
                }
            )
    return found


def _at(values: Sequence[float] | None, place: int) -> float | None:
    return values[place] if values else None


def _blocks(blocks: int | None, block: int) -> str:
    return "no size" if blocks is None else words.size(blocks * block)


def _smallest(one: PlanPartition, block: int) -> str:
    return _blocks(one.smallest_blocks, block)


def _goal(tenant: PlanTenant) -> str:
    goal = tenant.goal_hit_ratio
    return BEST_EFFORT if goal is None else words.ratio(goal)


def _needed(tenant: PlanTenant, block: int) -> str | None:
    return None if tenant.goal_hit_ratio is None else _blocks(tenant.alone_blocks, block)


def _times_of(smallest: int | None) -> Callable[[PlanPartition], str | None]:
    def times(one: PlanPartition) -> str | None:
        if not one.smallest_blocks or not smallest:
            return None
        return f"{words.significant(one.smallest_blocks / smallest)} x"

    return times


def _share_of(at: int, block: int) -> Callable[[PlanPartition], str | None]:
    def share(one: PlanPartition) -> str | None:
        if not one.hit_ratios:
            return None
        ratio = words.ratio(one.hit_ratios[at])
        quotas = one.quota_blocks
        if not quotas or one.partition == "shared":
            return ratio
        return f"{ratio} in {words.size(quotas[at] * block)}"

    return share
