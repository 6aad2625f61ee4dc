"""Results as flat rows, for `--csv`.

For: one row per case and tenant, point, scheme or period, with the names and units of the result
document. Must never know: how rows are printed. Units: bytes, blocks, nanoseconds, ratios in 0..1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cachewright import timing
from cachewright.answers import (
    Case,
    CharacterizeAnswer,
    NamedSchemeEntry,
    PlanAnswer,
    RunAnswer,
)
from cachewright.documents import table, values
from cachewright.registries import Entry
from cachewright.results import ALL, capacity, case_keys, flash, without_name

Row = dict[str, Any]


def of_result(document: RunAnswer) -> list[Row]:
    """Return a row per case and tenant, and one for `all`; a drive's numbers stand with `all`."""
    return [row for case in document.cases for row in _of_case(case)]


def _of_case(case: Case) -> Iterator[Row]:
    head = {**case_keys(case), **capacity(case)}
    times: dict[str, Row] = {}
    if case.timing:
        found: list[timing.Line] = [*case.timing.tenants, timing.all_together(case.timing)]
        times = {line.name: timing.flat(line) for line in found}
    for tenant in case.tenants:
        rest = without_name(tenant)
        yield {**head, "tenant": tenant.name, **rest, **times.get(tenant.name, {})}
    yield {**head, "tenant": ALL, **values(case.total), **times.get(ALL, {}), **flash(case)}


def of_plan(document: PlanAnswer) -> list[Row]:
    """Return a row per partitioner and tenant: what the tenant needs alone, and gets together."""
    block = document.block_bytes
    rows = []
    for sized in document.partitions:
        blocks = sized.smallest_blocks
        for at, tenant in enumerate(document.tenants):
            rows.append(
                {
                    "partition": sized.partition,
                    "smallest_blocks": blocks,
                    "smallest_bytes": None if blocks is None else blocks * block,
                    "tenant": tenant.name,
                    "goal_hit_ratio": tenant.goal_hit_ratio,
                    "alone_blocks": tenant.alone_blocks,
                    "best_hit_ratio": tenant.best_hit_ratio,
                    "hit_ratio": _at(sized.hit_ratios, at),
                    "quota_blocks": _at(sized.quota_blocks, at),
                }
            )
    return rows


def _at(values: Sequence[float] | None, place: int) -> float | None:
    return values[place] if values else None


def of_registry(entries: Sequence[Entry]) -> list[Row]:
    """Return a row per entry of a registry; a named scheme has its keys in one cell."""
    return [_of_entry(entry) for entry in entries]


def _of_entry(entry: Entry) -> Row:
    row: Row = {"name": entry.name, "doc": entry.doc, "source": entry.source}
    if isinstance(entry, NamedSchemeEntry):
        keys = [f"{key} = {value}" for key, value in entry.keys.items()]
        return {**row, "keys": keys, "spec": entry.spec}
    return {**row, "needs": entry.needs}


def of_periods(document: CharacterizeAnswer) -> list[Row]:
    """Return a row per period of `characterize`, and the whole trace as period `all`."""
    numbered = enumerate(document.periods, 1)
    rows = [{"period": number, **table(period)} for number, period in numbered]
    return [*rows, {"period": ALL, **table(document.total)}]
