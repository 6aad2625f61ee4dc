"""What `trace info` shows: facts, small plots, one row per volume.

For: reading a trace's character at a glance. Must never know: how it was counted.
"""

from __future__ import annotations

from typing import Any

from cachewright import words
from cachewright.cli import output, plots
from cachewright.cli.tables import Column, table

VOLUMES = 20


def show(document: dict[str, Any]) -> None:
    """Print a trace's description."""
    named = [("trace", str(document["path"])), ("format", str(document["format"]))]
    output.facts([*named, *_facts(document)])
    _skipped(document)
    output.say()
    _plots(document)
    volumes = document.get("volumes", [])
    if len(volumes) > 1:
        _volumes(volumes)


def _facts(d: dict[str, Any]) -> list[tuple[str, str]]:
    sizes = d["request_bytes"]
    kinds = [f"{words.count(d[k])} {k}" for k in ("reads", "writes", "trims", "flushes") if d[k]]
    block = words.size(d["block_bytes"])
    written = words.size(d["written_working_set_bytes"])
    return [
        ("requests", f"{words.count(d['requests'])} ({', '.join(kinds)})"),
        ("read share", words.percent(d["read_share"])),
        ("bytes", f"{words.size(d['read_bytes'])} read, {words.size(d['write_bytes'])} written"),
        (
            "request size",
            f"mean {words.size(round(sizes['mean']))}, median {words.size(sizes['p50'])}, "
            f"p99 {words.size(sizes['p99'])}, largest {words.size(sizes['max'])}",
        ),
        *_times(d),
        (
            "working set",
            f"{words.size(d['working_set_bytes'])} ({words.count(d['distinct_blocks'])} blocks of "
            f"{block}), {written} of it written",
        ),
        (
            "block re-use",
            f"{words.count(d['reuse']['accesses'])} block accesses, "
            f"{words.count(d['reuse']['compulsory'])} of them compulsory (the first of a block)",
        ),
    ]


def _rate(per_second: float | None) -> str:
    return words.NOTHING if per_second is None else words.significant(per_second)


def _times(d: dict[str, Any]) -> list[tuple[str, str]]:
    if d["span_ns"] is None:
        return [("span", "no times")]
    rate = f"{words.significant(d['rate_per_s'])} requests/s"
    return [("span", words.duration(d["span_ns"])), ("rate", rate)]


def _skipped(document: dict[str, Any]) -> None:
    if document.get("out_of_order"):
        late = words.counted(document["out_of_order"], "request")
        output.note(f"times run backwards: {late} earlier than one before")
    if document.get("skipped_irrelevant"):
        found = words.counted(document["skipped_irrelevant"], "record")
        output.note(f"{found} skipped, no request in it")
    if document.get("skipped_bad"):
        output.note(f"{words.counted(document['skipped_bad'], 'malformed record')} skipped")
        for example in document.get("skipped_examples", []):
            output.note(f"  {example}")


def _plots(document: dict[str, Any]) -> None:
    rate = [float(row[1]) for row in document.get("rate", [])]
    if rate:
        output.say(f"requests over time   {plots.spark(rate)}  0 to {_span(document)}")
    sizes = document["request_bytes"].get("histogram", [])
    if sizes:
        low, high = words.size(sizes[0][0]), words.size(sizes[-1][0])
        output.say(f"request sizes        {plots.spark([s[1] for s in sizes])}  {low} to {high}")
    block = int(document["block_bytes"])
    distances = document["reuse"].get("histogram", [])
    if distances:
        low, high = (words.size(row[0] * block) for row in (distances[0], distances[-1]))
        output.say(
            f"re-use distances     {plots.spark([d[1] for d in distances])}  {low} to {high}"
        )
    curve = _at_powers(document["reuse"].get("lru_miss_ratio", []))
    if curve:
        low, high = (words.size(point[0] * block) for point in (curve[0], curve[-1]))
        first, last = (words.ratio(point[1]) for point in (curve[0], curve[-1]))
        drawn = plots.spark([point[1] for point in curve])
        output.say(f"lru miss ratio       {drawn}  {first} at {low} to {last} at {high}")
    output.say()


def _at_powers(curve: list[Any]) -> list[tuple[int, float]]:
    """Return the curve at powers of two up to its end, one point per character of the plot."""
    if not curve:
        return []
    sizes = [1 << k for k in range(int(curve[-1][0]).bit_length() + 1)]
    steps = [max((p for p in curve if p[0] <= size), key=lambda p: p[0]) for size in sizes]
    return [(size, float(point[1])) for size, point in zip(sizes, steps, strict=True)]


def _span(document: dict[str, Any]) -> str:
    return words.duration(document["span_ns"])


def _volumes(volumes: list[dict[str, Any]]) -> None:
    shown = sorted(volumes, key=lambda v: -v["requests"])[:VOLUMES]
    table(
        "volumes",
        [
            Column("volume", [str(v["name"]) for v in shown], numeric=False),
            Column("requests", [words.count(v["requests"]) for v in shown]),
            Column("read share", [words.percent(v["read_share"]) for v in shown]),
            Column("read", [words.size(v["read_bytes"]) for v in shown]),
            Column("written", [words.size(v["write_bytes"]) for v in shown]),
            Column("working set", [words.size(v["working_set_bytes"]) for v in shown]),
            Column("requests/s", [_rate(v["rate_per_s"]) for v in shown]),
        ],
    )
    if len(volumes) > len(shown):
        output.say(f"{words.count(len(volumes) - len(shown))} smaller volumes; --json has all")
