"""The page of `plan --fleet`: how full the hosts are, and where each volume lies.

Units: bytes on size axes, hit ratios in 0..1.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import altair as alt

from cachewright import words
from cachewright.answers import FleetPlanAnswer, PlannedVolume
from cachewright.fleet.placement.host_files import host_name
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.page import answered, note, section, whole_page
from cachewright.report.plots import Plot, Rows, Series
from cachewright.tables import Column, Table, placement

# Hosts that are drawn, the fullest of them; rows of volumes.
HOSTS, SHOWN = 40, 200
GOAL, REST = "needed by goals", "what goals leave"


def page(found: FleetPlanAnswer, drawn: Sequence[Figure]) -> str:
    """Return the whole page."""
    table = volumes(found)
    more = f"{table.left_out} more volumes are in fleet.json." if table.left_out else ""
    return whole_page(
        f"{found.name}: plan of a fleet",
        [
            f"<h1>{escape(found.name)}: plan of a fleet</h1>",
            answered(placement.conclusion(found)),
            *map(note, found.notes),
            *drawn,
            *map(section, placement.tables(found)),
            section(table, after=note(more) if more else ""),
            f"<footer>Cachewright {escape(found.cachewright)}</footer>",
        ],
    )


def figures(found: FleetPlanAnswer) -> list[Figure]:
    """Return the figure of the hosts."""
    block = found.block_bytes
    taken = [0] * found.hosts
    for one in found.volumes:
        taken[one.host] += one.blocks
    fullest = sorted(range(found.hosts), key=lambda host: (-taken[host], host))[:HOSTS]
    rows: Rows = [
        {
            "host": host_name(one.host, found.hosts),
            "volume": one.name,
            "what": GOAL if one.goal_hit_ratio is not None else REST,
            "bytes": one.blocks * block,
            "place": (one.goal_hit_ratio is None, place),
        }
        for place, one in enumerate(found.volumes)
        if one.host in fullest
    ]
    rows = [
        {**row, "place": at} for at, row in enumerate(sorted(rows, key=lambda row: row["place"]))
    ]
    series = Series("what", [GOAL, REST], "part", "box")
    top = max(found.flash_blocks, *taken) * block
    axis = marks.size_axis("cache of the host", marks.size_ticks(top))
    x = alt.X("bytes:Q", axis=axis).scale(domain=[0, max(top, 1)], nice=False)
    y = marks.row_names("host", [host_name(host, found.hosts) for host in fullest])
    tips = [Tip("host", "host"), Tip("volume", "volume"), Tip("its part", "bytes", "size")]
    bars = marks.bars(rows, series, x, y, tips, encodings=[alt.Order("place:Q")])
    left_out = found.hosts - len(fullest)
    more = f" {words.counted(left_out, 'host')} with less are left out." if left_out else ""
    caption = f"A piece per volume, those with goals first.{more}"
    return [Figure("hosts", "How full the hosts are", caption, Plot([bars], [series]))]


def volumes(found: FleetPlanAnswer) -> Table[PlannedVolume]:
    """Return a row per volume: its host, its part of the cache, and what it gets by it."""
    block = found.block_bytes
    order = sorted(found.volumes, key=lambda one: (one.host, one.name))
    return Table(
        "volumes",
        [
            Column("volume", lambda one: one.name),
            Column("host", lambda one: host_name(one.host, found.hosts)),
            Column("goal", lambda one: one.goal_hit_ratio, words.ratio),
            Column("hit ratio", lambda one: one.hit_ratio, words.ratio),
            Column("best possible", lambda one: one.best_hit_ratio, words.ratio),
            Column("cache", lambda one: one.blocks * block, words.size),
        ],
        order,
        shown=SHOWN,
    )
