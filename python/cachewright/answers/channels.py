"""Records of `channels`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record, absent


class Channels(Record):
    """The channels of a drive."""

    # Name of the layout.
    layout: str
    # Groups of channels that keep addresses of their own.
    groups: tuple[ChannelGroup, ...]
    # Each channel, in order.
    each: tuple[ChannelUse, ...]
    # Used over allocated space, a ratio; absent where the division does not say what is used.
    space_utilisation: float | None = absent()
    # Tenants that came and left; absent where the layout does not follow tenants.
    tenancy: Tenancy | None = absent()


class ChannelGroup(Record):
    """A group of channels and what the host asked of it."""

    # Numbers of the channels.
    channels: tuple[int, ...]
    # Tenants whose blocks lie there.
    tenants: tuple[str, ...]
    # Whether the group is lent to a pool.
    lent: bool
    # Bytes that it holds.
    capacity_bytes: int
    # Commands that read.
    reads: int
    # Commands that write.
    writes: int
    # Bytes read.
    read_bytes: int
    # Bytes written.
    write_bytes: int
    # Bytes read and written per second.
    bytes_per_s: float


class ChannelUse(Record):
    """How one channel was used, the drive's own work included."""

    # Number of the channel.
    channel: int
    # Share of the time in which the channel is taken, 0 to 1.
    busy: float
    # Share of the time in which its dies work for hosts, on average, 0 to 1.
    dies_working: float
    # Share of the time in which its dies clean, on average, 0 to 1.
    dies_cleaning: float


class Tenancy(Record):
    """Tenants that came and left under a layout that follows them."""

    # The changes, in order of time.
    changes: tuple[TenancyChange, ...]


class TenancyChange(Record):
    """A tenant that came, was refused or left, and the space from then on."""

    # When it changed.
    time_ns: int
    # Name of the tenant.
    tenant: str
    # Bytes that the tenant requires.
    required_bytes: int
    # Miss ratio with these bytes, 0 to 1.
    required_miss_ratio: float
    # Bytes that all tenants present require.
    requested_bytes: int
    # Bytes allocated to all tenants present.
    allocated_bytes: int
    # `granted`, `refused` or `left`.
    change: str
    # Groups of channels granted to the tenant alone; absent unless granted.
    groups: tuple[int, ...] | None = absent()
    # Bytes of these groups; absent unless granted.
    bucket_bytes: int | None = absent()
    # Bytes granted in the pool; absent unless granted.
    shared_bytes: int | None = absent()
    # Channels that are missing; absent unless refused.
    missing_channels: int | None = absent()


class Migrations(Record):
    """Blocks that moved on the cache device."""

    # Bytes moved, each read and written once.
    bytes: int
    # The moves by tenant.
    tenants: tuple[TenantMigrations, ...]


class TenantMigrations(Record):
    """Blocks of one tenant that moved on the cache device."""

    # Name of the tenant.
    name: str
    # Pairs of blocks exchanged, one of them the tenant's.
    swaps: int
    # Blocks of the tenant moved to a free slot.
    moves: int
    # Bytes of the tenant moved.
    bytes: int


class BlockRegions(Record):
    """Where blocks lie on a cache device whose channels have a layout."""

    # Blocks of each tenant at the end.
    tenants: tuple[TenantRegions, ...]
    # Blocks of all tenants at the end of each window.
    windows: tuple[RegionWindow, ...]


class TenantRegions(Record):
    """Where the blocks of one tenant lie."""

    # Name of the tenant.
    name: str
    # Blocks in channels of the tenant alone.
    own_blocks: int
    # Blocks in channels that the tenant shares.
    common_blocks: int
    # Blocks in channels that the layout does not give to the tenant.
    elsewhere_blocks: int


class RegionWindow(Record):
    """Where blocks lie at the end of a window; each list has an entry per tenant."""

    # End of the window.
    time_ns: int
    # Blocks in channels of the tenant alone.
    own_blocks: tuple[int, ...]
    # Blocks in channels that the tenant shares.
    common_blocks: tuple[int, ...]
    # Blocks in channels that the layout does not give to the tenant.
    elsewhere_blocks: tuple[int, ...]
