"""Rows of what runs on a trace: the whole of it, and each period.

For: `characterize`. Must never know: files, how rows are compared. Units: bytes, requests per
second; shares in 0..1. Periods of two results are alike when they begin at the same time.
"""

from __future__ import annotations

from cachewright import words
from cachewright.answers import CharacterizeAnswer, JudgedPeriod, PeriodCounts
from cachewright.side_by_side.reading import ALL, Measure, Reading, Row

FROM = "from"
MEASURES = [
    Measure("requests", words.count),
    Measure("requests per s", words.ratio),
    Measure("share of reads", words.percent),
    Measure("mean size", words.size),
    Measure("working set", words.size),
    Measure("sequential", words.percent),
    Measure("overlapped", words.percent),
    Measure("strided", words.percent),
    Measure("random", words.percent),
]


def of_character(label: str, answer: CharacterizeAnswer) -> Reading:
    """Return a row of the whole trace and one per period."""
    rows = [Row({FROM: ALL}, _values(answer.total))]
    rows += [Row({FROM: f"{one.start_ns / 1e9:g}s"}, _values(one)) for one in answer.periods]
    settings = {"characterize.every": answer.every}
    if answer.characterizer is not None:
        settings["characterize.characterizer"] = answer.characterizer
    total = answer.total
    workload = {
        answer.path: f"{words.count(total.reads)} reads, {words.count(total.writes)} writes, "
        f"{words.duration(total.end_ns - total.start_ns)}"
    }
    return Reading(label, "characterize", settings, MEASURES, rows, workload=workload)


def _values(counts: PeriodCounts | JudgedPeriod) -> dict[str, float]:
    """Return the numbers of a stretch by measure."""
    return {
        "requests": counts.reads + counts.writes,
        "requests per s": counts.rate_per_s,
        "share of reads": counts.read_share,
        "mean size": counts.mean_bytes,
        "working set": counts.working_set_bytes,
        "sequential": counts.classes.sequential,
        "overlapped": counts.classes.overlapped,
        "strided": counts.classes.strided,
        "random": counts.classes.random,
    }
