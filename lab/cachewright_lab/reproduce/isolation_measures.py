"""The measures of a paper on tenants kept apart: isolation, use of space and of bandwidth.

For: one replay's figures. Must never know: figures of papers, how anything is drawn. Units: bytes,
bytes per second, nanoseconds. Source: Wang et al. (oc-cache), V-B: C_v is the sum over tenants of
mean by standard deviation of their throughput in windows; isolation compares two C_v. A deviation
counts as at least one request per window, because C_v has no bound otherwise. The harmonic mean
stands beside the sum, because one steady tenant does not raise it alone. Space is what tenants
require by what is allocated to them. Bandwidth is what all are answered by what the drive could do
with their share of writes. Where the paper is silent: a striped layout allocates the capacity of
the cache, another layout the channels that hold a tenant's blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, harmonic_mean, stdev

from cachewright import timing
from cachewright.answers import (
    Case,
    ChannelGroup,
    Channels,
    RegionWindow,
    TenantThroughput,
    TenantTiming,
    Throughput,
    Timing,
)


@dataclass(frozen=True)
class Peak:
    """What the drive alone reads and writes, in bytes per second."""

    read: float
    write: float

    @staticmethod
    def of(read: Case, write: Case) -> Peak:
        """Return the peaks that two replays of one tenant found."""
        return Peak(*(Outcome(case).windows[0].bytes_per_s_mean for case in (read, write)))

    def at(self, write_share: float) -> float:
        """Return what the drive could do with a share of writes."""
        return self.read * (1 - write_share) + self.write * write_share


@dataclass(frozen=True)
class Outcome:
    """One replay."""

    case: Case

    @property
    def timing(self) -> Timing:
        """What the replay measured of times."""
        return timing.of(self.case)

    @property
    def throughput_windows(self) -> Throughput:
        """Throughput in windows, which every stack of the study asks for."""
        if self.timing.throughput is None:
            raise ValueError("found no windows, expected a stack with `throughput_window`")
        return self.timing.throughput

    @property
    def windows(self) -> tuple[TenantThroughput, ...]:
        """Each tenant's throughput."""
        return self.throughput_windows.tenants

    @property
    def responses(self) -> tuple[TenantTiming, ...]:
        """Each tenant's responses."""
        return self.timing.tenants

    @property
    def steadiness(self) -> float:
        """C_v: how steady all tenants' throughput is together; an idle tenant adds 0."""
        return sum(self._steady)

    @property
    def harmonic(self) -> float:
        """The harmonic mean over tenants of mean by deviation; 0 if one is answered nothing."""
        return harmonic_mean(self._steady)

    @property
    def _steady(self) -> list[float]:
        return [one.bytes_mean_over_sd or 0.0 for one in self.windows]

    def isolation(self, base: Outcome) -> float:
        """Return C_v by that of another layout."""
        return self.steadiness / base.steadiness if base.steadiness else 0.0

    @property
    def throughput(self) -> float:
        """All tenants' bytes per second."""
        return sum(one.bytes_per_s_mean for one in self.windows)

    @property
    def write_share(self) -> float:
        """R_w: the share of writes of all block accesses."""
        total = self.case.total
        return total.write_accesses / max(total.accesses, 1)

    def bandwidth(self, peak: Peak) -> float:
        """Return the share of the drive's bandwidth that tenants are answered with."""
        return self.throughput / peak.at(self.write_share)

    @property
    def required(self) -> int | None:
        """What tenants require, as the division reports it; nothing where it does not."""
        blocks = [one.required_blocks for one in self.case.tenants]
        known = [one for one in blocks if one is not None]
        return sum(known) * self.case.block_bytes if len(known) == len(blocks) else None

    @property
    def allocated(self) -> int:
        """What the layout keeps for tenants."""
        if self._striped:
            return self.case.capacity_blocks * self.case.block_bytes
        return sum(one.capacity_bytes for one in self._had)

    def space(self, required: int) -> float:
        """Return the share of what is allocated that tenants require."""
        return required / self.allocated

    @property
    def channels(self) -> int:
        """Groups of channels that tenants have; those lent to the pool are not counted."""
        return len(self._had)

    @property
    def groups(self) -> tuple[ChannelGroup, ...]:
        """All groups of channels."""
        return self._channels.groups

    @property
    def _channels(self) -> Channels:
        if self.timing.channels is None:
            raise ValueError("found no channels, expected a drive with flash")
        return self.timing.channels

    @property
    def _striped(self) -> bool:
        return self._channels.layout == "striped"

    @property
    def _had(self) -> list[ChannelGroup]:
        return [one for one in self.groups if one.tenants and not one.lent]

    @property
    def swaps(self) -> int | None:
        """Pairs of blocks that changed places, hot for cold; nothing where channels are common."""
        if self._striped:
            return None
        done = self.timing.migrations
        return sum(one.swaps for one in done.tenants) if done else 0

    @property
    def rooms(self) -> tuple[RegionWindow, ...]:
        """Where tenants' blocks lay at the end of each window; empty where channels are common."""
        return self.timing.rooms.windows if self.timing.rooms else ()

    @property
    def hit_ratio(self) -> float:
        """Of all tenants' block accesses."""
        return self.case.total.hit_ratio


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 without values."""
    return fmean(values) if values else 0.0


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample; 0 of fewer than two."""
    return stdev(values) if len(values) > 1 else 0.0
