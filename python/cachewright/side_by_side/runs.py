"""Rows of runs, of miss-ratio curves and of plans: what a cache gives.

For: `run`, `compare`, `mrc` and `plan`. Must never know: files, how rows are compared. Units:
bytes, nanoseconds, ratios in 0..1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachewright import summary, words
from cachewright.answers import Case, CurvesAnswer, PlanAnswer, RunAnswer, TenantFacts
from cachewright.side_by_side.reading import (
    ALL,
    AMPLIFICATION,
    CAPACITY,
    HIT_RATIO,
    OWN_CACHE,
    PARTITION,
    POLICY,
    SMALLEST,
    TENANT,
    Curve,
    Measure,
    Reading,
    Row,
    exact_size,
    flat,
)

LRU = "lru"
_LINES = [
    Measure(one.header, one.show, None if one.moves else one.highest) for one in summary.MEASURES
]
_FLASH = [Measure(name, show, False) for name, _, show in summary.FLASH_MEASURES]
_DEVICES = [Measure(name, show, False) for name, _, show in summary.DEVICE_MEASURES]
RATIO = next(one for one in _LINES if one.name == HIT_RATIO)
SMALLEST_CACHE = Measure(SMALLEST, words.size, False)


def of_run(label: str, answer: RunAnswer) -> Reading:
    """Return the rows of a run: one per case of `all`, and one per case and tenant of several."""
    rows = [row for case in answer.cases for row in _case(case)]
    block = answer.cases[0].block_bytes if answer.cases else 0
    alone = len(answer.tenants) == 1
    curves = [
        Curve(curve.tenant, LRU, _hits((size * block, miss) for size, miss in curve.points))
        for curve in answer.curves
        if curve.tenant == ALL or not alone
    ]
    known = {*_LINES, *_FLASH, *(one for one in _DEVICES if one.name != AMPLIFICATION)}
    ordered = [one for one in (*_LINES, *_FLASH, *_DEVICES) if one in known]
    return Reading(
        label=label,
        command="run",
        settings=flat(answer.spec),
        measures=_present(ordered, rows),
        rows=rows,
        curves=curves,
        workload=_workload(answer.tenants),
        sizes=sorted({summary.capacity_bytes(case) for case in answer.cases}),
    )


def _case(case: Case) -> list[Row]:
    keys = {key: words.setting(held) for key, held in case.settings.items()}
    keys[CAPACITY] = exact_size(summary.capacity_bytes(case))
    found = []
    lines: list[tuple[str, summary.Line]] = [(ALL, case.total)]
    if len(case.tenants) > 1:
        lines += [(one.name, one) for one in case.tenants]
    for name, line in lines:
        values = {
            one.header: value for one in summary.MEASURES if (value := one.of(line)) is not None
        }
        if name == ALL:
            values |= _drive(case)
        found.append(Row({**keys, TENANT: name}, values))
    return found


def _drive(case: Case) -> dict[str, float]:
    values = {}
    for name, of_case, _ in summary.DEVICE_MEASURES:
        if (value := of_case(case)) is not None:
            values[name] = value
    if case.flash:
        values |= {name: of_drive(case.flash) for name, of_drive, _ in summary.FLASH_MEASURES}
    return values


def of_curves(label: str, answer: CurvesAnswer) -> Reading:
    """Return the curves of whole traces; rows are made of them at the sizes of other results."""
    block, alone = answer.block_bytes, len(answer.tenants) == 1
    curves = [
        Curve(
            ALL if alone else curve.tenant,
            curve.policy,
            _hits((point[0] * block, point[1]) for point in curve.points),
        )
        for curve in answer.curves
        if curve.window is None
    ]
    return Reading(
        label=label,
        command="mrc",
        settings={**flat(answer.spec), "mrc.method": answer.method},
        measures=[RATIO],
        rows=[],
        curves=curves,
        workload=_workload(answer.tenants),
    )


def of_plan(label: str, answer: PlanAnswer) -> Reading:
    """Return what each tenant needs alone and what all need, by partitioner."""
    block, rows = answer.block_bytes, []
    policy = {POLICY: words.setting(answer.spec["cache"]["policy"]["name"])}
    for tenant in answer.tenants:
        if tenant.alone_blocks is not None:
            size = tenant.alone_blocks * block
            keys = {**policy, TENANT: tenant.name, OWN_CACHE: "any size"}
            rows.append(Row(keys, {SMALLEST: size}))
    for one in answer.partitions:
        if one.smallest_blocks is None:
            continue
        size = one.smallest_blocks * block
        keys = {**policy, PARTITION: one.partition, TENANT: ALL}
        rows.append(Row(keys, {SMALLEST: size}))
        for tenant, ratio in zip(answer.tenants, one.hit_ratios or (), strict=False):
            held = {**keys, TENANT: tenant.name, CAPACITY: exact_size(size)}
            rows.append(Row(held, {HIT_RATIO: ratio}))
    return Reading(
        label=label,
        command="plan",
        settings=flat(answer.spec),
        measures=_present([SMALLEST_CACHE, RATIO], rows),
        rows=rows,
        workload={},
        sizes=sorted({one.smallest_blocks * block for one in answer.partitions
                      if one.smallest_blocks is not None}),
    )  # fmt: skip


def _hits(points: Any) -> list[tuple[int, float]]:
    """Return hit ratios by size of pairs of size and miss ratio, ascending, sizes above zero."""
    return [(size, 1.0 - miss) for size, miss in sorted(points) if size > 0]


def _present(measures: Sequence[Measure], rows: Sequence[Row]) -> list[Measure]:
    held = {name for row in rows for name in row.values}
    unique = {one.name: one for one in reversed(measures)}
    return [one for one in measures if one.name in held and unique[one.name] is one]


def _workload(tenants: Sequence[TenantFacts]) -> Mapping[str, str]:
    return {
        tenant.name: f"{words.count(tenant.requests)} requests, "
        f"{words.size(tenant.read_bytes)} read, {words.size(tenant.write_bytes)} written, "
        f"{words.count(tenant.distinct_blocks)} blocks"
        for tenant in tenants
    }
