"""The plan of a fleet as a document: what `plan --fleet --json` prints and `fleet.json` holds.

For: readers of plans. Must never know: how plans are made. Units are in the names of fields: blocks
are of `block_bytes`; ratios are 0 to 1.
"""

from __future__ import annotations

from cachewright.record import Record


class PlannedVolume(Record):
    """A volume's host, its part of that host's cache and what it gets by it.

    `blocks` is its cache, `need_blocks` what its goal needs in its fullest window; `hit_ratio` is
    read off its curve. `reached` is whether any cache meets the goal.
    """

    name: str
    host: int
    group: str | None
    goal_hit_ratio: float | None
    reached: bool
    best_hit_ratio: float
    hit_ratio: float
    need_blocks: int
    blocks: int
    written_blocks_per_day: float
    iops: int
    bandwidth_bytes: int


class Change(Record):
    """What moves when a host dies or volumes grow.

    `what` names the change; `blocks` is the flash that moved volumes fill on their new hosts. Where
    the volumes do not fit, `fits` is false and `needed_blocks` the flash per host with which they
    would; it is the present size otherwise.
    """

    what: str
    fits: bool
    moved: tuple[str, ...]
    blocks: int
    needed_blocks: int


class OtherWay(Record):
    """Another way to place the volumes, and the flash per host with which it meets all goals.

    `flash_blocks` is `None` where no size does.
    """

    name: str
    flash_blocks: int | None


class Replayed(Record):
    """Goals met when the hosts' caches are replayed at the plan's size, by way of placing."""

    name: str
    goals: int
    goals_met: int
    hit_ratio: float
    missed: tuple[str, ...]


class FleetPlan(Record):
    """Which volume goes on which host, and the flash that every host needs.

    `bound_blocks` and `bound_hosts` are what no placing can be below; `gap` is the share by which
    the planned flash is above its bound. `flash_given`: the hosts' flash was given, and the
    fewest hosts were looked for.
    """

    name: str
    block_bytes: int
    windows: int
    hosts: int
    bound_hosts: int
    flash_blocks: int
    bound_blocks: int
    gap: float
    flash_given: bool
    solves: int
    volumes: tuple[PlannedVolume, ...]
    others: tuple[OtherWay, ...]
    changes: tuple[Change, ...]
    replayed: tuple[Replayed, ...]
    notes: tuple[str, ...]
