"""Records of `flash`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class Flash(Record):
    """What the flash of a drive did."""

    # How the drive was filled at the start.
    preconditioned: str
    # Share of the logical pages that held data at the start, 0 to 1.
    filled_share: float
    # Pages programmed per page that the host wrote, a ratio; 1 where it wrote nothing.
    write_amplification: float
    # Blocks cleaned.
    collections: int
    # Valid pages moved by cleaning.
    moved_pages: int
    # Blocks erased.
    erases: int
    # Pages read for the host.
    host_reads: int
    # Pages read because a write changes a part of them.
    update_reads: int
    # Pages of the mapping table read from flash.
    map_misses: int
    # Pages of the mapping table programmed.
    map_programs: int
    # Pages programmed for the host.
    host_programs: int
    # Pages of a separation's own data programmed.
    meta_programs: int
    # Reads of pages that hold nothing.
    unwritten_reads: int
    # Reads of pages that were on their way to flash.
    buffered_reads: int
    # Reads on several planes at once.
    multi_plane_reads: int
    # Programs on several planes at once.
    multi_plane_programs: int
    # Erases on several planes at once.
    multi_plane_erases: int
    # Pages moved inside a plane, without the channel.
    copy_backs: int
    # Programs and erases suspended for a read.
    suspends: int
    # Predictions of a model in the controller.
    predictions: int
    # Predictions that a write waited for.
    awaited_predictions: int
    # Share of the time in which the controller predicts, 0 to 1.
    predicting: float
    # Shares of the time in which channels are taken.
    channels: BusyShares
    # Shares of the time in which dies (or chips) work.
    dies: Dies
    # Waits before dies, by what waits.
    queues: dict[str, Queue]
    # Erases of blocks, and the life of the drive.
    wear: Wear


class BusyShares(Record):
    """Shares of the time in which units work, 0 to 1."""

    # Smallest share of a unit.
    min: float
    # Mean share.
    mean: float
    # Largest share of a unit.
    max: float
    # Share of each unit.
    busy: tuple[float, ...]


class Dies(Record):
    """Dies, or chips where the dies of one chip do not work at the same time."""

    # Smallest share of a unit.
    min: float
    # Mean share.
    mean: float
    # Largest share of a unit.
    max: float
    # Share of each unit.
    busy: tuple[float, ...]
    # `die` or `chip`.
    unit: str
    # Share of the time of all units that is cleaning, 0 to 1.
    cleaning: float
    # Shares of the time of all units by stage of an operation, 0 to 1.
    stages: dict[str, float]


class Queue(Record):
    """Operations of one class that waited for a die."""

    # Operations that left the queue.
    served: int
    # Mean number waiting.
    mean_waiting: float
    # Highest number waiting.
    max_waiting: int
    # Mean wait of an operation.
    mean_wait_ns: float


class Wear(Record):
    """Erases of blocks, and what the replay means for the life of the drive."""

    # Fewest erases of a block.
    min: int
    # Mean erases of a block.
    mean: float
    # Most erases of a block.
    max: int
    # Standard deviation of erases between blocks.
    stddev: float
    # Blocks moved to level the wear.
    levelling_moves: int
    # Bytes that the host wrote.
    written_bytes: int
    # Bytes programmed to flash.
    programmed_bytes: int
    # Program and erase cycles that the replay cost a block, on average.
    cycles: float
    # How often a day the host writes as much as the drive holds, at the rate of the replay.
    drive_writes_per_day: float
    # Shares of the rated endurance; null where none is given.
    rated: RatedLife | None = None


class RatedLife(Record):
    """Shares of a rated endurance."""

    # Cycles that a block is rated for.
    cycles: int
    # Share of them that the average block has used, a ratio.
    used_share: float
    # Share of them that the most worn block has used, a ratio.
    max_used_share: float
    # Days that a new drive lasts at the rate of the replay; null where nothing is programmed.
    life_days: float | None = None
    # Bytes that the host can write to a new drive; null where nothing is programmed.
    life_bytes: float | None = None
