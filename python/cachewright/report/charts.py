"""The figures of a run, and how each is drawn: from plain rows to a plot.

Units: bytes on size axes, ratios in 0..1, seconds of simulated time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import words
from cachewright.answers import Case
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.plots import (
    COLOURED,
    PANEL_HEIGHT,
    Panel,
    Plot,
    Rows,
    Series,
    data,
    distinct,
    extent,
)
from cachewright.tables import summary

if TYPE_CHECKING:
    from cachewright.results import RunFrames

SERIES_CASES = 3
TENANT_CASES = 6
CASE_HEIGHT = 140
HIT_RATIO = Tip("hit ratio", "hit_ratio", "ratio")
DASHED = (5, 3)
# Of many policies so many of the best have a colour, beside this one and the best bound.
BEST, BASELINE = 5, "lru"


def by_capacity(rows: Rows) -> Plot:
    """Hit ratio against cache size; a line per policy, a panel per partition.

    Of many policies the best, `lru` and the best bound have colours.
    """
    sizes = sorted({row["capacity_bytes"] for row in rows})
    partitions = distinct(rows, "partition")
    names = _best_first(rows)
    series = Series("policy", names, "policy", shaped=True, grey=_background(names))
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


def _best_first(rows: Rows) -> list[str]:
    """Return the policies by the best hit ratio that any row has of each."""
    best: dict[str, float] = {}
    for row in rows:
        best[row["policy"]] = max(best.get(row["policy"], 0.0), row["hit_ratio"])
    return sorted(best, key=lambda policy: -best[policy])


def _background(names: Sequence[str]) -> frozenset[str]:
    """Return the policies that are drawn in grey, of names from the best to the worst."""
    if len(names) <= COLOURED:
        return frozenset()
    is_bound = [name.endswith(summary.BOUND) for name in names]
    choices = [name for name, bound in zip(names, is_bound, strict=True) if not bound]
    bounds = [name for name, bound in zip(names, is_bound, strict=True) if bound]
    return frozenset(names) - {*choices[:BEST], *bounds[:1], BASELINE}


def by_policy(rows: Rows) -> Plot:
    """Hit ratio of each policy as dots, best on top; colour and shape tell partitions apart."""
    order = _best_first(rows)
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
    ratios, amplified = ([row[key] for row in rows] for key in ("hit_ratio", "amplification"))
    x = alt.X("hit_ratio:Q", scale=marks.around(ratios)).title("hit ratio")
    y = alt.Y("amplification:Q", scale=marks.around(amplified)).title("write amplification")
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


def miss_ratio_curves(rows: Rows, sizes: Sequence[int], working_set: int) -> Plot:
    """Miss ratio against cache size, a line per tenant; rules at the sizes run."""
    low = marks.bend(rows, "tenant", "size_bytes", "miss_ratio", sizes)
    high = max(row["size_bytes"] for row in rows)
    rows = [row for row in rows if row["size_bytes"] >= low]
    series = Series("tenant", distinct(rows, "tenant"), "tenant", dashes={"all": DASHED})
    x = marks.sizes("size_bytes", "cache size", low, max(high, working_set))
    y = alt.Y("miss_ratio:Q").scale(domain=[0, 1]).title("miss ratio")
    run = {size: f"run: {words.size(size)}" for size in sizes if low <= size <= high}
    tips = [Tip("tenant", "tenant"), Tip("cache size", "size_bytes", "size")]
    tips.append(Tip("miss ratio", "miss_ratio", "ratio"))
    panel = marks.lines(
        rows, series, x, y, tips, height=PANEL_HEIGHT + 60, interpolate="step-after",
        encodings=[series.dash()],
        below=marks.rules(x, "size_bytes", {**run, working_set: marks.WORKING_SET}),
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
    """Return the axis of points in time from zero on, the same for all panels of these rows."""
    latest = max(row["seconds"] for row in rows)
    scale = alt.Scale(domain=extent([0.0, latest]), nice=False)
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


# --- Which figures a run has, from its answer to rows.


def all_figures(result: RunFrames) -> list[Figure]:
    """Return the figures that the result has data for, in the order of the report."""
    makers: list[Callable[[RunFrames], Figure | None]] = [
        _capacity,
        _policies,
        _flash,
        _tenants,
        _curves,
        _hits_over_time,
        _occupancy,
    ]
    return [figure for make in makers if (figure := make(result)) is not None]


def _capacity(result: RunFrames) -> Figure | None:
    cases = result.answer.cases
    if len({summary.capacity_bytes(case) for case in cases}) < 2:
        return None
    rows = _case_rows(result)
    return Figure(
        "hit-ratio-by-capacity",
        "Hit ratio by cache size",
        "One line per policy"
        + ("; one panel per partition." if len({row["partition"] for row in rows}) > 1 else "."),
        by_capacity(rows),
    )


def _policies(result: RunFrames) -> Figure | None:
    cases = result.answer.cases
    if len({summary.value(case, summary.POLICY) for case in cases}) < 2:
        return None
    best = summary.best_case(result.answer)
    same = summary.capacity_bytes(best)
    rows = [row for row in _case_rows(result) if row["capacity_bytes"] == same]
    return Figure(
        "hit-ratio-by-policy",
        f"Policies at {words.size(same)}",
        "Hit ratio of each policy; one mark per partition. The axis does not start at zero.",
        by_policy(rows),
    )


def _flash(result: RunFrames) -> Figure | None:
    cases = [case for case in result.answer.cases if case.flash]
    if len(cases) < 2:
        return None
    rows = [
        {
            "case": summary.label(case, result.answer.varied),
            "policy": summary.policy_label(case),
            "separation": summary.value(case, summary.SEPARATION),
            "hit_ratio": summary.hit_ratio(case),
            "amplification": case.flash.write_amplification if case.flash else None,
            "flash_pages": summary.flash_pages(case),
        }
        for case in cases
    ]
    return Figure(
        "write-amplification-by-hit-ratio",
        "Write amplification and hit ratio",
        "Flash writes per page that the cache writes, against its hit ratio, a mark per case: good "
        "ones lie low and to the right. The axes do not start at zero.",
        flash_by_hit_ratio(rows),
    )


def _tenants(result: RunFrames) -> Figure | None:
    answer = result.answer
    if len(answer.tenants) < 2 or len(answer.cases) < 2:
        return None
    rows = [
        {"case": label, "tenant": tenant.name, "hit_ratio": tenant.hit_ratio}
        for case, label in _chosen(result, TENANT_CASES)
        for tenant in case.tenants
    ]
    if len(distinct(rows, "case")) < 2:
        return None
    return Figure(
        "hit-ratio-by-tenant",
        "What each tenant gets",
        "Hit ratio per tenant in the best cases and the worst of the same cache size.",
        by_tenant(rows),
    )


def _curves(result: RunFrames) -> Figure | None:
    curves = result.answer.curves
    cases = result.answer.cases
    if not curves or not cases:
        return None
    block = cases[0].block_bytes
    alone = len(result.answer.tenants) == 1
    rows = [
        {
            "tenant": curve.tenant,
            "size_bytes": size * block,
            "miss_ratio": miss,
        }
        for curve in sorted(curves, key=lambda curve: curve.tenant == "all")
        if not (alone and curve.tenant == summary.ALL)
        for size, miss in curve.points
        if size > 0
    ]
    if not rows:
        return None
    sizes = sorted({summary.capacity_bytes(case) for case in cases})
    return Figure(
        "miss-ratio-curves",
        "Miss-ratio curves",
        "Exact LRU"
        + ("" if alone else ", each tenant alone and all together")
        + "; vertical lines are the cache sizes run and the working set. Smaller caches, with "
        "which no curve falls, are left out.",
        miss_ratio_curves(rows, sizes, result.answer.workload.working_set_bytes),
    )


def _hits_over_time(result: RunFrames) -> Figure | None:
    rows = _series_rows(result)
    if not rows:
        return None
    return Figure(
        "hit-ratio-over-time",
        "Hit ratio over time",
        "Per tenant, in windows of equal length.",
        hits_over_time(rows),
    )


def _occupancy(result: RunFrames) -> Figure | None:
    rows = _series_rows(result)
    if not rows:
        return None
    return Figure(
        "occupancy-over-time",
        "Cache held by each tenant",
        "Blocks held at the end of each window, as a size; the dashed line is the quota.",
        occupancy(rows),
    )


def _case_rows(result: RunFrames) -> list[dict[str, Any]]:
    return [
        {
            "policy": summary.policy_label(case),
            "partition": summary.value(case, summary.PARTITION),
            "capacity_bytes": summary.capacity_bytes(case),
            "hit_ratio": case.total.hit_ratio,
        }
        for case in result.answer.cases
    ]


def _chosen(result: RunFrames, count: int) -> list[tuple[Case, str]]:
    """Return the best choices of the best one's group and the worst of it, with labels."""
    answer = result.answer
    best = summary.best_case(answer)
    group = next(cases for _, cases in summary.by_capacity(answer) if best in cases)
    real = summary.one_per_cache([c for c in group if not summary.is_bound(c)] or group)
    ranked = sorted(real, key=lambda c: (-summary.hit_ratio(c), c.case))
    picked = ranked if len(ranked) <= count else [*ranked[: count - 1], ranked[-1]]
    size = words.size(summary.capacity_bytes(best))
    varied = [key for key in answer.varied if not key.startswith(summary.FLASH)]
    keys = [key for key in varied if key != summary.CAPACITY]
    return [(c, f"{summary.label(c, keys)} ({size})" if keys else size) for c in picked]


def _best_of_partitions(result: RunFrames) -> list[tuple[Case, str]]:
    """Return the best choice of each partition at the best size, if there are several."""
    best: dict[str, tuple[Case, str]] = {}
    for case, label in _chosen(result, len(result.answer.cases)):
        best.setdefault(summary.value(case, summary.PARTITION), (case, label))
    return list(best.values())[:SERIES_CASES] if len(best) > 1 else []


def _series_rows(result: RunFrames) -> list[dict[str, Any]]:
    picked = _best_of_partitions(result) or _chosen(result, SERIES_CASES)
    return series_rows(result, {case.case: label for case, label in picked})


def series_rows(result: RunFrames, labels: dict[int, str]) -> list[dict[str, Any]]:
    """Return the windows of some cases, by their numbers, under labels: hits and blocks held."""
    import polars as pl

    block = result.answer.cases[0].block_bytes
    frame = result.series.filter(
        pl.col("case").is_in(list(labels)) & (pl.col("tenant") != "all")
    ).select(
        pl.col("case").replace_strict(labels, return_dtype=pl.String),
        (pl.col("time_ns") / 1e9).alias("seconds"),
        "tenant",
        "hit_ratio",
        (pl.col("occupancy_blocks") * block).alias("occupancy_bytes"),
        (pl.col("quota_blocks") * block).alias("quota_bytes"),
    )
    order = list(labels.values())
    return sorted(frame.to_dicts(), key=lambda row: order.index(row["case"]))
