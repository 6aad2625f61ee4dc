"""Records of `drive`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.answers.flash import BusyShares, Dies, Queue, Wear
from cachewright.record import Record, absent


class CacheDrive(Record):
    """The drive under a cache."""

    # The separation with its settings.
    separation: str
    # The reclaim policy with its settings.
    reclaim: str
    # Over-provisioning, a ratio.
    op: float
    # Bytes of a page.
    page_bytes: int
    # Bytes of a superblock.
    superblock_bytes: int
    # Superblocks kept free for host writes.
    reserve_superblocks: int
    # Logical pages.
    logical_pages: int
    # Whether the place of an evicted block is trimmed at once.
    trim_evicted: bool
    # Superblocks.
    superblocks: int
    # Streams of the separation.
    streams_used: int
    # Pages that the host wrote.
    user_pages: int
    # Valid pages moved by cleaning.
    moved_pages: int
    # Pages of a separation's own data written.
    meta_pages: int
    # Pages programmed to flash, all together.
    flash_pages: int
    # Pages programmed per page that the host wrote, a ratio.
    write_amplification: float
    # `write_amplification` minus 1.
    extra_writes: float
    # Write amplification of the last drive write, a ratio.
    last_write_amplification: float
    # Superblocks cleaned.
    collections: int
    # Share of invalid pages in cleaned superblocks, 0 to 1.
    victim_invalid_share: float
    # Mapped pages that the host trimmed.
    trimmed_pages: int
    # Moved pages that joined another stream than their own.
    misplaced_pages: int
    # Pages of a separation's own data read for writes.
    meta_reads: int
    # Logical pages that hold data at the end.
    mapped_pages: int
    # Bytes of metadata per logical page.
    metadata_bytes_per_page: float
    # Bytes of metadata in memory per logical page.
    memory_bytes_per_page: float
    # Erases of superblocks.
    erases: EraseSpread
    # Pages by stream.
    streams: tuple[Stream, ...]
    # Per part of the run: drive writes at its end, pages the host wrote in it, pages programmed.
    series: tuple[tuple[float, int, int], ...]
    # Predictions of short lifetimes against what came; null where nothing is predicted.
    classifier: Classifier | None = None
    # What a model did in the run; null for a separation that does not learn.
    learning: Learning | None = None
    # Trainings of a model; null for a separation that does not learn.
    training: Training | None = None
    # Pages that the cache wrote over logical pages, a ratio.
    drive_writes: float
    # Whether there were enough drive writes for a steady state.
    steady: bool


class EraseSpread(Record):
    """Erases of superblocks."""

    # Fewest erases of a superblock.
    min: float
    # Mean erases.
    mean: float
    # Most erases of a superblock.
    max: float
    # Standard deviation of erases.
    stddev: float


class Stream(Record):
    """Pages given to one stream."""

    # Number of the stream.
    stream: int
    # Pages from the host.
    user_pages: int
    # Pages moved into it by cleaning.
    moved_pages: int
    # Per bin of lifetimes: largest lifetime in pages (null: not overwritten), pages from the
    # host, pages moved. Absent under a cache, where lifetimes are not known.
    lifetimes: tuple[tuple[int | None, int, int], ...] | None = absent()


class Classifier(Record):
    """Predictions of short lifetimes against what came."""

    # Predictions that can be judged.
    judged: int
    # Lifetimes predicted short that were short.
    short_right: int
    # Lifetimes predicted short that were long.
    short_wrong: int
    # Lifetimes predicted long that were long.
    long_right: int
    # Lifetimes predicted long that were short.
    long_wrong: int
    # Share of right predictions, 0 to 1; null without predictions.
    accuracy: float | None = None
    # Share of those predicted short that were short, 0 to 1; null without predictions.
    precision: float | None = None
    # Share of the short that were predicted short, 0 to 1; null without predictions.
    recall: float | None = None
    # Harmonic mean of precision and recall, 0 to 1; null without predictions.
    f1: float | None = None
    # Share of the more frequent true class, 0 to 1; null without predictions.
    majority: float | None = None
    # Share of those predicted short, 0 to 1; null without predictions.
    called_short: float | None = None
    # Share of those that were short, 0 to 1; null without predictions.
    were_short: float | None = None
    # Parts of the run: drive writes at the start, threshold in pages, short right, short wrong,
    # long right, long wrong.
    parts: tuple[tuple[float, int, int, int, int, int], ...]
    # The thresholds of all parts.
    threshold: ThresholdSpread


class ThresholdSpread(Record):
    """Thresholds between short and long lifetimes, in pages; null without parts."""

    # Smallest threshold.
    min: int | None = None
    # Median threshold.
    median: int | None = None
    # Largest threshold.
    max: int | None = None


class Learning(Record):
    """What a model did in the run."""

    # Predictions.
    predictions: int
    # Predictions that a write waited for.
    waited_predictions: int
    # Windows of training that ended.
    windows: int
    # Models that came into use.
    trainings: int
    # Trainings that gave no usable model.
    failures: int
    # Look-ups of metadata.
    meta_lookups: int
    # Look-ups of metadata that read flash.
    meta_misses: int
    # Share of look-ups that read flash, 0 to 1.
    meta_miss_share: float


class Training(Record):
    """Trainings of a model, the load included."""

    # Windows of training that ended.
    windows: int
    # Pages that the host writes in a window.
    window_pages: int
    # Models that came into use.
    models: int
    # Trainings that gave no usable model.
    failures: int
    # Why the last training failed; null where none failed.
    last: str | None = None


class CachedDrive(Record):
    """A drive with a data cache that is the whole machine."""

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
    # Pages written from the cache to flash.
    destaged_pages: int
    # Pages that entered the cache from flash.
    read_filled_pages: int
    # Writes that waited for space in the cache.
    held_writes: int
    # Dirty pages evicted because their pool had to give space.
    given_up_pages: int
    # Most bytes on their way to flash at one time.
    most_outgoing_bytes: int
    # Use of the link between host and drive.
    link_busy: LinkBusy


class LinkBusy(Record):
    """Shares of the time in which the link carries data, 0 to 1."""

    # Share of the time towards the drive.
    to_drive: float
    # Share of the time towards the host.
    to_host: float
