"""Records of `advise`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class AdviseAnswer(Record):
    """The answer of `advise`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Name of the stack.
    name: str
    # What the numbers come from: replays of `recordings` or of the stack's `traces`, or estimates
    # from the sampled `curves` of a server that records nothing.
    source: str
    # The recordings that were replayed, oldest first; else empty.
    recordings: tuple[str, ...]
    # Requests that were replayed; 0 for estimates.
    requests: int
    # Accesses to blocks that all hit ratios belong to.
    accesses: int
    # Time from the first request to the last one; for estimates, the time that curves count.
    span_ns: int
    # The cache as the stack has it.
    present: AdviseCase
    # All caches that were tried, the best first: the present one is among them.
    cases: tuple[AdviseCase, ...]
    # What each tenant with a goal needs.
    goals: tuple[AdviseGoal, ...]
    # What to change, the most important first.
    advice: tuple[str, ...]
    # What a reader must know of the answer.
    notes: tuple[str, ...]


class AdviseCase(Record):
    """A cache that was tried."""

    # The policy.
    policy: str
    # The partitioner.
    partition: str
    # The size of the cache.
    capacity_bytes: int
    # Hits per access of all tenants together, 0 to 1.
    hit_ratio: float
    # Goals that are met, of all tenants; 0 without goals.
    goals_met: int
    # The tenants, in the order of the stack file.
    tenants: tuple[AdviseTenant, ...]


class AdviseTenant(Record):
    """A tenant of a cache that was tried."""

    # Name of the tenant.
    name: str
    # Hits per access, 0 to 1.
    hit_ratio: float
    # Bytes that it may hold at the end; all of the cache where tenants share it.
    quota_bytes: int
    # Whether its goal is met; null without a goal.
    goal_met: bool | None = None


class AdviseGoal(Record):
    """What a tenant with a goal needs."""

    # Name of the tenant.
    name: str
    # The goal, 0 to 1.
    goal_hit_ratio: float
    # What it has in the present cache, 0 to 1.
    hit_ratio: float
    # The smallest quota that keeps the goal under the present policy; null where none does.
    needed_bytes: int | None = None
    # The smallest quota that keeps it at the high end of the 95 % confidence interval of misses;
    # null for replays, and where none does.
    safe_bytes: int | None = None
    # Bytes beyond its present quota, less than 0 if it has more than it needs; null where no
    # quota keeps the goal, and where tenants share the cache.
    more_bytes: int | None = None
    # The hit ratio of a cache that holds all blocks, 0 to 1.
    best_hit_ratio: float
