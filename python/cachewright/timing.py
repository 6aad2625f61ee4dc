"""Response times of cases: lines of tenants, parts of a response, who is fastest.

For: the tables of the terminal and the figures of the report. Must never know: how they are drawn.
Units: nanoseconds; a part's share is a ratio in 0..1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cachewright import summary, words
from cachewright.answers import (
    Case,
    ChannelGroup,
    ChannelUse,
    LatencyPoint,
    ResponseTimes,
    RunAnswer,
    TenantTiming,
    Timing,
)
from cachewright.documents import values

# Response times, by requests of all kinds.
Times = ResponseTimes | TenantTiming | LatencyPoint
PERCENTILES: tuple[tuple[str, Callable[[Times], float]], ...] = (
    ("mean", lambda line: line.mean_ns),
    ("p50", lambda line: line.p50_ns),
    ("p90", lambda line: line.p90_ns),
    ("p99", lambda line: line.p99_ns),
    ("p99.9", lambda line: line.p999_ns),
    ("max", lambda line: line.max_ns),
)

# Reads and writes apart: how many, and a time; those that a case does not have are left out.
BY_KIND: tuple[tuple[str, Callable[[Times], int], Callable[[Times], float]], ...] = (
    ("read mean", lambda line: line.reads, lambda line: line.read_mean_ns),
    ("read p99", lambda line: line.reads, lambda line: line.read_p99_ns),
    ("write mean", lambda line: line.writes, lambda line: line.write_mean_ns),
    ("write p99", lambda line: line.writes, lambda line: line.write_p99_ns),
)
ALL = "all"


class GroupUse(NamedTuple):
    """A group of channels, its channels and tenants in words, and means of use over channels."""

    group: ChannelGroup
    label: str
    owners: str
    busy: float
    dies_working: float
    dies_cleaning: float


@dataclass(frozen=True, kw_only=True)
class AllTenants(ResponseTimes):
    """Response times of all tenants together, as those of one that is called `all`."""

    name: str = ALL
    slowdown: None = None


Line = TenantTiming | AllTenants


def of(case: Case) -> Timing:
    """Return the times of a case on devices. Errors: `ValueError` for another case."""
    if case.timing is None:
        raise ValueError(f"case {case.case}: found no times, expected a case on devices")
    return case.timing


def all_together(found: Timing) -> AllTenants:
    """Return the times of all tenants together as a line of theirs."""
    return AllTenants(**values(found.total))


def percentiles(line: Times) -> dict[str, float]:
    """Return the mean and the percentiles by their keys in the result."""
    return {
        "mean_ns": line.mean_ns,
        "p50_ns": line.p50_ns,
        "p90_ns": line.p90_ns,
        "p99_ns": line.p99_ns,
        "p999_ns": line.p999_ns,
        "max_ns": line.max_ns,
    }


def lines(case: Case) -> list[Line]:
    """Return the figures of every tenant, and of all together when there are several."""
    found = of(case)
    return [*found.tenants, all_together(found)] if len(found.tenants) > 1 else [*found.tenants]


def parts(found: Iterable[Times]) -> list[str]:
    """Return the parts that any of the lines spent time in, in the order they are given."""
    names: dict[str, None] = {}
    for line in found:
        names.update(dict.fromkeys(line.breakdown_ns))
    order = ("cache", "backing")
    place = {name: index for index, name in enumerate(names)}
    return sorted(names, key=lambda name: (_side(name, order), place[name]))


def _side(name: str, order: Sequence[str]) -> int:
    first = name.split(" ", 1)[0]
    return order.index(first) if first in order else len(order)


def share(line: Times, part: str) -> float:
    """Return the part's share of the line's mean response."""
    return line.breakdown_ns.get(part, 0.0) / line.mean_ns if line.mean_ns else 0.0


def by_kind(found: Sequence[Times]) -> list[tuple[str, list[float | None]]]:
    """Return a header and a value per line for reads and writes apart, in nanoseconds.

    A kind that no line has is left out; a line without it has None.
    """
    columns = [
        (header, [time(line) if count(line) else None for line in found])
        for header, count, time in BY_KIND
    ]
    return [(header, values) for header, values in columns if any(v is not None for v in values)]


def flat(line: Line) -> dict[str, Any]:
    """Return a line without its name, each part of its mean response as a number of its own."""
    parts = {f"{part} (ns)": value for part, value in line.breakdown_ns.items()}
    rest = {k: v for k, v in values(line).items() if k not in ("name", "breakdown_ns")}
    return rest | parts


def slowdown(line: Line) -> str:
    """Return how many times longer the line waits than alone, in words."""
    found = line.slowdown
    return words.NOTHING if found is None else words.significant(found)


def store(found: Timing) -> list[tuple[str, str]]:
    """Return what a log-structured store did, in words by name; empty without one."""
    did = found.store
    if did is None:
        return []
    size = words.size(did.logical_pages * did.page_bytes)
    log = f"{size}, {words.percent(did.op)} over-provisioning, "
    log += f"{did.separation}, {did.reclaim}"
    text = f"write amplification {words.ratio(did.write_amplification)} in "
    text += f"{words.significant(did.drive_writes)} drive writes, "
    text += f"{words.counted(did.collections, 'segment')} cleaned"
    appends = f"{words.count(did.appends)} of {words.size(did.mean_append_bytes)}, "
    appends += f"{words.counted(did.held_pages, 'page')} waited for a segment"
    return [("log", log), ("cleaning", text), ("appends", appends)]


def fastest(answer: RunAnswer) -> Case | None:
    """Return the choice with the lowest mean response; None without devices."""
    found = [case for case in answer.cases if case.timing and not summary.is_bound(case)]
    return min(found, key=lambda case: (of(case).total.mean_ns, case.case), default=None)


def channel_groups(found: Timing) -> list[GroupUse]:
    """Return a drive's groups of channels: the host's bytes, and means of use over channels."""
    if found.channels is None:
        return []
    each = {one.channel: one for one in found.channels.each}
    return [
        _group(group, [each[channel] for channel in group.channels])
        for group in found.channels.groups
    ]


def _group(group: ChannelGroup, own: Sequence[ChannelUse]) -> GroupUse:
    count = max(len(own), 1)
    return GroupUse(
        group,
        label=", ".join(str(channel) for channel in group.channels),
        owners=holders(group),
        busy=sum(one.busy for one in own) / count,
        dies_working=sum(one.dies_working for one in own) / count,
        dies_cleaning=sum(one.dies_cleaning for one in own) / count,
    )


def holders(group: ChannelGroup) -> str:
    """Return whose blocks a group of channels holds, and whether it is lent to them."""
    names = ", ".join(group.tenants) or words.NOTHING
    return f"{names} (lent)" if group.lent else names
