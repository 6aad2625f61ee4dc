"""What a workload is like, in facts and sentences, and the stack that follows from it.

A finding is a sentence with its evidence. It is there only where its numbers make it worth saying.
Units: bytes, nanoseconds, ratios in 0..1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachewright import words
from cachewright.answers import ReachedSize, TraceInfo, WorkloadAnswer
from cachewright.stack import toml_text
from cachewright.tables import Column, Table
from cachewright.tables import conclusion as endings

FILE = "workload.json"
STREAMS = ("-", "/dev/stdin")
NS_PER_S = 1e9
# What a first comparison at the recommended size has beside the default.
POLICIES = "auto,lru,s3-fifo,arc"
# Shares from which a finding is worth a sentence.
WORTH_SAYING = 0.1
FEW_HITS = 0.02
BURST = 3.0
# A share of the blocks that is said by their number.
FEW_BLOCKS = 0.001
# A write-back cache holds dirty blocks about so long; later overwrites save nothing.
DIRTY_NS = 60 * NS_PER_S
HALF = 0.5
# A period of which less than this share is in the trace has no rate of its own.
WHOLE_PERIOD = 0.95
GOOD_FIT = 0.9


@dataclass(frozen=True)
class Finding:
    """A sentence about a workload, and the numbers behind it."""

    sentence: str
    evidence: str


def blocks(found: WorkloadAnswer | TraceInfo, count: float) -> str:
    """Return so many blocks as their size, and objects, which have several sizes, by number."""
    if found.counts_objects:
        return words.counted(round(count), "object")
    return words.size(count * found.block_bytes)


def is_stream(found: WorkloadAnswer) -> bool:
    """Return whether the trace was read from standard input, so that it cannot be read again."""
    return found.path in STREAMS


def facts(found: WorkloadAnswer) -> Table[tuple[str, str]]:
    """Return what the trace holds: a name and a value a row."""
    rows = list(_facts(found))
    return Table("trace", [Column("", lambda row: row[0]), Column("", lambda row: row[1])], rows)


def conclusion(found: WorkloadAnswer) -> str:
    """Return what a cache could do for the workload, in one paragraph."""
    if not found.reuse.accesses:
        return "The trace has no read or write."
    first = found.reuse.first_uses / found.reuse.accesses
    best = 1.0 - found.curve[-1].miss_ratio if found.curve else 0.0
    if best < FEW_HITS:
        return (
            f"No cache helps: {words.percent(first)} of the block accesses are first uses, and the "
            f"largest LRU cache hits {words.percent(best)}."
        )
    size = _size(found)
    parts = [
        f"A cache of {blocks(found, size.blocks)} hits {words.percent(size.hit_ratio)} of the "
        f"block accesses under LRU; no size hits more than {words.percent(best)}"
    ]
    parts.append(f", because {words.percent(first)} are first uses." if first >= FEW_HITS else ".")
    half = next(one for one in found.sizes if one.share == HALF)
    parts.append(f" {blocks(found, half.blocks)} hit {words.percent(half.hit_ratio)}")
    parts.append(f"; the whole working set is {blocks(found, found.distinct_blocks)}.")
    if _absorbs(found) >= WORTH_SAYING:
        parts.append(
            f" Write-back saves {words.percent(_absorbs(found))} of the writes to the volume."
        )
    return "".join(parts)


def follows(found: WorkloadAnswer) -> str:
    """Return the command that follows; nothing where there is no trace to replay."""
    if not found.sizes or is_stream(found):
        return ""
    size = found.block_bytes * _size(found).blocks
    at = ("--policy", POLICIES, "--capacity", words.size_at_least(size))
    return endings.command("compare", found.path, *at)


def findings(found: WorkloadAnswer) -> list[Finding]:
    """Return what is worth saying of the workload, the most useful first."""
    return list(_findings(found))


def whole_periods(starts: Sequence[int], period_ns: int, span_ns: int | None) -> int:
    """Return how many periods have a rate: the trace may end soon after the last one begins.

    >>> whole_periods([0, 10, 20], 10, 30), whole_periods([0, 10, 20], 10, 24)
    (3, 2)
    """
    if len(starts) < 2 or span_ns is None:
        return len(starts)
    is_whole = span_ns - starts[-1] >= WHOLE_PERIOD * period_ns
    return len(starts) if is_whole else len(starts) - 1


def stack(
    found: WorkloadAnswer, backing: str | None = None, keys: Mapping[str, Any] | None = None
) -> str:
    """Return a stack file with the recommended cache; `backing` is the volume that it serves.

    `keys` of the tenant say how its trace is read. Empty where no cache helps.
    """
    if not found.sizes or 1.0 - found.curve[-1].miss_ratio < FEW_HITS:
        return ""
    size = _size(found)
    name = _name(found)
    capacity = words.size_at_least(size.blocks * found.block_bytes)
    write = "write-back" if _absorbs(found) >= WORTH_SAYING else "write-through"
    span = "" if found.span_ns is None else f" in {words.duration(found.span_ns)}"
    lines = [
        f"# From {words.counted(found.requests, 'request')}{span}. LRU would hit "
        f"{words.percent(size.hit_ratio)} of the block accesses at this size.",
        f"name = {json.dumps(name)}",
        "",
        "[cache]",
        f'capacity = "{capacity}"',
        f'block = "{words.size(found.block_bytes)}"',
        'policy = "auto"',
        f'write = "{write}"',
        "",
    ]
    if backing is not None or is_stream(found):
        lines += [
            "# Set `devices` to the flash device of the cache, larger than `capacity`.",
            "[serve]",
            'devices = ["cache.img"]',
            'listen = ["unix:cachewright.sock"]',
            'record = "recordings"',
            "",
        ]
    lines += ["[[tenant]]", f"name = {json.dumps(name)}"]
    if backing is None and is_stream(found):
        # A stream tells a number of its device at most.
        lines.append("# Set `backing` to the device of the volume that was observed.")
    if backing is not None or is_stream(found):
        lines.append(f"backing = {json.dumps(backing or '/dev/' + name)}")
    if not is_stream(found):
        lines.append(f"trace = {json.dumps(str(Path(found.path).resolve()))}")
        told = {"format": found.format, **(keys or {})}
        lines += toml_text(told).splitlines()
    return "\n".join(lines) + "\n"


def _name(found: WorkloadAnswer) -> str:
    if not is_stream(found):
        return Path(found.path).name.split(".")[0] or "volume"
    named = found.volumes[0] if len(found.volumes) == 1 else ""
    plain = "".join(one if one.isalnum() or one in "-_" else "-" for one in named)
    return plain.strip("-") or "volume"


def _size(found: WorkloadAnswer) -> ReachedSize:
    """Return the size that is recommended; the trace has re-use."""
    return next(one for one in found.sizes if one.share == endings.NEARLY)


def _absorbs(found: WorkloadAnswer) -> float:
    """Return the share of the writes that overwrite a block while it would still be dirty."""
    updates = found.updates
    if not updates.writes:
        return 0.0
    soon = sum(count for end_ns, count in updates.intervals_ns.histogram if end_ns <= DIRTY_NS)
    return soon / updates.writes


def _facts(found: WorkloadAnswer) -> Iterator[tuple[str, str]]:
    counts = (
        (found.reads, "reads"),
        (found.writes, "writes"),
        (found.trims, "trims"),
        (found.flushes, "flushes"),
    )
    kinds = ", ".join(f"{words.count(count)} {kind}" for count, kind in counts if count)
    yield "trace", f"{found.path} ({found.format})"
    yield "requests", f"{words.count(found.requests)} ({kinds})"
    yield (
        "bytes",
        f"{words.size(found.read_bytes)} read, {words.size(found.write_bytes)} written",
    )
    if found.span_ns is not None:
        rate = words.significant(found.rate_per_s or 0.0)
        yield "span", f"{words.duration(found.span_ns)}, {rate} requests per s on average"
    if len(found.volumes) > 1:
        yield "volumes", f"{words.count(len(found.volumes))}, the busiest {found.volumes[0]}"
    unit = "objects" if found.counts_objects else f"blocks of {words.size(found.block_bytes)}"
    yield (
        "working set",
        f"{words.size(found.working_set_bytes)} ({words.count(found.distinct_blocks)} {unit}), "
        f"{words.size(found.written_working_set_bytes)} of it written",
    )
    if found.sample_rate < 1.0:
        yield (
            "sample",
            f"1 block in {words.count(1 / found.sample_rate)} is followed: numbers of blocks and "
            "re-use are estimates",
        )


def _findings(found: WorkloadAnswer) -> Iterator[Finding]:
    yield from _reuse(found)
    yield from _scans(found)
    yield from _updates(found)
    yield from _popularity(found)
    yield from _working_set(found)
    yield from _bursts(found)
    yield from _alignment(found)


def _reuse(found: WorkloadAnswer) -> Iterator[Finding]:
    if not found.reuse.accesses:
        return
    first = found.reuse.first_uses / found.reuse.accesses
    evidence = (
        f"{words.count(found.reuse.first_uses)} of {words.count(found.reuse.accesses)} block "
        "accesses"
    )
    yield Finding(f"{words.percent(first)} of the block accesses are first uses.", evidence)
    knee, curve = found.knee_blocks, found.curve
    if knee is not None and curve:
        at = next(point for point in curve if point.blocks == knee)
        more = words.percent(at.miss_ratio - curve[-1].miss_ratio)
        yield Finding(
            f"The curve bends at {blocks(found, knee)}: LRU hits "
            f"{words.percent(1 - at.miss_ratio)} there, and at most {more} more in a larger cache.",
            f"read hit ratio {words.percent(1 - at.read_miss_ratio)} there",
        )


def _scans(found: WorkloadAnswer) -> Iterator[Finding]:
    share, scans = found.read_runs.scan_share, found.scans
    if share < WORTH_SAYING or not scans.reads:
        return
    length = words.size(found.read_runs.scan_bytes)
    if scans.helped_from_blocks is None:
        helped = "no cache helps them"
    else:
        helped = f"no LRU cache below {blocks(found, scans.helped_from_blocks)} helps them"
    yield Finding(
        f"{words.percent(share)} of the bytes read are scans; {helped}.",
        f"runs of {length} or more; {words.percent(scans.first_uses / scans.reads)} of their block "
        f"reads are first uses, {words.percent(scans.best_hit_ratio)} hit in the largest cache",
    )


def _updates(found: WorkloadAnswer) -> Iterator[Finding]:
    updates = found.updates
    if not updates.writes:
        return
    over = updates.overwrites / updates.writes
    times = updates.intervals_ns
    soon = (
        ""
        if not found.has_times or not times.count
        else (f", half of these within {words.duration(times.p50)}")
    )
    if over < WORTH_SAYING:
        yield Finding(
            f"Blocks are rarely overwritten: {words.percent(over)} of the block writes.",
            f"{words.count(updates.overwrites)} of {words.count(updates.writes)} block writes",
        )
        return
    yield Finding(
        f"{words.percent(over)} of the block writes overwrite a block written before{soon}.",
        f"{words.percent(_absorbs(found))} within {words.duration(DIRTY_NS)}, which a write-back "
        "cache saves the volume",
    )


def _popularity(found: WorkloadAnswer) -> Iterator[Finding]:
    popular = found.popularity
    half = next((share for share, of in popular.shares if of >= HALF), None)
    if half is None:
        return
    evidence = f"{words.percent(popular.once_share)} of the blocks are accessed once"
    if popular.exponent is not None and popular.fit is not None and popular.fit >= GOOD_FIT:
        evidence += (
            f"; accesses fall with rank to the power of {words.fixed(-popular.exponent, 2)} "
            f"(fit {words.fixed(popular.fit, 2)})"
        )
    elif popular.exponent is not None and popular.fit is not None:
        evidence += f"; no power law (fit {words.fixed(popular.fit, 2)})"
    few = f"{words.percent(half)} of the blocks"
    if half < FEW_BLOCKS:
        count = words.count(max(half * found.distinct_blocks, 1))
        few = f"{count} of {words.count(found.distinct_blocks)} blocks"
    yield Finding(f"Half of the accesses go to {few}.", evidence)


def _working_set(found: WorkloadAnswer) -> Iterator[Finding]:
    if len(found.windows) < 2:
        return
    short, whole = found.windows[0], found.windows[-1]
    if not whole.mean_blocks:
        return
    yield Finding(
        f"Within {words.duration(short.window_ns)} the volume uses "
        f"{blocks(found, short.mean_blocks)} on average, "
        f"{words.percent(short.mean_blocks / whole.mean_blocks)} of its whole working set.",
        f"at most {blocks(found, short.most_blocks)}; the whole is "
        f"{blocks(found, whole.mean_blocks)}",
    )


def _bursts(found: WorkloadAnswer) -> Iterator[Finding]:
    if not found.span_ns or found.span_ns < 2 * NS_PER_S:
        return
    mean = (found.reads + found.writes) / (found.span_ns / NS_PER_S)
    if not mean or found.peak.requests < BURST * mean:
        return
    yield Finding(
        f"Requests come in bursts: {words.count(found.peak.requests)} in the busiest second, "
        f"{words.significant(found.peak.requests / mean)} times the mean.",
        f"{words.size(found.peak.bytes)} in the busiest second by bytes; half of the requests "
        f"come within {words.duration(found.arrivals_ns.p50)} of the one before",
    )


def _alignment(found: WorkloadAnswer) -> Iterator[Finding]:
    total = found.reads + found.writes
    if not total or found.misaligned < WORTH_SAYING * total:
        return
    yield Finding(
        f"{words.percent(found.misaligned / total)} of the requests are not aligned to 4KiB: "
        "each such write reads its first and last block before.",
        f"{words.count(found.misaligned)} of {words.count(total)} reads and writes",
    )
