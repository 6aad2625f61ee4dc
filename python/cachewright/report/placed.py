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
from cachewright.report.page import note, section, whole_page
from cachewright.report.plots import Plot, Rows, Series
from cachewright.tables import Column, Table

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
            f'<section class="best"><p><strong>{escape(conclusion(found))}</strong></p></section>',
            *map(note, found.notes),
            *drawn,
            section(others(found)),
            section(table, after=note(more) if more else ""),
            f"<footer>Cachewright {escape(found.cachewright)}</footer>",
        ],
    )


def conclusion(found: FleetPlanAnswer) -> str:
    """Return the flash per host and how many goals it meets, as one sentence."""
    goals = [one for one in found.volumes if one.goal_hit_ratio is not None]
    reached = sum(one.reached for one in goals)
    flash = words.size(found.flash_blocks * found.block_bytes)
    return (
        f"{words.counted(len(found.volumes), 'volume')} on "
        f"{words.counted(found.hosts, 'host')} of {flash} each: {reached} of "
        f"{words.counted(len(goals), 'goal')} can be met; the flash is at most "
        f"{words.percent(found.gap)} above the least."
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


def others(found: FleetPlanAnswer) -> Table[tuple[str, int | None]]:
    """Return the flash per host that other ways to place the volumes need."""
    rows: list[tuple[str, int | None]] = [("this plan", found.flash_blocks)]
    rows += [(one.name, one.flash_blocks) for one in found.others]

    def flash(row: tuple[str, int | None]) -> int | None:
        return None if row[1] is None else row[1] * found.block_bytes

    return Table(
        "flash per host with which all goals are met",
        [Column("placing", lambda row: row[0]), Column("flash per host", flash, words.size, "low")],
        rows,
    )


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
