"""The charts of cache results, each from plain rows to a plot.

For: how every figure looks. Must never know: results, files, HTML. Units: bytes, seconds, ratios in
0..1; axes show sizes in binary units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import altair as alt

from cachewright.report import marks
from cachewright.report.marks import Tip
from cachewright.report.plots import (
    GREY,
    PANEL_HEIGHT,
    Panel,
    Plot,
    Rows,
    Series,
    data,
    distinct,
    extent,
)

TENANT_CASES = 6
CASE_HEIGHT = 140
HIT_RATIO = Tip("hit ratio", "hit_ratio", "ratio")
DASHED = (5, 3)


def by_capacity(rows: Rows) -> Plot:
    """Hit ratio against cache size; a line per policy, a panel per partition."""
    sizes = sorted({row["capacity_bytes"] for row in rows})
    partitions = distinct(rows, "partition")
    series = Series("policy", distinct(rows, "policy"), "policy", shaped=True)
    axis = marks.size_axis("cache size", sizes)
    scale = alt.Scale(type="log", base=2, nice=False, domain=extent(sizes))
    x = alt.X("capacity_bytes:Q", axis=axis, scale=scale)
    ratios = alt.Scale(domain=extent([row["hit_ratio"] for row in rows]), nice=True)
    y = alt.Y("hit_ratio:Q", scale=ratios).title("hit ratio")
    tips = [Tip("policy", "policy"), Tip("partition", "partition")]
    tips += [Tip("cache size", "capacity_bytes", "size"), HIT_RATIO]
    panels = [
        marks.lines(
            [row for row in rows if row["partition"] == partition], series, x, y, tips,
            title=partition if len(partitions) > 1 else "", height=PANEL_HEIGHT + 40, points=True,
        )
        for partition in partitions
    ]  # fmt: skip
    return Plot(panels, [series], columns=2 if len(panels) > 1 else 1)


def by_policy(rows: Rows) -> Plot:
    """Hit ratio of each policy as dots, best on top; colour and shape tell partitions apart."""
    best: dict[str, float] = {}
    for row in rows:
        best[row["policy"]] = max(best.get(row["policy"], 0.0), row["hit_ratio"])
    order = sorted(best, key=lambda policy: -best[policy])
    series = Series("partition", distinct(rows, "partition"), "partition", "point", shaped=True)
    x = alt.X("hit_ratio:Q").scale(zero=False, nice=True).title("hit ratio")
    y = marks.row_names("policy", order, grid=True)
    tips = [Tip("policy", "policy"), Tip("partition", "partition"), HIT_RATIO]
    return Plot([marks.dots(rows, series, x, y, tips)], [series])


def flash_by_hit_ratio(rows: Rows) -> Plot:
    """Write amplification against hit ratio, a mark per case; the best are low and at the right."""
    separations = Series("separation", distinct(rows, "separation"), "separation", "point")
    policies = Series(
        "policy", distinct(rows, "policy"), "policy", "point", shaped=True, coloured=False
    )
    x = alt.X("hit_ratio:Q").title("hit ratio").scale(zero=False, nice=True)
    y = alt.Y("amplification:Q").title("write amplification").scale(zero=False, nice=True)
    tips = [
        Tip("case", "case"),
        HIT_RATIO,
        Tip("flash pages written", "flash_pages", "count"),
        Tip("write amplification", "amplification", "ratio"),
    ]
    panel = marks.dots(
        rows, separations, x, y, tips, height=PANEL_HEIGHT + 60, encodings=[policies.shape()]
    )
    return Plot([panel], [separations, policies])


def by_tenant(rows: Rows) -> Plot:
    """Hit ratio per tenant as dots, one row per case."""
    series = Series("tenant", distinct(rows, "tenant"), "tenant", "point", shaped=True)
    x = alt.X("hit_ratio:Q").scale(domain=[0, 1]).title("hit ratio")
    y = marks.row_names("case", distinct(rows, "case"), grid=True)
    tips = [Tip("case", "case"), Tip("tenant", "tenant"), HIT_RATIO]
    return Plot([marks.dots(rows, series, x, y, tips)], [series])


def miss_ratio_curves(rows: Rows, sizes: Sequence[int]) -> Plot:
    """Miss ratio against cache size, a line per tenant; rules at the sizes run."""
    low, high = min(row["size_bytes"] for row in rows), max(row["size_bytes"] for row in rows)
    series = Series("tenant", distinct(rows, "tenant"), "tenant", dashes={"all": DASHED})
    scale = alt.Scale(type="log", base=2, nice=False, domain=extent([low, high]), clamp=True)
    x = alt.X(
        "size_bytes:Q", scale=scale, axis=marks.size_axis("cache size", marks.powers(low, high))
    )
    y = alt.Y("miss_ratio:Q").scale(domain=[0, 1]).title("miss ratio")
    run = [{"size_bytes": size} for size in sizes if low <= size <= high]
    rules = alt.Chart(data(run)).mark_rule(color=GREY, strokeDash=[2, 3], strokeWidth=1)
    tips = [Tip("tenant", "tenant"), Tip("cache size", "size_bytes", "size")]
    tips.append(Tip("miss ratio", "miss_ratio", "ratio"))
    panel = marks.lines(
        rows, series, x, y, tips, height=PANEL_HEIGHT + 60, interpolate="step-after",
        encodings=[series.dash()], below=[rules.encode(x)],
    )  # fmt: skip
    return Plot([panel], [series])


def _by_case(rows: Rows, draw: Callable[[Rows, str, int], Panel]) -> list[Panel]:
    cases = distinct(rows, "case")
    if len(cases) == 1:
        return [draw(rows, "", PANEL_HEIGHT)]
    return [draw([row for row in rows if row["case"] == case], case, CASE_HEIGHT) for case in cases]


def hits_over_time(rows: Rows) -> Plot:
    """Hit ratio of each tenant per window; a panel per case."""
    series = Series("tenant", distinct(rows, "tenant"), "tenant")
    tips = [Tip("tenant", "tenant"), Tip("time", "seconds", "seconds"), HIT_RATIO]
    y = alt.Y("hit_ratio:Q").scale(domain=[0, 1]).title("hit ratio")

    def draw(own: Rows, title: str, height: int) -> Panel:
        return marks.lines(own, series, seconds(rows), y, tips, title=title, height=height)

    return Plot(_by_case(rows, draw), [series])


def seconds(rows: Rows, title: str = "time (s)") -> alt.X:
    """Return the axis of points in time, the same for all panels of these rows."""
    scale = alt.Scale(domain=extent([row["seconds"] for row in rows]), nice=False)
    return alt.X("seconds:Q", scale=scale).title(title)


def occupancy(rows: Rows) -> Plot:
    """Size held by each tenant at the end of each window, and its quota; a panel per case."""
    top = max(max(row["occupancy_bytes"], row["quota_bytes"]) for row in rows)
    axis = marks.size_axis("cache held", marks.size_ticks(top))
    scale = alt.Scale(domain=[0, max(int(top), 1)], nice=False)
    series = Series("tenant", distinct(rows, "tenant"), "tenant")
    tips = [Tip("tenant", "tenant"), Tip("time", "seconds", "seconds")]
    tips += [Tip("quota", "quota_bytes", "size"), Tip("held", "occupancy_bytes", "size")]

    def draw(own: Rows, title: str, height: int) -> Panel:
        x = seconds(rows)
        quota = alt.Chart(data(own)).mark_line(strokeWidth=1, strokeDash=[4, 3], opacity=0.8)
        quota = quota.encode(x, alt.Y("quota_bytes:Q", axis=axis, scale=scale), series.colour())
        y = alt.Y("occupancy_bytes:Q", axis=axis, scale=scale)
        return marks.lines(own, series, x, y, tips, title=title, height=height, above=[quota])

    return Plot(_by_case(rows, draw), [series])
