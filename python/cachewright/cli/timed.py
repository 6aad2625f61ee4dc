"""The tables of response times: percentiles, where time went, devices, curves over cache size.

For: `run`, `compare` and `mrc` on stacks with devices. Must never know: how times are made. Units:
nanoseconds come in, durations go out.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright import drives, summary, timing, words
from cachewright.answers import Case, Device, LatencyCurve, RunAnswer, Timing
from cachewright.cli import output
from cachewright.cli.tables import Column, table


def show(case: Case) -> None:
    """Print what a case's tenants waited, for what, and how its devices were used."""
    found = timing.of(case)
    lines = timing.lines(case)
    names = Column("tenant", [line.name for line in lines], numeric=False)
    columns = [names, Column("requests", [words.count(line.requests) for line in lines])]
    for header, of in timing.PERCENTILES:
        columns.append(Column(header, [words.duration(of(line)) for line in lines]))
    for header, values in timing.by_kind(lines):
        columns.append(Column(header, [words.duration(value) for value in values]))
    columns.append(Column("per second", [words.short(line.throughput_per_s) for line in lines]))
    if found.fairness:
        columns.append(Column("slowdown", [timing.slowdown(line) for line in lines]))
    table("response times", columns)
    parts = timing.parts(lines)
    shares = [[timing.share(line, part) for line in lines] for part in parts]
    cells = [Column("where time went", parts, numeric=False)]
    for index, line in enumerate(lines):
        column = [words.percent(row[index]) if row[index] else words.NOTHING for row in shares]
        cells.append(Column(line.name, column))
    table("share of the mean response", cells)
    _devices(found.devices)
    _channels(found)
    _energy(case)
    for device, drive in drives.drives(case):
        _flash(device, drive)
    _facts(found)


def _energy(case: Case) -> None:
    rows = drives.energy_rows(case)
    if rows:
        columns = [
            Column(header, [row[index] for row in rows], numeric=index > 1)
            for index, header in enumerate(drives.ENERGY_HEADERS)
        ]
        table("energy", columns)


def _flash(device: str, drive: drives.Drive) -> None:
    facts = drives.facts(drive)
    names = Column(f"flash: {device}", [name for name, _ in facts], numeric=False)
    table("", [names, Column("", [text for _, text in facts], numeric=False)])


def _devices(devices: Sequence[Device]) -> None:
    table(
        "devices",
        [
            Column("device", [device.name for device in devices], numeric=False),
            Column("model", [str(device.model) for device in devices], numeric=False),
            Column("reads", [words.count(device.reads) for device in devices]),
            Column("writes", [words.count(device.writes) for device in devices]),
            Column("read", [words.size(device.read_bytes) for device in devices]),
            Column("written", [words.size(device.write_bytes) for device in devices]),
            Column("busy", [words.percent(device.busy) for device in devices]),
            Column("mean inside", [words.significant(d.mean_inside) for d in devices]),
        ],
    )


def _channels(found: Timing) -> None:
    """Print the map of a drive's channels, when it shows more than one group of them."""
    groups = timing.channel_groups(found)
    if found.channels is None or len(groups) < 2:
        return
    table(
        f"channels ({found.channels.layout})",
        [
            Column("channels", [group.label for group in groups], numeric=False),
            Column("tenants", [group.owners for group in groups], numeric=False),
            Column("read", [words.size(group.group.read_bytes) for group in groups]),
            Column("written", [words.size(group.group.write_bytes) for group in groups]),
            Column("per second", [words.size(group.group.bytes_per_s) for group in groups]),
            Column("busy", [words.percent(group.busy) for group in groups]),
            Column("dies at work", [words.percent(group.dies_working) for group in groups]),
            Column("cleaning", [words.percent(group.dies_cleaning) for group in groups]),
        ],
    )


def _facts(found: Timing) -> None:
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
    pairs += timing.store(found)
    pairs += drives.energy_fact(found)
    fairness = found.fairness
    if fairness:
        text = f"Jain {words.ratio(fairness.jain)}, "
        text += f"min over max {words.ratio(fairness.min_over_max)}, "
        text += f"worst slowdown {words.significant(fairness.max_slowdown)}"
        pairs.append(("fairness", text))
    output.facts(pairs)


def conclusion(answer: RunAnswer) -> str:
    """Return which choice answers fastest; nothing without devices or a choice."""
    best = timing.fastest(answer)
    if best is None or len(answer.cases) < 2:
        return ""
    total = timing.of(best).total
    line = f"fastest: {summary.label(best, answer.varied)}: "
    line += f"mean response {words.duration(total.mean_ns)}, p99 {words.duration(total.p99_ns)}"
    return f"{line}, hit ratio {words.ratio(summary.hit_ratio(best))}"


def curve(found: LatencyCurve, block: int) -> None:
    """Print one tenant's response times by cache size."""
    from cachewright.cli import plots

    points = found.points
    longest = max((point.mean_ns for point in points), default=0) or 1
    table(
        f"{found.tenant}: {found.policy}, response time by cache size",
        [
            Column("size", [words.size(p.size_blocks * block) for p in points]),
            Column("hit ratio", [words.ratio(p.hit_ratio) for p in points]),
            *(
                Column(name, [words.duration(of(p)) for p in points])
                for name, of in timing.PERCENTILES
            ),
            Column("", [plots.bar(p.mean_ns / longest) for p in points], numeric=False),
        ],
    )
