"""Records of `characterize`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class CharacterizeAnswer(Record):
    """The answer of `characterize`."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Names of the volumes, by number.
    volumes: tuple[str, ...]
    # Path of the trace.
    path: str
    # Name of the characterizer; null without a model.
    characterizer: str | None = None
    # The kinds of workload that the model knows; empty without a model.
    kinds: tuple[str, ...]
    # Length of a period: a duration with unit, or a number of requests.
    every: str
    # Whether the length was chosen by the trace's span.
    every_chosen: bool
    # Counts of the whole trace.
    total: PeriodCounts
    # The periods, in order of time.
    periods: tuple[JudgedPeriod, ...]


class PeriodCounts(Record):
    """Counts of one stretch of a trace."""

    # Where it begins.
    start_ns: int
    # Its latest request.
    end_ns: int
    # Requests that read.
    reads: int
    # Requests that write.
    writes: int
    # Requests that trim.
    trims: int
    # Requests that flush.
    flushes: int
    # Reads and writes per second; 0 where all arrive at one time.
    rate_per_s: float
    # Share of reads among reads and writes, 0 to 1.
    read_share: float
    # Bytes read.
    read_bytes: int
    # Bytes written.
    write_bytes: int
    # Mean bytes of a read or write.
    mean_bytes: float
    # Shares of reads and writes by class.
    classes: ClassShares
    # Shares of their bytes by class.
    class_bytes: ClassShares
    # Bytes of the distinct pages read or written.
    working_set_bytes: int


class ClassShares(Record):
    """Shares by class of request, 0 to 1; together 1."""

    # Share of sequential requests.
    sequential: float
    # Share of requests that overlap recent ones.
    overlapped: float
    # Share of requests at a constant distance.
    strided: float
    # Share of all others.
    random: float


class JudgedPeriod(Record):
    """One period with its judgements."""

    # Where it begins.
    start_ns: int
    # Its latest request.
    end_ns: int
    # Requests that read.
    reads: int
    # Requests that write.
    writes: int
    # Requests that trim.
    trims: int
    # Requests that flush.
    flushes: int
    # Reads and writes per second; 0 where all arrive at one time.
    rate_per_s: float
    # Share of reads among reads and writes, 0 to 1.
    read_share: float
    # Bytes read.
    read_bytes: int
    # Bytes written.
    write_bytes: int
    # Mean bytes of a read or write.
    mean_bytes: float
    # Shares of reads and writes by class.
    classes: ClassShares
    # Shares of their bytes by class.
    class_bytes: ClassShares
    # Bytes of the distinct pages read or written.
    working_set_bytes: int
    # Judgements of the volumes with requests in the period; empty without a model.
    judged: tuple[KindJudgement, ...]


class KindJudgement(Record):
    """The kind of workload on one volume at the end of a period."""

    # Number of the volume.
    volume: int
    # The kind of workload.
    kind: str
    # Score of that kind, 0 to 1.
    confidence: float
    # A score per kind; together 1.
    scores: tuple[float, ...]
