"""Rows of drives under separations, and of reproduced papers.

For: `wa` and `reproduce`. Must never know: files, how rows are compared. Units: pages; a paper's
numbers have the units of its tables.
"""

from __future__ import annotations

from cachewright import words
from cachewright.answers import AmplificationAnswer
from cachewright.measures import Measured, figure_of
from cachewright.side_by_side.reading import AMPLIFICATION, Measure, Reading, Row

MEASURED = "measured"
SEPARATION, RECLAIM, OP = "flash.separation", "flash.reclaim", "flash.op"
MEASURES = [
    Measure(AMPLIFICATION, words.ratio, False),
    Measure("extra writes", words.ratio, False),
    Measure("flash writes", words.count, False),
    Measure("moved pages", words.count, False),
    Measure("metadata pages", words.count, False),
    Measure("memory per page", words.size, False),
]


def of_amplification(label: str, answer: AmplificationAnswer) -> Reading:
    """Return one row per scheme of a drive."""
    rows = [
        Row(
            {
                SEPARATION: words.setting(case.separation),
                RECLAIM: words.setting(case.reclaim),
                OP: words.percent(case.op),
            },
            {
                AMPLIFICATION: case.write_amplification,
                "extra writes": case.extra_writes,
                "flash writes": case.flash_pages,
                "moved pages": case.moved_pages,
                "metadata pages": case.meta_pages,
                "memory per page": case.memory_bytes_per_page,
            },
        )
        for case in answer.cases
    ]
    settings = {
        "flash.capacity": answer.capacity,
        "flash.page": words.size(answer.page_bytes),
        "flash.superblock": words.size(answer.superblock_bytes),
        "flash.reserve": words.count(answer.reserve_superblocks),
        "wa.drive_writes": words.significant(answer.drive_writes, 6),
        "wa.trainer": answer.trainer,
    }
    workload = {
        tenant.name: f"{words.count(tenant.requests)} requests, {words.count(tenant.writes)} writes"
        for tenant in answer.tenants
    }
    return Reading(label, "wa", settings, MEASURES, rows, workload=workload)


def of_paper(label: str, found: Measured) -> Reading:
    """Return one row per number of a reproduced paper, by figure and name."""
    rows = [
        Row(
            {
                "paper": found.paper,
                "figure": figure_of(name),
                "number": name.removeprefix(f"{figure_of(name)}/"),
            },
            {MEASURED: value},
        )
        for name, value in found.measures.items()
    ]
    settings = {}
    for figure, source in found.figures.items():
        settings[f"{figure}.specs"] = source.specs
        settings[f"{figure}.traces"] = f"{source.traces.kind} {', '.join(source.traces.names)}"
    measure = Measure(MEASURED, lambda value: words.significant(value or 0.0, 6))
    return Reading(label, "reproduce", settings, [measure], rows)
