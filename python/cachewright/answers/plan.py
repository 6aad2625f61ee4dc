"""Records of `plan`, generated: see `cachewright.answers`."""

from __future__ import annotations

from typing import Any

from cachewright.record import Record


class PlanAnswer(Record):
    """The answer of `plan`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Name of the stack.
    name: str
    # The stack file with every default filled in.
    spec: Any
    # Bytes of a block.
    block_bytes: int
    # How much too large an answer may be, as a share of it, 0 to 1.
    precision: float
    # Each tenant alone.
    tenants: tuple[PlanTenant, ...]
    # Sum of the smallest caches of tenants with a goal; null where a goal cannot be met.
    smallest_blocks: int | None = None
    # The partitioner that requires the smallest cache; null where none meets all goals.
    best: str | None = None
    # The smallest cache under each partitioner.
    partitions: tuple[PlanPartition, ...]
    # What a reader must know of the plan.
    notes: tuple[str, ...]


class PlanTenant(Record):
    """What one tenant requires in a cache of its own."""

    # Name of the tenant.
    name: str
    # The goal, 0 to 1; null without a goal.
    goal_hit_ratio: float | None = None
    # The smallest cache that meets the goal; null without a goal, or where no size meets it.
    alone_blocks: int | None = None
    # Hit ratio of a cache that holds all blocks, 0 to 1.
    best_hit_ratio: float


class PlanPartition(Record):
    """The smallest cache under one partitioner."""

    # Name of the partitioner.
    partition: str
    # The smallest cache that meets all goals; null where no size does.
    smallest_blocks: int | None = None
    # Quota of each tenant in it; null where no size meets all goals.
    quota_blocks: tuple[int, ...] | None = None
    # Hit ratio of each tenant in it, or in the largest cache where no size meets all goals.
    hit_ratios: tuple[float, ...] | None = None
    # A larger size at which goals are not met; null where there is none.
    warning: str | None = None
    # Sizes tried: blocks, whether all goals are met, hit ratio of each tenant.
    tried: tuple[tuple[int, bool, tuple[float, ...]], ...]
