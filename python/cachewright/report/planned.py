"""The page of `plan`: the smallest cache by partitioner, its shares, and what larger ones give.

Units: bytes on size axes, hit ratios in 0..1.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import altair as alt

from cachewright import words
from cachewright.answers import PlanAnswer, PlanPartition
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.page import answered, note, section, whole_page
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series
from cachewright.tables import sizing

PANELS = 4
SHARED = "shared"


def page(found: PlanAnswer, drawn: Sequence[Figure]) -> str:
    """Return the whole page."""
    title, together = f"{found.name}: plan", sizing.together(found)
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in sizing.remarks(found))
    warnings = [f"{one.partition}: {one.warning}" for one in found.partitions if one.warning]
    return whole_page(
        title,
        [
            f"<h1>{escape(title)}</h1>",
            answered(sizing.conclusion(found)),
            *drawn,
            section(together, after="".join(map(note, warnings))) if together else "",
            section(sizing.alone(found), after=said),
            f"<footer>Cachewright {escape(found.cachewright)}</footer>",
        ],
    )


def figures(found: PlanAnswer) -> list[Figure]:
    """Return the figures that the plan has sizes for, in the order of the page."""
    drawn = [_shares(found), _ratios(found)]
    return [figure for figure in drawn if figure is not None]


def _shares(found: PlanAnswer) -> Figure | None:
    """Return the smallest cache of each partitioner as a bar, cut into the tenants' quotas."""
    names = [tenant.name for tenant in found.tenants]
    rows: Rows = []
    for one in _by_size(found):
        blocks = one.smallest_blocks
        if blocks is None:
            continue
        quotas = one.quota_blocks if one.partition != SHARED else None
        parts = zip(names, quotas, strict=True) if quotas else [(SHARED, blocks)]
        rows += [
            {"partition": one.partition, "tenant": name, "order": order,
             "bytes": part * found.block_bytes}
            for order, (name, part) in enumerate(parts)
        ]  # fmt: skip
    if not rows:
        return None
    shared = [SHARED] if any(row["tenant"] == SHARED for row in rows) else []
    series = Series("tenant", [*names, *shared], "tenant", "box", grey=shared)
    top = max((one.smallest_blocks or 0) * found.block_bytes for one in found.partitions)
    axis = marks.size_axis("smallest cache", marks.size_ticks(top))
    x = alt.X("bytes:Q", axis=axis).scale(domain=[0, top], nice=False)
    y = marks.row_names("partition", list(dict.fromkeys(row["partition"] for row in rows)))
    tips = [Tip("partition", "partition"), Tip("tenant", "tenant"), Tip("quota", "bytes", "size")]
    panel = marks.bars(rows, series, x, y, tips, encodings=[alt.Order("order:Q")])
    caption = "The smallest cache that meets every goal, and what each tenant may hold of it at "
    caption += "the end. A shared cache has no quotas."
    return Figure("shares", "Smallest cache and its shares", caption, Plot([panel], [series]))


def _by_size(found: PlanAnswer) -> list[PlanPartition]:
    return sorted(found.partitions, key=lambda one: (one.smallest_blocks or 0, one.partition))


def _ratios(found: PlanAnswer) -> Figure | None:
    """Return each tenant's hit ratio at the sizes tried, a panel per partitioner."""
    shown = [one for one in _by_size(found) if len(one.tried) > 1][:PANELS]
    if not shown:
        return None
    names = [tenant.name for tenant in found.tenants]
    rows: Rows = [
        {
            "partition": one.partition,
            "tenant": name,
            "size": blocks * found.block_bytes,
            "hit_ratio": ratio,
            "miss_ratio": 1.0 - ratio,
            "line": f"{one.partition}/{name}",
            "met": "met" if met else "missed",
        }
        for one in shown
        for blocks, met, ratios in sorted(one.tried)
        if blocks
        for name, ratio in zip(names, ratios, strict=True)
    ]
    series = Series("tenant", names, "tenant")
    low, high = marks.bend(rows, "line", "size", "miss_ratio"), max(row["size"] for row in rows)
    rows = [row for row in rows if row["size"] >= low]
    x = marks.sizes("size", "cache size", low, high, 5 if len(shown) > 1 else 9)
    y = alt.Y("hit_ratio:Q").scale(domain=[0, 1]).title("hit ratio")
    tips = [Tip("tenant", "tenant"), Tip("cache size", "size", "size"), Tip("goals", "met")]
    tips.append(Tip("hit ratio", "hit_ratio", "ratio"))
    panels = []
    for one in shown:
        smallest = one.smallest_blocks
        label = {} if smallest is None else {smallest * found.block_bytes: "meets every goal"}
        own = [row for row in rows if row["partition"] == one.partition]
        panels.append(
            marks.lines(
                own, series, x, y, tips, title=one.partition, height=PANEL_HEIGHT + 40,
                points=True, below=marks.rules(x, "size", label),
            )
        )  # fmt: skip
    goals = ", ".join(
        f"{tenant.name} {words.ratio(tenant.goal_hit_ratio)}"
        for tenant in found.tenants
        if tenant.goal_hit_ratio is not None
    )
    caption = f"At the sizes that the search tried. Goals: {goals}."
    plot = Plot(panels, [series], columns=2 if len(panels) > 1 else 1)
    return Figure("hit-ratio-by-size", "Hit ratio by cache size", caption, plot)
