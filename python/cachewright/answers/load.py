"""Records of `load`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class LoadAnswer(Record):
    """The answer of `live load`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # The tenants, in the order of the stack file.
    tenants: tuple[LoadedTenant, ...]


class LoadedTenant(Record):
    """What was sent to the export of a tenant."""

    # The name of the tenant.
    name: str
    # The name of its export.
    export: str
    # From the first request to the last answer.
    seconds: float
    # Requests of the trace that were sent or skipped.
    sent: int
    # Requests of the trace that lie beyond the export, or have no bytes.
    skipped: int
    # Requests as they were sent, long ones in pieces, by kind.
    requests: tuple[LoadedRequests, ...]


class LoadedRequests(Record):
    """Answers to requests of one kind."""

    # The kind: `read`, `write`, `flush`, `trim`.
    kind: str
    # Requests.
    count: int
    # Bytes that they asked for.
    bytes: int
    # Requests that were answered with an error.
    errors: int
    # The mean time to the answer.
    mean_us: float
    # The median.
    p50_us: float
    # The time that 99 % do not exceed.
    p99_us: float
    # The time that 99.9 % do not exceed.
    p999_us: float
