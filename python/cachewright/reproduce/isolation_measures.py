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
from typing import Any

Case = dict[str, Any]


@dataclass(frozen=True)
class Peak:
    """What the drive alone reads and writes, in bytes per second."""

    read: float
    write: float

    @staticmethod
    def of(read: Case, write: Case) -> Peak:
        """Return the peaks that two replays of one tenant found."""
        found = [
            float(case["timing"]["throughput"]["tenants"][0]["bytes_per_s_mean"])
            for case in (read, write)
        ]
        return Peak(*found)

    def at(self, write_share: float) -> float:
        """Return what the drive could do with a share of writes."""
        return self.read * (1 - write_share) + self.write * write_share


@dataclass(frozen=True)
class Outcome:
    """One replay."""

    case: Case

    @property
    def windows(self) -> list[dict[str, Any]]:
        """Each tenant's throughput."""
        found: list[dict[str, Any]] = self.case["timing"]["throughput"]["tenants"]
        return found

    @property
    def responses(self) -> list[dict[str, Any]]:
        """Each tenant's responses."""
        found: list[dict[str, Any]] = self.case["timing"]["tenants"]
        return found

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
        found = (one["bytes_mean_over_sd"] for one in self.windows)
        return [0.0 if one is None else float(one) for one in found]

    def isolation(self, base: Outcome) -> float:
        """Return C_v by that of another layout."""
        return self.steadiness / base.steadiness if base.steadiness else 0.0

    @property
    def throughput(self) -> float:
        """All tenants' bytes per second."""
        return sum(float(one["bytes_per_s_mean"]) for one in self.windows)

    @property
    def write_share(self) -> float:
        """R_w: the share of writes of all block accesses."""
        total = self.case["total"]
        return float(total["write_accesses"] / max(total["accesses"], 1))

    def bandwidth(self, peak: Peak) -> float:
        """Return the share of the drive's bandwidth that tenants are answered with."""
        return self.throughput / peak.at(self.write_share)

    @property
    def required(self) -> int | None:
        """What tenants require, as the division reports it; nothing where it does not."""
        blocks = [one.get("required_blocks") for one in self.case["tenants"]]
        if any(one is None for one in blocks):
            return None
        return int(sum(blocks)) * int(self.case["block_bytes"])

    @property
    def allocated(self) -> int:
        """What the layout keeps for tenants."""
        channels = self.case["timing"]["channels"]
        if channels["layout"] == "striped":
            return int(self.case["capacity_blocks"]) * int(self.case["block_bytes"])
        return sum(int(one["capacity_bytes"]) for one in self._had)

    def space(self, required: int) -> float:
        """Return the share of what is allocated that tenants require."""
        return required / self.allocated

    @property
    def channels(self) -> int:
        """Groups of channels that tenants have; those lent to the pool are not counted."""
        return len(self._had)

    @property
    def _had(self) -> list[dict[str, Any]]:
        groups = self.case["timing"]["channels"]["groups"]
        return [one for one in groups if one["tenants"] and not one["lent"]]

    @property
    def swaps(self) -> int | None:
        """Pairs of blocks that changed places, hot for cold; nothing where channels are common."""
        if self.case["timing"]["channels"]["layout"] == "striped":
            return None
        done = self.case["timing"].get("migrations", {"tenants": []})
        return int(sum(one["swaps"] for one in done["tenants"]))

    @property
    def rooms(self) -> list[dict[str, Any]]:
        """Where tenants' blocks lay at the end of each window; empty where channels are common."""
        found: list[dict[str, Any]] = self.case["timing"].get("rooms", {"windows": []})["windows"]
        return found

    @property
    def hit_ratio(self) -> float:
        """Of all tenants' block accesses."""
        return float(self.case["total"]["hit_ratio"])


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 without values."""
    return fmean(values) if values else 0.0


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample; 0 of fewer than two."""
    return stdev(values) if len(values) > 1 else 0.0
