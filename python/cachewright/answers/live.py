"""Records of `live`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class LiveFormatAnswer(Record):
    """The answer of `live format`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # The id of the new set of devices: 16 hexadecimal digits.
    set: str
    # Paths of the devices, in the order of the set.
    devices: tuple[str, ...]
    # Segments of all devices.
    segments: int
    # Bytes of a segment.
    segment_bytes: int
    # Bytes of a block.
    block_bytes: int
    # The largest cache that the devices hold beside what the log needs.
    max_cache_bytes: int
    # Bytes that only the devices had, and that are lost.
    discarded_bytes: int
    # The volumes.
    volumes: tuple[LiveVolume, ...]


class LiveVolume(Record):
    """A volume that a set of devices knows."""

    # The name of its tenant.
    name: str
    # Its size.
    bytes: int


class LiveCheckAnswer(Record):
    """The answer of `live check`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # The id of the set of devices: 16 hexadecimal digits.
    set: str
    # Whether nothing is damaged.
    sound: bool
    # Whether a server went on without these devices, because one had failed: they are served no
    # more.
    bypassed: bool
    # The devices, in the order of the set.
    devices: tuple[LiveDevice, ...]
    # The volumes, and one more for each number that the set does not name.
    volumes: tuple[CachedVolume, ...]
    # Groups that follow a gap: a loss of power voided them, or a stop at the wrong time.
    void_groups: int
    # Footers that are torn or damaged, of segments of which all groups are there: a loss of power
    # leaves them, and nothing is missing.
    torn_footers: int
    # Footers that are damaged, of segments of which groups are missing.
    damaged_footers: int
    # Headers of segments that are damaged; dirty blocks of these segments count as damaged.
    damaged_headers: int
    # Groups that were durable and are gone, as far as what is there proves it.
    lost_groups: int
    # Whether a page cannot be read where a group may have begun that was durable.
    hides_groups: bool
    # Pages that cannot be read.
    unreadable_pages: tuple[LiveUnreadablePage, ...]
    # Whether content that was durable is gone, or may be: exports are read-only until a repair.
    read_only: bool
    # Whether a server of another host, or one that knew the devices by another name, had them
    # last: if it runs still, they change while they are read.
    held_elsewhere: bool
    # Backing devices that are not as the cache knows them, and that a start may refuse.
    changed_backings: tuple[LiveChangedBacking, ...]


class LiveDevice(Record):
    """A device of a live cache."""

    # Its path.
    path: str
    # Its size.
    bytes: int
    # Copies of the superblock that are valid, of two.
    superblocks: int
    # Segments that hold nothing.
    free_segments: int
    # Segments that are full and have a footer.
    sealed_segments: int
    # Segments without a valid footer.
    open_segments: int


class CachedVolume(Record):
    """What the devices hold of a volume."""

    # The name of its tenant; `number N` if the set does not name it.
    name: str
    # Its size; null if the set does not know it.
    bytes: int | None = None
    # Whether its backing device was written to past the devices: nothing here counts for it.
    out_of_date: bool
    # Bytes that its backing device has, too.
    clean_bytes: int
    # Bytes that only the devices have.
    dirty_bytes: int
    # Clean bytes whose content is damaged; null where content was not read.
    damaged_clean_bytes: int | None = None
    # Dirty bytes whose content is damaged; null where content was not read.
    damaged_dirty_bytes: int | None = None


class LiveUnreadablePage(Record):
    """A page of a device that cannot be read."""

    # The path of the device.
    path: str
    # The byte of the device at which the page begins.
    offset: int
    # What the system says.
    error: str


class LiveChangedBacking(Record):
    """A backing device that is not as the cache knows it."""

    # The tenant whose volume it holds.
    name: str
    # The path of the device.
    path: str
    # What is known of it: another device, written to, smaller, or what the system says.
    why: str


class LiveDumpAnswer(Record):
    """The answer of `live dump`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # The id of the set of devices: 16 hexadecimal digits.
    set: str
    # Whether a server went on without these devices, because one had failed: they are served no
    # more.
    bypassed: bool
    # The volumes, and one more for each number that the set does not name.
    volumes: tuple[CachedVolume, ...]
    # Bytes of a block.
    block_bytes: int
    # The cached blocks, oldest first; null if they were not asked for.
    blocks: tuple[CachedBlock, ...] | None = None


class CachedBlock(Record):
    """A block that the devices hold."""

    # The name of the volume.
    volume: str
    # Where it begins on the volume, in bytes.
    offset: int
    # Whether only the devices have its content.
    dirty: bool
    # The number of the decision by which it was stored.
    decision: int
    # Path of the device on which it lies.
    device: str
    # Where it begins on the device, in bytes.
    device_offset: int


class LiveChangeAnswer(Record):
    """The answer of `live writeback` and `live repair`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # The id of the set of devices: 16 hexadecimal digits.
    set: str
    # Whether nothing is damaged any more.
    sound: bool
    # The volumes of which something was written back, dropped, or found damaged.
    volumes: tuple[ChangedVolume, ...]
    # Copies of superblocks and footers that were written again.
    rewritten: int
    # Content that was durable is gone, or may be, and a repair has accepted it: exports can be
    # written to again.
    accepted_loss: bool


class ChangedVolume(Record):
    """What became of a volume's content."""

    # The name of its tenant.
    name: str
    # Bytes that were written to its backing device, and are clean now.
    written_back_bytes: int
    # Damaged bytes that were dropped; the backing device has them, or an older state of them.
    dropped_bytes: int
    # Damaged dirty bytes that are still there: reads of them fail.
    damaged_bytes: int


class LiveCalibrateAnswer(Record):
    """The answer of `live calibrate`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Bytes of a block, and of a read.
    block_bytes: int
    # Reads of each device at each depth.
    reads: int
    # The devices of the cache, then those of the volumes, in the order of the stack file.
    devices: tuple[CalibratedDevice, ...]
    # The mean time of single reads of the cache's devices, as `replay.hit_time` takes it.
    hit_time: str
    # The mean time of single reads of the volumes' devices, as `replay.miss_time` takes it.
    miss_time: str
    # Whether a miss takes longer than a hit: without that no hit ratio stands for a latency.
    is_usable: bool
    # What operators should know of the devices: reads that went through the page cache.
    notices: tuple[str, ...]


class CalibratedDevice(Record):
    """How long reads of a device take."""

    # Its path.
    path: str
    # The tenant whose volume it is; null: it is a device of the cache.
    tenant: str | None = None
    # Single reads, then reads at a greater depth if one was asked for.
    times: tuple[ReadTimes, ...]


class ReadTimes(Record):
    """Times of reads of random blocks."""

    # Reads under way at one time.
    depth: int
    # The mean time.
    mean_us: float
    # The median.
    p50_us: float
    # The time that 99 % do not exceed.
    p99_us: float
