"""Results as flat rows, for `--csv`.

For: one row per case and tenant, point, scheme or period, with the names and units of the result
document. Must never know: how rows are printed. Units: bytes, blocks, nanoseconds, ratios in 0..1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cachewright import timing
from cachewright.result import ALL, capacity, case_keys, flash

Document = dict[str, Any]
Row = dict[str, Any]


def of_result(document: Document) -> list[Row]:
    """Return a row per case and tenant, and one for `all`; a drive's numbers stand with `all`."""
    return [row for case in document["cases"] for row in _of_case(case)]


def _of_case(case: Document) -> Iterator[Row]:
    head = {**case_keys(case), **capacity(case)}
    times: dict[str, Row] = {}
    if timing.is_timed(case):
        found = [*case["timing"]["tenants"], {"name": ALL, **case["timing"]["total"]}]
        times = {line["name"]: timing.flat(line) for line in found}
    for tenant in case["tenants"]:
        rest = {key: value for key, value in tenant.items() if key != "name"}
        yield {**head, "tenant": tenant["name"], **rest, **times.get(tenant["name"], {})}
    yield {**head, "tenant": ALL, **case["total"], **times.get(ALL, {}), **flash(case)}


def of_plan(document: Document) -> list[Row]:
    """Return a row per partitioner and tenant: what the tenant needs alone, and gets together."""
    block = int(document["block_bytes"])
    rows = []
    for sized in document["partitions"]:
        blocks = sized["smallest_blocks"]
        for at, tenant in enumerate(document["tenants"]):
            rows.append(
                {
                    "partition": sized["partition"],
                    "smallest_blocks": blocks,
                    "smallest_bytes": None if blocks is None else blocks * block,
                    "tenant": tenant["name"],
                    "goal_hit_ratio": tenant["goal_hit_ratio"],
                    "alone_blocks": tenant["alone_blocks"],
                    "best_hit_ratio": tenant["best_hit_ratio"],
                    "hit_ratio": _at(sized["hit_ratios"], at),
                    "quota_blocks": _at(sized["quota_blocks"], at),
                }
            )
    return rows


def _at(values: list[Any] | None, place: int) -> Any:
    return values[place] if values else None


def of_registry(entries: list[Document]) -> list[Row]:
    """Return a row per entry of a registry."""
    return [
        {key: entry.get(key) for key in ("name", "doc", "source", "needs")} for entry in entries
    ]


def of_periods(document: Document) -> list[Row]:
    """Return a row per period of `characterize`, and the whole trace as period `all`."""
    numbered = enumerate(document["periods"], 1)
    rows = [{"period": number, **period} for number, period in numbered]
    return [*rows, {"period": ALL, **document["total"]}]
