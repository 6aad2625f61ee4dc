"""What a reproduced paper on tenants kept apart shows: tables and charts.

For: `cachewright_lab.report.reproduced`. Must never know: how numbers were measured, HTML. Units:
MB/s are millions of bytes; means are over seeds, ± is the standard deviation of a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cachewright import _native, words
from cachewright.answers import RegionWindow, TenantThroughput, TenantTiming
from cachewright.report import charts
from cachewright.report.figure import Figure
from cachewright.report.figures import series_rows
from cachewright.report.parts import Table, plain
from cachewright.summary import best_index
from cachewright.timing import holders
from cachewright_lab.report import grouped, isolation_charts
from cachewright_lab.report.reproduced_isolation_measures import (
    BANDWIDTH,
    HARMONIC,
    ISOLATION,
    MB,
    SPACE,
    STEADINESS,
    THROUGHPUT,
    values_of,
)
from cachewright_lab.reproduce.isolation import Asked, Isolation
from cachewright_lab.reproduce.isolation_measures import Outcome, deviation, mean
from cachewright_lab.reproduce.isolation_specs import IsolationSpec

# Where blocks lie: the name of the region, and the blocks of each tenant there.
REGIONS: tuple[tuple[str, Callable[[RegionWindow], Sequence[int]]], ...] = (
    ("bucket", lambda window: window.own_blocks),
    ("pool", lambda window: window.common_blocks),
)
NS_PER_S = 1e9
# The layouts that others are compared with, the paper's and ours, and the one with common channels.
OWN, SHARED = "oc-cache", "shared-cache"
COMPARED = (OWN, "oc-cache-x")
BASES = (SHARED, "flashblox")
BESIDE = (ISOLATION, HARMONIC, SPACE, BANDWIDTH)
QUANTILES: tuple[tuple[str, Callable[[TenantTiming], float]], ...] = (
    ("p50", lambda one: one.p50_ns),
    ("p99", lambda one: one.p99_ns),
    ("p99.9", lambda one: one.p999_ns),
)
# Of which the best row is marked, and what changes with a choice.
MARKED = (ISOLATION, STEADINESS, HARMONIC, SPACE, BANDWIDTH)
CHANGED = (STEADINESS, HARMONIC, THROUGHPUT, SPACE)


def notes(what: Isolation) -> list[str]:
    """Return what to know before the numbers."""
    found = [
        "Isolation is C_v by that of flashblox on the same seed. C_v is the sum over all tenants, "
        "noisy ones too, of the mean of throughput by its standard deviation. Throughput is that "
        "of windows after the warm-up, a deviation at least one request per window. The harmonic "
        "mean is that of the same quotients. Space is what the hulls say that tenants require, by "
        "what is allocated. Allocated are whole channels, or the cache's capacity where all share "
        "all channels. Channels lent to the pool do not count."
    ]
    if what.peak is not None:
        read, write = what.peak.read / MB, what.peak.write / MB
        found.append(
            f"The drive alone reads {read:.0f} MB/s and writes {write:.0f} MB/s in steady state, "
            "blocks of 4 KiB at random."
        )
    return found


def shared(what: Isolation) -> list[Table]:
    """Return no table: every figure has its own."""
    return []


def shown(what: Isolation, figure: IsolationSpec) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    if figure.shows == "choices":
        return [_choices(what, figure)]
    found: list[Table | Figure] = [_measures(what, figure)]
    if figure.shows != "isolation":
        found.append(_swept(what, figure))
        return found
    found += [
        _bars(what, figure),
        _beside(what, figure),
        _requirements(what, figure),
        _tenants(what, figure),
        _throughput(what, figure),
        _occupancy(what, figure),
        *_rooms(what, figure),
        _map(what, figure),
    ]
    return found


def _beside(what: Isolation, figure: IsolationSpec) -> Table:
    """Return the measures of the paper's layout and ours as quotients by every other layout."""
    rows = {layout.title: (point, layout) for point, layout in figure.rows()}
    known = {title: values_of(what, figure, row) for title, row in rows.items()}
    cells = []
    for own in (title for title in COMPARED if title in rows):
        texts = [own]
        for measure in BESIDE:
            for other in BASES:
                base = measure.mean(known[other]) if other in known else 0.0
                texts.append(words.times(measure.mean(known[own]), base))
        cells.append(texts)
    headers = ["", *(f"{one.title} by {other}" for one in BESIDE for other in BASES)]
    return plain(figure.heading, "beside the other layouts: quotients", headers, cells, 1, "beside")


def _measures(what: Isolation, figure: IsolationSpec) -> Table:
    headers = ["", *(one.title for one in MARKED)]
    headers += ["MB/s", "hit ratio", "channels", "swaps"]
    rows, compared = [], []
    for point, layout in figure.rows():
        values = values_of(what, figure, (point, layout))
        texts = [_spread(one.of(values)) for one in (ISOLATION, STEADINESS, HARMONIC)]
        texts += [words.percent(one.mean(values)) for one in (SPACE, BANDWIDTH)]
        texts += [words.fixed(THROUGHPUT.mean(values), 1), words.ratio(mean(values.hit_ratio))]
        texts.append(words.fixed(mean(values.channels), 0))
        swaps = [one.swaps for one in what.found(figure, point, layout)]
        known = [float(one) for one in swaps if one is not None]
        texts.append(words.count(mean(known)) if known else words.NOTHING)
        title = figure.title_of(point, layout)
        if figure.of is None and point.title:
            title = f"{point.title}, {layout.title}"
        rows.append([title, *texts])
        compared.append([one.mean(values) for one in MARKED])
    best = [
        set(),
        *(best_index(list(column), highest=True) for column in zip(*compared, strict=True)),
    ]
    single = len(figure.points) == 1
    marked = [*best, set(), set(), set(), set()] if single else [set() for _ in headers]
    seeds = words.counted(figure.seeds, "seed")
    return Table(figure.heading, f"means of {seeds}", headers, rows, marked)


def _bars(what: Isolation, figure: IsolationSpec) -> Figure:
    """Return the three measures of each layout as the paper draws them."""
    rows = []
    for point, layout in figure.rows():
        values = values_of(what, figure, (point, layout))
        for measure in BESIDE:
            row = {"measure": measure.title, "layout": layout.title}
            rows.append({**row, "value": measure.mean(values)})
    chart = grouped.bars(rows, "measure", "layout", "by that of flashblox; shares")
    caption = "Isolation is beside flashblox; space and bandwidth are shares that are used."
    return Figure(f"{figure.name}-measures", f"{figure.title}: measures", caption, chart)


def _spread(values: Sequence[float]) -> str:
    spread = f" ± {deviation(values):.2f}" if len(values) > 1 else ""
    return words.Number(f"{mean(values):.2f}{spread}", mean(values))


def _tenants(what: Isolation, figure: IsolationSpec) -> Table:
    """Return what each tenant gets under each layout, with the noisy ones and without."""
    headers = ["tenant", "layout", "MB/s", "mean by deviation", "deviation by mean"]
    headers += ["hit ratio"]
    headers += [name for name, _ in QUANTILES]
    headers += ["p99, noisy ones silent", "p99 alone", "p99 by that with silent ones"]
    alone = _alone(what, figure)
    rows = []
    for place, told in enumerate(figure.tenants):
        loud = told.noisy
        for point, layout in figure.rows():
            outcomes = what.found(figure, point, layout)
            quiet = what.found(figure, point, layout, quiet=True)
            name = outcomes[0].responses[place].name + (" (noisy)" if loud else "")
            texts = [name, layout.title]
            answered = _windows(outcomes, place, lambda one: one.bytes_per_s_mean)
            texts.append(words.fixed(answered / MB, 2))
            steady = _windows(outcomes, place, lambda one: one.bytes_mean_over_sd)
            texts.append(words.fixed(steady, 2))
            varies = _windows(outcomes, place, lambda one: one.bytes_sd_over_mean)
            texts.append(words.significant(varies))
            hits = [one.case.tenants[place].hit_ratio for one in outcomes]
            texts.append(words.ratio(mean(hits)))
            texts += [words.duration(_responses(outcomes, place, of)) for _, of in QUANTILES]
            texts.append(words.NOTHING if loud else words.duration(_p99(quiet, place)))
            texts.append(words.duration(alone[place]) if alone[place] else words.NOTHING)
            texts.append(words.NOTHING if loud else _disturbed(outcomes, quiet, place))
            rows.append(texts)
    return plain(figure.heading, "tenants", headers, rows, 2, "tenants")


def _disturbed(loud: Sequence[Outcome], quiet: Sequence[Outcome], place: int) -> str:
    """Return how many times longer a tenant's p99 is with the noisy ones (first seed)."""
    with_noise, without = (one[0].responses[place].p99_ns for one in (loud, quiet))
    return words.times(with_noise, without or 0.0)


def _requirements(what: Isolation, figure: IsolationSpec) -> Table:
    """Return what the hulls say that each tenant requires, of the first seed."""
    rows = []
    for point, layout in figure.rows():
        outcome = what.found(figure, point, layout)[0]
        if layout.title != OWN or outcome.required is None:
            continue
        group = outcome.groups[0]
        channel = group.capacity_bytes // len(group.channels)
        for one in outcome.case.tenants:
            size = (one.required_blocks or 0) * outcome.case.block_bytes
            rows.append(
                [
                    one.name,
                    words.size(size),
                    words.fixed(size / channel, 2),
                    words.fixed(one.required_miss_ratio, 2),
                ]
            )
    headers = ["tenant", "S_r", "S_r by a channel", "R_e"]
    return plain(figure.heading, "what tenants require", headers, rows, 1, "requirements")


def _responses(
    outcomes: Sequence[Outcome], place: int, of: Callable[[TenantTiming], float]
) -> float:
    """Return the mean over seeds of a number of a tenant's responses."""
    return mean([float(of(one.responses[place])) for one in outcomes])


def _p99(outcomes: Sequence[Outcome], place: int) -> float:
    return _responses(outcomes, place, lambda one: one.p99_ns)


def _windows(
    outcomes: Sequence[Outcome], place: int, of: Callable[[TenantThroughput], float | None]
) -> float:
    """Return the mean over seeds of a number of a tenant's throughput; 0 where it has none."""
    return mean([float(of(one.windows[place]) or 0.0) for one in outcomes])


def _alone(what: Isolation, figure: IsolationSpec) -> list[float]:
    """Return each tenant's p99 with the whole cache to itself; 0 where it sent nothing."""
    point, layout = figure.rows()[0]
    first = what.found(figure, point, layout, quiet=True)[0]
    return [float(one.alone_p99_ns or 0.0) for one in first.responses]


def _throughput(what: Isolation, figure: IsolationSpec) -> Figure:
    warmup_ns = _native.parse_duration(what.common.stack["replay"]["warmup"])
    rows = []
    for point, layout in figure.rows():
        found = what.found(figure, point, layout)[0].throughput_windows
        width_s, first = found.window_ns / NS_PER_S, -(-warmup_ns // found.window_ns)
        for one in found.tenants:
            last = first + one.windows
            for at, (_, count) in enumerate(one.series[first:last]):
                seconds, mb = (at + 1) * width_s, count / width_s / MB
                row = {"layout": layout.title, "tenant": one.name}
                rows.append({**row, "seconds": round(seconds, 6), "mb": mb})
    caption = "Bytes answered per window of the first seed, after the warm-up."
    chart = isolation_charts.throughput(rows)
    title = f"{figure.title}: throughput over time"
    return Figure(f"{figure.name}-throughput", title, caption, chart)


def _occupancy(what: Isolation, figure: IsolationSpec) -> Figure:
    rows: list[dict[str, Any]] = []
    for point, layout in figure.rows():
        result = what.results[Asked(figure.name, point, layout, 1, quiet=False)]
        rows += series_rows(result, {0: layout.title})
    caption = "At the end of each window of the first seed, the warm-up too; dashed is the quota."
    title = f"{figure.title}: cache held over time"
    return Figure(f"{figure.name}-occupancy", title, caption, charts.occupancy(rows))


def _rooms(what: Isolation, figure: IsolationSpec) -> list[Figure]:
    """Return how much of what each tenant holds lies on channels of its own and in the pool."""
    rows = []
    for point, layout in figure.rows():
        outcome = what.found(figure, point, layout)[0]
        block = outcome.case.block_bytes
        names = [one.name for one in outcome.responses]
        for window in outcome.rooms if layout.title == OWN else []:
            for region, held in REGIONS:
                for name, blocks in zip(names, held(window), strict=True):
                    row = {"tenant": name, "region": region, "size_bytes": blocks * block}
                    rows.append({**row, "seconds": window.time_ns / NS_PER_S})
    if not rows:
        return []
    caption = f"At the end of each window under {OWN}, of the first seed, the warm-up too."
    title = f"{figure.title}: buckets and pool over time"
    return [Figure(f"{figure.name}-rooms", title, caption, isolation_charts.regions(rows))]


def _map(what: Isolation, figure: IsolationSpec) -> Table:
    """Return which channels hold whose blocks and what was moved over them, of the first seed."""
    headers = ["layout", "channels", "tenants", "read", "written", "MB/s"]
    rows = []
    for point, layout in figure.rows():
        outcome = what.found(figure, point, layout)[0]
        for held in dict.fromkeys(holders(one) for one in outcome.groups):
            own = [one for one in outcome.groups if holders(one) == held]
            rows.append(
                [
                    layout.title,
                    _channels([number for one in own for number in one.channels]),
                    held,
                    words.size(sum(one.read_bytes for one in own)),
                    words.size(sum(one.write_bytes for one in own)),
                    words.fixed(sum(one.bytes_per_s for one in own) / MB, 1),
                ]
            )
    return plain(figure.heading, "channels, warm-up included", headers, rows, 3, "channels")


def _choices(what: Isolation, figure: IsolationSpec) -> Table:
    """Return what the paper's layout is beside the others under each choice."""
    beside = [one for one in figure.layouts if one.title != OWN]
    own = next(one for one in figure.layouts if one.title == OWN)
    headers = ["choice"]
    for measure in CHANGED:
        headers += [f"{measure.title} by {one.title}'s" for one in beside]
    small = figure.tenants[0].app
    headers += [f"p99 of {small}, {one.title}" for one in figure.layouts]
    rows = []
    for point in figure.points:
        values = {one.title: values_of(what, figure, (point, one)) for one in figure.layouts}
        row = [point.title]
        for measure in CHANGED:
            for one in beside:
                top, base = measure.mean(values[own.title]), measure.mean(values[one.title])
                row.append(words.times(top, base))
        waits = [_p99(what.found(figure, point, one), 0) for one in figure.layouts]
        rows.append([*row, *(words.duration(wait) for wait in waits)])
    told = f"{OWN} by the others; means of {words.counted(figure.seeds, 'seed')}"
    return plain(figure.heading, told, headers, rows, 1)


def _channels(numbers: Sequence[int]) -> str:
    """Return neighbouring numbers as ranges."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{one[0]}-{one[-1]}" if len(one) > 1 else f"{one[0]}" for one in parts)


def _swept(what: Isolation, figure: IsolationSpec) -> Figure:
    rows = []
    for point, layout in figure.rows():
        values = values_of(what, figure, (point, layout))
        for measure in (ISOLATION, SPACE, BANDWIDTH):
            title = point.title if figure.of is None else figure.title_of(point, layout)
            row = {"measure": measure.title, "row": title, "layout": layout.title}
            rows.append({**row, "value": measure.mean(values)})
    caption = "Isolation is beside flashblox; the others are shares."
    chart = isolation_charts.measures(rows, figure.title)
    return Figure(figure.name, figure.title, caption, chart)
