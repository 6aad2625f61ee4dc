"""Records of `wa`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.answers.drive import Classifier, EraseSpread, Learning, Stream, Training
from cachewright.answers.facts import DriveTenantFacts
from cachewright.record import Record, absent


class AmplificationAnswer(Record):
    """The answer of `wa`: one drive under every scheme asked for."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Name of the stack.
    name: str
    # Bytes of a page.
    page_bytes: int
    # Bytes of a superblock.
    superblock_bytes: int
    # Superblocks kept free for host writes.
    reserve_superblocks: int
    # Logical pages of the drive.
    logical_pages: int
    # Distinct pages that the trace writes.
    working_pages: int
    # Most pages that hold data at one time.
    live_pages: int
    # The capacity as it was asked for.
    capacity: str
    # Whether the drive is as large as the trace requires.
    scaled: bool
    # Pages that the load writes.
    load_pages: int
    # Pages that the trace writes, replayed once.
    trace_pages: int
    # Pages measured.
    user_pages: int
    # Pages measured over logical pages, a ratio.
    drive_writes: float
    # Whether the trace is replayed more than once.
    looped: bool
    # How often the trace is replayed.
    rounds: float
    # The traces.
    tenants: tuple[DriveTenantFacts, ...]
    # Which trainer made the models: `native`, its name, or `none` with a given model.
    trainer: str
    # The given model file; null without one.
    model: GivenModel | None = None
    # What a reader must know of the numbers.
    warnings: tuple[str, ...]
    # Every scheme, by over-provisioning, separation and reclaim policy.
    cases: tuple[AmplificationCase, ...]
    # Cases whose answers were kept from before. It is not written into the folder.
    reused: int | None = absent()


class GivenModel(Record):
    """A model file that was given."""

    # Path of the file.
    file: str
    # Whether its weights are 8-bit integers.
    int8: bool
    # Notes of its training, by name.
    notes: dict[str, str]


class AmplificationCase(Record):
    """The drive under one scheme."""

    # Number of the case, from 0.
    case: int
    # The separation with its settings.
    separation: str
    # The reclaim policy with its settings.
    reclaim: str
    # Over-provisioning, a ratio.
    op: float
    # Whether the separation knows the future, so that it is a bound.
    bound: bool
    # Pages of a superblock.
    block_pages: int
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
    # Whether repetition of the trace flatters the scheme.
    flattered: bool
