"""Records of `run`, generated: see `cachewright.answers`."""

from __future__ import annotations

from typing import Any

from cachewright.answers.case import Case
from cachewright.answers.facts import TenantFacts
from cachewright.record import Record, absent


class RunAnswer(Record):
    """The answer of `run` and `compare`: every combination of what is varied."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Name of the stack.
    name: str
    # The stack file with every default filled in.
    spec: Any
    # Totals of the workload of the first case.
    workload: Workload
    # The trace of each tenant, in the order of the stack file.
    tenants: tuple[TenantFacts, ...]
    # The keys that are varied, in full.
    varied: tuple[str, ...]
    # The cases, in the order of their numbers.
    cases: tuple[Case, ...]
    # Exact LRU curves of all tenants together (`all`) and of each; empty unless asked for.
    curves: tuple[TenantCurve, ...]
    # File of the time series, in the result folder; absent without a folder.
    series: str | None = absent()
    # File of the throughput windows; absent without windows or without a folder.
    throughput: str | None = absent()
    # File of the windows of block regions; absent without regions or without a folder.
    rooms: str | None = absent()
    # Cases whose answers were kept from before. It is not written into the folder.
    reused: int | None = absent()
    # The time series as rows; absent with a folder.
    series_rows: tuple[tuple[int, int, int, int, int, int, int, int, int], ...] | None = absent()


class Workload(Record):
    """Totals of a workload."""

    # Requests of all kinds.
    requests: int
    # Accesses to single blocks.
    block_accesses: int
    # Distinct blocks.
    distinct_blocks: int
    # Time of the last request, in nanoseconds since the first.
    span_ns: int
    # Bytes of all distinct blocks.
    working_set_bytes: int


class TenantCurve(Record):
    """An exact LRU curve of one tenant, or of all together."""

    # Name of the tenant; `all` for all together.
    tenant: str
    # Points: cache size in blocks, miss ratio (0 to 1).
    points: tuple[tuple[int, float], ...]
