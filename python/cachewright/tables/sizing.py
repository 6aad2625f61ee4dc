"""What `plan` found: the smallest cache that meets the tenants' goals, and how it is split.

The tables are for the terminal and for the page. Sizes come in blocks and are shown in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cachewright import words
from cachewright.answers import PlanAnswer, PlanPartition, PlanTenant
from cachewright.tables import Column, Table

BEST_EFFORT = "best effort"


def alone(answer: PlanAnswer) -> Table[PlanTenant]:
    """Return what each tenant needs if it has a cache of its own."""
    block = answer.block_bytes
    return Table(
        "what each tenant needs alone",
        [
            Column("tenant", lambda tenant: tenant.name),
            Column("goal", _goal, numeric=True),
            Column("cache", lambda tenant: _needed(tenant, block), numeric=True),
            Column("best there is", lambda tenant: tenant.best_hit_ratio, words.ratio),
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
        Column("of the perfect split", _times_of(answer.smallest_blocks), numeric=True),
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
    """Return the smallest cache and by which partitioner, or that none meets the goals."""
    block, sized = answer.block_bytes, answer.partitions
    found = {one.partition: one.smallest_blocks for one in sized}
    goals = [tenant.goal_hit_ratio for tenant in answer.tenants]
    number = words.counted(sum(goal is not None for goal in goals), "goal")
    best = answer.best
    if best is None:
        tried = ", ".join(found)
        return f"no cache size meets every goal ({number}) under {tried}; hit ratios are the best"
    line = f"smallest cache: {_blocks(found[best], block)} under {best}, which meets {number}"
    others = {name: size for name, size in found.items() if size is not None and name != best}
    if not others:
        return line
    second = min(others, key=others.__getitem__)
    return f"{line}; next is {second} with {_blocks(others[second], block)}"


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
