"""Result documents of a made-up run, by formula.

For: testing tables and reports without running anything. Must never know: the compiled module. The
numbers are plausible, not true.
"""

from __future__ import annotations

import math
from typing import Any

from filled import filled

from cachewright.answers import RunAnswer
from cachewright.results import Result

BLOCK = 4096
WINDOWS = 60
TENANTS = ("oltp", "web", "mail")
POLICIES = ("lru", "arc", "s3-fifo")
PARTITIONS = ("shared", "hull")
CAPACITIES = {"32MiB": 8192, "64MiB": 16384, "128MiB": 32768}


def _counts(accesses: int, hit_ratio: float) -> dict[str, Any]:
    hits = int(accesses * hit_ratio)
    reads = accesses * 7 // 10
    read_hits = int(reads * min(1.0, hit_ratio * 1.03))
    return {
        "accesses": accesses,
        "hits": hits,
        "misses": accesses - hits,
        "hit_ratio": hits / accesses,
        "read_accesses": reads,
        "read_hits": read_hits,
        "read_hit_ratio": read_hits / reads,
        "write_accesses": accesses - reads,
        "write_hits": hits - read_hits,
        "requests": accesses // 3,
        "request_hits": hits // 4,
        "admissions": accesses - hits,
        "bypasses": 0,
        "evictions": max(accesses - hits - 5000, 0),
        "writebacks": (accesses - hits) // 3,
        "cache_writes": accesses - hits // 2,
        "backing_reads": (accesses - hits) * 2 // 3,
        "backing_writes": (accesses - hits) // 3,
    }


def _case(number: int, policy: str, partition: str, capacity: str) -> dict[str, Any]:
    blocks = CAPACITIES[capacity]
    base = 0.3 + 0.12 * math.log2(blocks / 4096)
    base += {"lru": 0.0, "arc": 0.03, "s3-fifo": 0.045}[policy]
    base += 0.02 if partition == "hull" else 0.0
    tenants = []
    for index, name in enumerate(TENANTS):
        counts = _counts(300_000 * (index + 1), base - 0.05 * index)
        quota = blocks // 3
        tenants.append({"name": name, **counts, "quota_blocks": quota, "occupancy_blocks": quota})
    settings = {
        "cache.policy": policy,
        "cache.partition": partition,
        "cache.capacity": capacity,
        "cache.write": "write-back",
    }
    return {
        "case": number,
        "settings": settings,
        "capacity_blocks": blocks,
        "block_bytes": BLOCK,
        "total": {**_counts(1_800_000, base - 0.06), "dirty_blocks": 100},
        "tenants": tenants,
    }


def _series(cases: list[dict[str, Any]]) -> list[list[int]]:
    rows = []
    for case in cases:
        blocks = case["capacity_blocks"]
        for window in range(WINDOWS):
            for tenant in range(len(TENANTS)):
                accesses = 2000 + int(800 * math.sin(window / 5 + tenant))
                ratio = case["tenants"][tenant]["hit_ratio"] + 0.1 * math.sin(window / 7 + tenant)
                occupancy = int(blocks / 3 * (1 + 0.2 * math.sin(window / 9 + 2 * tenant)))
                hits = int(accesses * ratio)
                time_ns = (window + 1) * 2_000_000_000
                quota = blocks // 3
                state = 1 + (occupancy <= quota) + (occupancy == quota)
                head = [case["case"], window, time_ns, tenant]
                rows.append([*head, accesses, hits, occupancy, quota, state])
    return rows


def _tenant(index: int, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "trace": f"data/{name}.csv.zst",
        "format": "alibaba",
        "requests": 100_000 * (index + 1),
        "reads": 70_000,
        "writes": 29_000,
        "trims": 500,
        "flushes": 500,
        "read_bytes": 900 << 20,
        "write_bytes": 300 << 20,
        "distinct_blocks": 60_000,
        "block_accesses": 300_000 * (index + 1),
        "span_ns": 120_000_000_000,
        "skipped_bad": 2 if index == 1 else 0,
        "skipped_irrelevant": 0,
        "skipped_examples": ["line 3, column 2: found `<x>`, expected R or W"] if index else [],
        "out_of_order": 0,
        "has_times": True,
    }


def result_document(single: bool = False) -> dict[str, Any]:
    """Return a comparison of policies, partitions and capacities, or a single case."""
    combos = [(p, q, c) for p in POLICIES for q in PARTITIONS for c in CAPACITIES]
    combos = combos[:1] if single else combos
    cases = [_case(number, *combo) for number, combo in enumerate(combos)]
    curves = [
        {
            "tenant": name,
            "points": [
                [1 << k, 0.9 * math.exp(-(1 << k) / (9000.0 * (index + 1))) + 0.08]
                for k in range(17)
            ],
        }
        for index, name in enumerate((*TENANTS, "all"))
    ]
    return {
        "cachewright": "0.1.0",
        "schema_version": 1,
        "name": "mixed <tenants>",
        "spec": {
            "name": "mixed <tenants>",
            "seed": 1,
            "cache": {"capacity": "64MiB", "block": "4KiB", "policy": "lru"},
            "tenant": [{"name": name, "trace": f"data/{name}.csv.zst"} for name in TENANTS],
        },
        "workload": {
            "requests": 600_000,
            "block_accesses": 1_800_000,
            "distinct_blocks": 180_000,
            "span_ns": 120_000_000_000,
            "working_set_bytes": 180_000 * BLOCK,
        },
        "tenants": [_tenant(index, name) for index, name in enumerate(TENANTS)],
        "varied": [] if single else ["cache.policy", "cache.partition", "cache.capacity"],
        "cases": cases,
        "curves": curves,
        "series_rows": _series(cases),
    }


def result_of(document: dict[str, Any]) -> Result:
    """Return the result of a document; fields that it lacks are empty or zero."""
    return Result(filled(RunAnswer, document))
