"""Which figures a result has.

For: choosing what is worth drawing. Must never know: how it is drawn, HTML.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cachewright import summary, words
from cachewright.answers import Case
from cachewright.report import charts
from cachewright.report.figure import Figure

if TYPE_CHECKING:
    from cachewright.results import RunFrames

SERIES_CASES = 3


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
    return Figure(
        "hit-ratio-by-capacity",
        "Hit ratio by cache size",
        "One line per policy; one panel per partition.",
        charts.by_capacity(_case_rows(result)),
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
        charts.by_policy(rows),
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
        charts.flash_by_hit_ratio(rows),
    )


def _tenants(result: RunFrames) -> Figure | None:
    answer = result.answer
    if len(answer.tenants) < 2 or len(answer.cases) < 2:
        return None
    rows = [
        {"case": label, "tenant": tenant.name, "hit_ratio": tenant.hit_ratio}
        for case, label in _chosen(result, charts.TENANT_CASES)
        for tenant in case.tenants
    ]
    return Figure(
        "hit-ratio-by-tenant",
        "What each tenant gets",
        "Hit ratio per tenant in the best cases and the worst of the same cache size.",
        charts.by_tenant(rows),
    )


def _curves(result: RunFrames) -> Figure | None:
    curves = result.answer.curves
    cases = result.answer.cases
    if not curves or not cases:
        return None
    block = cases[0].block_bytes
    rows = [
        {
            "tenant": curve.tenant,
            "size_bytes": size * block,
            "miss_ratio": miss,
        }
        for curve in sorted(curves, key=lambda curve: curve.tenant == "all")
        for size, miss in curve.points
        if size > 0
    ]
    sizes = sorted({summary.capacity_bytes(case) for case in cases})
    return Figure(
        "miss-ratio-curves",
        "Miss-ratio curves",
        "Exact LRU, each tenant alone and all together; vertical lines are the cache sizes run.",
        charts.miss_ratio_curves(rows, sizes),
    )


def _hits_over_time(result: RunFrames) -> Figure | None:
    rows = _series_rows(result)
    if not rows:
        return None
    return Figure(
        "hit-ratio-over-time",
        "Hit ratio over time",
        "Per tenant, in windows of equal length.",
        charts.hits_over_time(rows),
    )


def _occupancy(result: RunFrames) -> Figure | None:
    rows = _series_rows(result)
    if not rows:
        return None
    return Figure(
        "occupancy-over-time",
        "Cache held by each tenant",
        "Blocks held at the end of each window, as a size; the dashed line is the quota.",
        charts.occupancy(rows),
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
    group = next(cases for _, cases in summary.groups(answer) if best in cases)
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
