"""Records of `fleet`, generated: see `cachewright.answers`."""

from __future__ import annotations

from typing import Any

from cachewright.record import Record, absent


class FleetPlanAnswer(Record):
    """The answer of `plan --fleet`: the host of each volume, and the flash of every host."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Name of the fleet.
    name: str
    # Bytes of a block.
    block_bytes: int
    # Windows of time in which volumes have needs of their own.
    windows: int
    # Hosts in use.
    hosts: int
    # Hosts that no plan can do with less of.
    bound_hosts: int
    # Flash of each host.
    flash_blocks: int
    # Flash per host that no plan can be below.
    bound_blocks: int
    # Share by which the planned flash is above its bound.
    gap: float
    # Whether the hosts' flash was given, and the fewest hosts were looked for.
    flash_given: bool
    # Problems that were solved.
    solves: int
    # The volumes, in the order of the fleet file.
    volumes: tuple[PlannedVolume, ...]
    # Other ways to place the volumes.
    others: tuple[OtherPlacing, ...]
    # What moves when a host dies or volumes grow.
    changes: tuple[PlacementChange, ...]
    # Goals met when the hosts' caches are replayed; empty unless asked for.
    replayed: tuple[ReplayedPlacing, ...]
    # What a reader must know of the plan.
    notes: tuple[str, ...]


class PlannedVolume(Record):
    """A volume's host, its part of that host's cache and what it gets by it."""

    # Name of the volume.
    name: str
    # Number of its host.
    host: int
    # Volumes of one group are on different hosts; null without a group.
    group: str | None = None
    # The goal, 0 to 1; null without a goal.
    goal_hit_ratio: float | None = None
    # Whether any cache meets the goal.
    reached: bool
    # Hit ratio of a cache that holds all blocks.
    best_hit_ratio: float
    # Hit ratio of its part of the cache, read off its curve.
    hit_ratio: float
    # What its goal needs in its fullest window.
    need_blocks: int
    # Its part of the cache.
    blocks: int
    # Blocks that its cache writes to flash in a day.
    written_blocks_per_day: float
    # Requests per second that it may send.
    iops: int
    # Bytes per second that it may send.
    bandwidth_bytes: int


class OtherPlacing(Record):
    """Another way to place the volumes."""

    # Name of the way.
    name: str
    # Flash per host with which it meets all goals; null where no size does.
    flash_blocks: int | None = None


class PlacementChange(Record):
    """What moves when a host dies or volumes grow."""

    # The change.
    what: str
    # Whether the volumes fit on the hosts after it.
    fits: bool
    # Volumes that move.
    moved: tuple[str, ...]
    # Flash that moved volumes fill on their new hosts.
    blocks: int
    # Flash per host with which the volumes fit; that of the plan where they do.
    needed_blocks: int


class ReplayedPlacing(Record):
    """Goals met when the hosts' caches are replayed at the plan's size."""

    # Name of the way to place the volumes.
    name: str
    # Volumes with a goal that can be met.
    goals: int
    # Goals met.
    goals_met: int
    # Hit ratio of all volumes together.
    hit_ratio: float
    # Volumes whose goals are missed.
    missed: tuple[str, ...]


class StudyAnswer(Record):
    """The answer of `fleet study`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Where the volumes are.
    name: str
    # What was measured of each volume.
    plan: StudyPlan
    # Volumes with an answer.
    volumes: int
    # Their requests.
    requests: int
    # Their working sets together.
    working_set_bytes: int
    # Volumes without an answer.
    failed: tuple[FailedVolume, ...]
    # Files that cannot be read.
    unread: tuple[FailedVolume, ...]
    # The classes of volumes, most volumes first.
    classes: tuple[VolumeClass, ...]
    # Each measure over the volumes.
    distributions: tuple[VolumeDistribution, ...]
    # How often each policy is the best.
    wins: tuple[PolicyWins, ...]


class StudyPlan(Record):
    """What a study measures of each volume."""

    # The policies.
    policies: tuple[str, ...]
    # Sizes of the cache, in bytes or shares of a volume's working set.
    sizes: tuple[str, ...]
    # Share of blocks in the samples of miniature simulations.
    rate: float
    # Difference of hit ratios below which policies are simulated exactly.
    close: float
    # Size of a block.
    block: str
    # Options of `wa` for the drives; null without drives.
    drive: Any


class FailedVolume(Record):
    """A volume or file without an answer."""

    # Name of the volume, or path of the file.
    name: str
    # Why there is no answer.
    error: str


class VolumeClass(Record):
    """How many volumes are alike."""

    # The class: its mix of requests and how it moves over its blocks, or its kind.
    volume_class: str
    # Volumes of the class.
    volumes: int
    # Their requests.
    requests: int


class VolumeDistribution(Record):
    """A measure over the volumes that have it."""

    # Name of the measure.
    measure: str
    # Size of the cache; absent for measures without one.
    size: str | None = absent()
    # The policy; absent for measures without one.
    policy: str | None = absent()
    # The separation of the drive; absent for measures without one.
    separation: str | None = absent()
    # Volumes that have it.
    count: int
    # Mean over these volumes; null without any.
    mean: float | None = None
    # Shares of volumes, each with the value that they stay below; empty without any.
    quantiles: tuple[tuple[float, float], ...]


class PolicyWins(Record):
    """How often a policy is the best at one size, and what it loses."""

    # Size of the cache.
    size: str
    # The class of the volumes; `all` for all of them.
    volume_class: str
    # The policy.
    policy: str
    # Volumes of the class.
    volumes: int
    # Share of them on which it alone has the highest hit ratio.
    win_share: float
    # Share on which others have the highest hit ratio as well.
    tie_share: float
    # Share on which it is within `plan.close` of the highest.
    close_share: float
    # Share on which its hit ratio is exact.
    exact_share: float
    # Mean by which its hit ratio is below the highest.
    mean_loss: float
