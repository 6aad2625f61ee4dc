"""Records of `store`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class Store(Record):
    """What all stores of a machine did together."""

    # The separation with its settings.
    separation: str
    # The reclaim policy with its settings.
    reclaim: str
    # Over-provisioning, a ratio.
    op: float
    # Bytes of a page.
    page_bytes: int
    # Bytes of a superblock, which is a segment of the log.
    superblock_bytes: int
    # Logical pages.
    logical_pages: int
    # Segments.
    segments: int
    # Pages written to the device per page that users wrote, a ratio.
    write_amplification: float
    # Pages that users wrote over logical pages, a ratio.
    drive_writes: float
    # Pages that users wrote.
    user_pages: int
    # Valid pages moved by cleaning.
    moved_pages: int
    # Pages of a separation's own data written.
    meta_pages: int
    # Segments cleaned.
    collections: int
    # Segments reset.
    resets: int
    # Pages of writes that waited for a segment to be reset.
    held_pages: int
    # Commands that appended.
    appends: int
    # Mean bytes of a command that appended.
    mean_append_bytes: float
    # Commands that read for requests.
    reads: int
    # Commands that read pages to move them.
    move_reads: int
    # Pages read because a write changes a part of them.
    update_reads: int
    # Pages of a separation's own data read for writes.
    meta_reads: int
    # Pages read while they were on their way to the device.
    memory_reads: int
    # Pages read that hold nothing.
    unwritten_reads: int
