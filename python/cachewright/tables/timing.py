"""What a replay on devices gave: response times, where time went, drives, energy.

Units: nanoseconds, bytes and joules; a share is a ratio in 0..1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cachewright import tables, words
from cachewright.answers import (
    BusyShares,
    CachedDrive,
    Case,
    ChannelGroup,
    ChannelUse,
    Device,
    DeviceEnergy,
    Dies,
    Flash,
    LatencyCurve,
    LatencyPoint,
    ResponseTimes,
    TenantTiming,
    Timing,
    Wear,
)
from cachewright.documents import values
from cachewright.tables import Column, Table

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
DAYS_PER_YEAR = 365.25
NS_PER_DAY = 86_400e9
MOST_DAYS = 1_000_000

Fact = tuple[str, str]
# A drive behind a cache, or one with a data cache that is the whole machine.
Drive = Flash | CachedDrive


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


def flat(line: Line) -> dict[str, Any]:
    """Return a line without its name, each part of its mean response as a number of its own."""
    parts = {f"{part} (ns)": value for part, value in line.breakdown_ns.items()}
    rest = {k: v for k, v in values(line).items() if k not in ("name", "breakdown_ns")}
    return rest | parts


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


def responses(case: Case) -> Table[Line]:
    """Return how long each tenant's requests took."""
    rows = lines(case)
    columns: list[Column[Line]] = [
        Column("tenant", lambda line: line.name),
        Column("requests", lambda line: line.requests, words.count),
    ]
    columns += [Column(heading, time, words.duration) for heading, time in PERCENTILES]
    columns += kinds(rows)
    columns.append(Column("per second", lambda line: line.throughput_per_s, words.short))
    if any(line.slowdown is not None for line in rows):
        columns.append(Column("slowdown", lambda line: line.slowdown, words.significant))
    return Table("response times", columns, rows)


def kinds(found: Sequence[Times]) -> list[Column[Any]]:
    """Return columns of reads and writes apart; a kind that no line has is left out."""
    return [
        Column(heading, _of_kind(count, time), words.duration)
        for heading, count, time in BY_KIND
        if any(count(line) for line in found)
    ]


def _of_kind(
    count: Callable[[Times], int], time: Callable[[Times], float]
) -> Callable[[Times], float | None]:
    return lambda line: time(line) if count(line) else None


def shares(case: Case) -> Table[str]:
    """Return the share that each part has of the tenants' mean responses."""
    found = lines(case)
    columns: list[Column[str]] = [Column("where time went", lambda part: part)]
    columns += [Column(line.name, _share_of(line), words.percent) for line in found]
    return Table("share of the mean response", columns, parts(found))


def _share_of(line: Times) -> Callable[[str], float | None]:
    return lambda part: share(line, part) or None


def devices(found: Timing) -> Table[Device]:
    """Return how the devices of a replay were used."""
    return Table(
        "devices",
        [
            Column("device", lambda device: device.name),
            Column("model", lambda device: device.model),
            Column("reads", lambda device: device.reads, words.count),
            Column("writes", lambda device: device.writes, words.count),
            Column("read", lambda device: device.read_bytes, words.size),
            Column("written", lambda device: device.write_bytes, words.size),
            Column("busy", lambda device: device.busy, words.percent),
            Column("mean inside", lambda device: device.mean_inside, words.significant),
        ],
        found.devices,
    )


def channels(found: Timing) -> Table[GroupUse] | None:
    """Return the map of a drive's channels; None where it shows no more than one group of them."""
    groups = channel_groups(found)
    if found.channels is None or len(groups) < 2:
        return None
    return Table(
        f"channels ({found.channels.layout})",
        [
            Column("channels", lambda group: group.label),
            Column("tenants", lambda group: group.owners),
            Column("read", lambda group: group.group.read_bytes, words.size),
            Column("written", lambda group: group.group.write_bytes, words.size),
            Column("per second", lambda group: group.group.bytes_per_s, words.size),
            Column("busy", lambda group: group.busy, words.percent),
            Column("dies at work", lambda group: group.dies_working, words.percent),
            Column("cleaning", lambda group: group.dies_cleaning, words.percent),
        ],
        groups,
    )


def energy(case: Case) -> Table[tuple[str, DeviceEnergy]] | None:
    """Return what each device spent, and on what; None where no device's power is known."""
    rows = [(one.name, one.energy) for one in of(case).devices if one.energy]
    if not rows:
        return None
    return Table(
        "energy",
        [
            Column("device", lambda row: row[0]),
            Column("where it went", lambda row: _spent_on(row[1])),
            Column("energy", lambda row: row[1].joules, _joules),
            Column("power", lambda row: row[1].watts, lambda watts: quantity(watts, "W")),
            Column("per command", lambda row: row[1].joules_per_request, _joules),
            Column("per GiB", lambda row: row[1].joules_per_gib, _joules),
        ],
        rows,
    )


def _spent_on(found: DeviceEnergy) -> str:
    whole = found.joules or 1.0
    return ", ".join(f"{name} {words.percent(part / whole)}" for name, part in found.parts.items())


def _joules(joules: float) -> str:
    return quantity(joules, "J")


def by_size(found: LatencyCurve, block_bytes: int) -> Table[LatencyPoint]:
    """Return one tenant's response times by cache size."""
    longest = max((point.mean_ns for point in found.points), default=0) or 1
    columns: list[Column[LatencyPoint]] = [
        Column("size", lambda point: point.size_blocks * block_bytes, words.size),
        Column("hit ratio", lambda point: point.hit_ratio, words.ratio),
    ]
    columns += [Column(heading, time, words.duration) for heading, time in PERCENTILES]
    columns.append(Column("", lambda point: tables.bar(point.mean_ns / longest), plot=True))
    title = f"{found.tenant}: {found.policy}, response time by cache size"
    return Table(title, columns, found.points)


def facts(found: Timing) -> list[Fact]:
    """Return what is worth saying of a whole replay, a name and a value each."""
    little = found.little
    pairs = [
        ("mean inside", f"{words.significant(little.mean_inside)} requests (Little's law)"),
        ("arrivals", f"{words.short(little.arrivals_per_s)} per second"),
        ("done after", words.duration(found.end_ns)),
        ("volumes", found.layout),
    ]
    used = found.channels.space_utilisation if found.channels else None
    if used is not None:
        pairs.append(("space used", f"{words.percent(used)} of what tenants are allocated"))
    if found.read_ahead_blocks:
        pairs.append(("read ahead", words.counted(found.read_ahead_blocks, "block")))
    if found.cleaned_blocks:
        pairs.append(("cleaned", words.counted(found.cleaned_blocks, "block")))
    pairs += store(found)
    pairs += head_times(found)
    pairs += energy_fact(found)
    fairness = found.fairness
    if fairness:
        text = f"Jain {words.ratio(fairness.jain)}, "
        text += f"min over max {words.ratio(fairness.min_over_max)}, "
        text += f"worst slowdown {words.significant(fairness.max_slowdown)}"
        pairs.append(("fairness", text))
    return pairs


def drives(case: Case) -> list[tuple[str, Drive]]:
    """Return what the flash of each drive of a timed case did, by the name of its device."""
    found = case.timing
    if found is None:
        return []
    if found.drive is not None:
        return [("drive", found.drive)]
    return [(device.name, device.flash) for device in found.devices if device.flash]


def drive_facts(found: Drive) -> list[Fact]:
    """Return what is worth saying of a drive, a name and a value each."""
    filled = f"{words.percent(found.filled_share)} ({found.preconditioned})"
    pairs = [("filled at start", filled), ("flash", _work(found)), ("busy", _busy(found))]
    dies = found.dies
    stages = [(words.percent(share), name) for name, share in dies.stages.items() if share]
    if stages:
        text = ", ".join(f"{name} {share}" for share, name in stages)
        cleaning = f"; {words.percent(dies.cleaning)} for cleaning" if dies.cleaning else ""
        pairs.append((f"{dies.unit}s spent", text + cleaning))
    pairs += [("commands", text) for text in [_commands(found)] if text]
    pairs += [("waiting", text) for text in [_waiting(found)] if text]
    if found.predictions:
        text = f"{words.counted(found.predictions, 'prediction')}, "
        text += f"{words.count(found.awaited_predictions)} of them waited for, "
        pairs.append(("controller", f"{text}{words.percent(found.predicting)} of the time"))
    return [*pairs, ("wear", _wear(found.wear)), *_life(found.wear)]


def _work(found: Drive) -> str:
    text = f"write amplification {words.significant(found.write_amplification)} in pages, "
    if found.wear.written_bytes:
        in_bytes = found.wear.programmed_bytes / found.wear.written_bytes
        text += f"{words.significant(in_bytes)} NAND bytes per host byte, "
    text += f"{words.counted(found.collections, 'block')} cleaned, "
    text += f"{words.counted(found.map_misses, 'page')} of the map read"
    if isinstance(found, CachedDrive) and found.held_writes:
        text += f", {words.counted(found.held_writes, 'write')} held for lack of room"
    return text


def _busy(found: Drive) -> str:
    unit = found.dies.unit
    parts = [f"channels {_range(found.channels)}", f"{unit}s {_range(found.dies)}"]
    if isinstance(found, CachedDrive):
        link = found.link_busy
        parts.append(f"link {words.percent(link.to_drive)} in, {words.percent(link.to_host)} out")
    return "; ".join(parts)


def _range(shares: BusyShares | Dies) -> str:
    low, mean, high = map(words.percent, (shares.min, shares.mean, shares.max))
    return f"{mean} ({low} to {high})"


def _commands(found: Drive) -> str:
    planes = found.multi_plane_reads + found.multi_plane_programs + found.multi_plane_erases
    counts = (
        ("of several planes", planes),
        ("suspended", found.suspends),
        ("copied within a plane", found.copy_backs),
    )
    return ", ".join(f"{words.count(number)} {name}" for name, number in counts if number)


def _waiting(found: Drive) -> str:
    queues = found.queues.items()
    longest = sorted(queues, key=lambda item: -item[1].mean_waiting)[:3]
    return ", ".join(
        f"{name} {words.significant(queue.mean_waiting)} "
        f"(most {words.count(queue.max_waiting)}, {words.duration(queue.mean_wait_ns)} each)"
        for name, queue in longest
        if queue.mean_waiting
    )


def _wear(wear: Wear) -> str:
    text = f"{words.significant(wear.mean)} erases per block ({words.count(wear.min)} to "
    text += f"{words.count(wear.max)}, standard deviation {words.significant(wear.stddev)}), "
    text += f"{words.size(wear.written_bytes)} written by the host, "
    text += f"{words.size(wear.programmed_bytes)} programmed"
    if wear.levelling_moves:
        text += f", {words.counted(wear.levelling_moves, 'block')} emptied to level it"
    return text


def _life(wear: Wear) -> list[Fact]:
    rated = wear.rated
    if rated is None or rated.life_days is None:
        return []
    rate = words.significant(wear.drive_writes_per_day)
    text = f"{life(rated.life_days)} at this rate ({rate} drive writes per day), "
    text += f"{words.size(rated.life_bytes)} by the host in all; "
    text += f"{words.percent(rated.max_used_share)} of {words.count(rated.cycles)} cycles "
    return [("life", text + "used by the most worn block")]


def life(days: float) -> str:
    """Return a life in years, days or less; beyond all sense as a bound."""
    if days > MOST_DAYS:
        return f"more than {words.count(MOST_DAYS)} days"
    if days >= 2 * DAYS_PER_YEAR:
        return f"{words.significant(days / DAYS_PER_YEAR)} years"
    return f"{words.significant(days)} days" if days >= 2 else words.duration(days * NS_PER_DAY)


def head_times(found: Timing) -> list[Fact]:
    """Return how long requests keep the heads of each disk, and in its busiest interval."""
    disks = [(one.name, one.head_time) for one in found.devices if one.head_time]
    texts = [
        f"{name} {words.duration(time.total_ns)}, in the busiest "
        f"{words.duration(time.interval_ns)} {words.duration(time.peak_ns)} "
        f"({words.significant(time.peak_disks)} disks)"
        for name, time in disks
    ]
    return [("disk-head time", "; ".join(texts))] if texts else []


def energy_fact(found: Timing) -> list[Fact]:
    """Return what all devices of a replay spent together, if it is known of any."""
    energy = found.energy
    if energy is None:
        return []
    text = f"{quantity(energy.joules, 'J')}, {quantity(energy.watts, 'W')} on average, "
    text += f"{quantity(energy.joules_per_request, 'J')} per request, "
    text += f"{quantity(energy.joules_per_gib, 'J')} per GiB"
    unknown = energy.unknown_devices
    if unknown:
        text += f"; without {words.counted(unknown, 'device')} whose power is not given"
    return [("energy", text)]


def quantity(value: float | None, unit: str) -> str:
    """Return a quantity with the prefix that keeps it at or above one: `2.5mJ`."""
    if value is None:
        return words.NOTHING
    if value == 0:
        return f"0{unit}"
    for scale, prefix in ((1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u")):
        if value >= scale * words.ROUNDS_UP:
            return f"{words.significant(value / scale)}{prefix}{unit}"
    return f"{words.significant(value * 1e9)}n{unit}"
