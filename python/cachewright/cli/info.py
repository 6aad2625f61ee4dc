"""What `trace info` shows: facts, small plots, one row per volume.

For: reading a trace's character at a glance. Must never know: how it was counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright import words
from cachewright.answers import TraceInfo, VolumeInfo
from cachewright.cli import output
from cachewright.tables import Column, Table, spark
from cachewright.tables.workload import blocks, whole_periods

VOLUMES = 20


def show(found: TraceInfo) -> None:
    """Print a trace's description."""
    output.facts([("trace", found.path), ("format", found.format), *_facts(found)])
    _skipped(found)
    _notes(found)
    output.say()
    _plots(found)
    if len(found.volumes) > 1:
        _volumes(found.volumes)


def _facts(found: TraceInfo) -> list[tuple[str, str]]:
    sizes = found.request_bytes
    counts = (
        (found.reads, "reads"),
        (found.writes, "writes"),
        (found.trims, "trims"),
        (found.flushes, "flushes"),
    )
    kinds = [f"{words.count(count)} {kind}" for count, kind in counts if count]
    units = f"blocks of {words.size(found.block_bytes)}"
    if found.counts_objects:
        units = "objects"
    written = words.size(found.written_working_set_bytes)
    return [
        ("requests", f"{words.count(found.requests)} ({', '.join(kinds)})"),
        ("read share", words.percent(found.read_share)),
        ("bytes", f"{words.size(found.read_bytes)} read, {words.size(found.write_bytes)} written"),
        (
            "request size",
            f"mean {words.size(round(sizes.mean))}, median {words.size(sizes.p50)}, "
            f"p99 {words.size(sizes.p99)}, largest {words.size(sizes.max)}",
        ),
        *_times(found),
        (
            "working set",
            f"{words.size(found.working_set_bytes)} ({words.count(found.distinct_blocks)} "
            f"{units}), {written} of it written",
        ),
        (
            "block re-use",
            f"{words.count(found.reuse.accesses)} block accesses, "
            f"{words.count(found.reuse.compulsory)} of them compulsory (the first of a block)",
        ),
    ]


def _rate(per_second: float | None) -> str:
    return words.NOTHING if per_second is None else words.significant(per_second)


def _times(found: TraceInfo) -> list[tuple[str, str]]:
    if found.span_ns is None:
        return [("span", "no times")]
    rate = f"{_rate(found.rate_per_s)} requests/s"
    return [("span", words.duration(found.span_ns)), ("rate", rate)]


def _skipped(found: TraceInfo) -> None:
    if found.out_of_order:
        late = words.counted(found.out_of_order, "request")
        output.note(f"times run backwards: {late} earlier than one before")
    if found.skipped_irrelevant:
        records = words.counted(found.skipped_irrelevant, "record")
        output.note(f"{records} skipped, no request in it")
    if found.skipped_bad:
        output.note(f"{words.counted(found.skipped_bad, 'malformed record')} skipped")
        for example in found.skipped_examples:
            output.note(f"  {example}")


def _notes(found: TraceInfo) -> None:
    for sentence in found.notes:
        output.note(sentence)


def _plots(found: TraceInfo) -> None:
    rate = [float(requests) for _, requests, _ in found.rate]
    starts = [start for start, *_ in found.rate]
    if len(starts) > 1:
        rate = rate[: whole_periods(starts, starts[1] - starts[0], found.span_ns)]
    if rate:
        span = words.duration(found.span_ns)
        output.say(f"requests over time   {spark(rate)}  0 to {span}")
    sizes = found.request_bytes.histogram
    if sizes:
        low, high = words.size(sizes[0][0]), words.size(sizes[-1][0])
        output.say(f"request sizes        {spark([s[1] for s in sizes])}  {low} to {high}")
    distances = found.reuse.histogram
    if distances:
        low, high = (blocks(found, row[0]) for row in (distances[0], distances[-1]))
        output.say(f"re-use distances     {spark([d[1] for d in distances])}  {low} to {high}")
    curve = _at_powers(found.reuse.lru_miss_ratio)
    if curve:
        low, high = (blocks(found, point[0]) for point in (curve[0], curve[-1]))
        first, last = (words.ratio(point[1]) for point in (curve[0], curve[-1]))
        drawn = spark([point[1] for point in curve])
        output.say(f"lru miss ratio       {drawn}  {first} at {low} to {last} at {high}")
    output.say()


def _at_powers(curve: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the curve at powers of two up to its end, one point per character of the plot."""
    if not curve:
        return []
    sizes = [1 << k for k in range(int(curve[-1][0]).bit_length() + 1)]
    steps = [max((p for p in curve if p[0] <= size), key=lambda p: p[0]) for size in sizes]
    return [(size, float(point[1])) for size, point in zip(sizes, steps, strict=True)]


def _volumes(volumes: Sequence[VolumeInfo]) -> None:
    table: Table[VolumeInfo] = Table(
        "volumes",
        [
            Column("volume", lambda volume: volume.name),
            Column("requests", lambda volume: volume.requests, words.count),
            Column("read share", lambda volume: volume.read_share, words.percent),
            Column("read", lambda volume: volume.read_bytes, words.size),
            Column("written", lambda volume: volume.write_bytes, words.size),
            Column("working set", lambda volume: volume.working_set_bytes, words.size),
            Column("requests/s", lambda volume: volume.rate_per_s, words.significant),
        ],
        sorted(volumes, key=lambda volume: -volume.requests),
        shown=VOLUMES,
    )
    output.show(table)
    if table.left_out:
        output.say(f"{words.count(table.left_out)} smaller volumes; --json has all")
