"""Types of the compiled module; a test compares them with what it exports.

For: type checkers and readers. Must never know: how the bodies work. Documents are JSON text.
Columns and call-backs are those of `cachewright.types`; `volume` is an index into `volumes()`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from cachewright.types import Columns, Handed, Progress

__all__ = [
    "SCHEMA_VERSION",
    "Answer",
    "Error",
    "LiveCache",
    "Model",
    "PolicyError",
    "RunError",
    "SpecError",
    "TraceError",
    "TraceMerger",
    "TraceReader",
    "TraceWriter",
    "Verdict",
    "VolumeChoice",
    "WorkloadObserver",
    "__version__",
    "auto_schemes",
    "caching_hits",
    "caching_labels",
    "caching_lessons",
    "caching_table",
    "characterize",
    "characterizer_features",
    "characterizer_rows",
    "check",
    "choices",
    "entries",
    "import_mqsim",
    "info",
    "live",
    "live_calibrate",
    "live_explain",
    "live_load",
    "mqsim_traces",
    "mrc",
    "options",
    "parse_bytes",
    "parse_duration",
    "plan",
    "points",
    "recognise",
    "run",
    "segments",
    "serve",
    "stack_keys",
    "stages",
    "train",
    "wa",
]

__version__: str
SCHEMA_VERSION: int

class Error(Exception): ...
class SpecError(Error): ...
class TraceError(Error): ...
class RunError(Error): ...
class PolicyError(Error): ...

def entries(stage: str) -> str: ...
def stages() -> list[tuple[str, str]]: ...
def auto_schemes(tenants: int, goals: bool, responses: bool) -> tuple[str, str]: ...
def mqsim_traces(workload: tuple[str, str]) -> list[str]: ...
def import_mqsim(
    config: tuple[str, str],
    workload: tuple[str, str] | None,
    places: Mapping[str, tuple[str, str]],
) -> list[tuple[str, str, str, str | None, list[str]]]: ...
def parse_bytes(text: str) -> int: ...
def parse_duration(text: str) -> int: ...
def check(stack: str, origin: str, settings: Sequence[tuple[str, str]]) -> str: ...
def serve(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    say: Callable[[str], None],
    record: str | None,
    changed: Sequence[str],
    discard_dirty: bool,
) -> int: ...
def live(
    tool: str,
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    flag: bool,
    force: bool,
    changed: Sequence[str],
) -> str: ...
def live_calibrate(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    bounds: tuple[int, int],
) -> str: ...
def live_load(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    bounds: tuple[int, int],
    speed: float | None,
) -> str: ...
def live_explain(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    recordings: Sequence[Path],
    volume: str,
    offset_bytes: int,
) -> str: ...
def choices(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    vary: Sequence[tuple[str, Sequence[str]]],
    key: str,
) -> list[tuple[str, str | None]]: ...
def run(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    vary: Sequence[tuple[str, Sequence[str]]],
    *,
    threads: int,
    out: str | None,
    fresh: bool,
    load: Callable[[str, str], Callable[..., Any]] | None,
    progress: Progress | None,
) -> str: ...
def options(command: str) -> str: ...
def stack_keys() -> str: ...
def mrc(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    options: dict[str, Any],
    *,
    threads: int,
    out: str | None = None,
    force: bool = False,
    progress: Progress | None,
) -> str: ...
def segments(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    options: dict[str, Any],
    *,
    threads: int,
    progress: Progress | None,
) -> dict[str, Any]: ...
def caching_lessons(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    options: dict[str, Any],
    *,
    features: str,
    share: float | None,
    until_ns: int | None,
    threads: int,
    progress: Progress | None,
) -> dict[str, Any]: ...
def caching_hits(
    blocks: NDArray[np.uint32],
    flags: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    *,
    capacity_blocks: int,
    requeue_hits: bool,
    uncached_soon: bool,
    first: int,
    last: int,
) -> tuple[int, int, int]: ...
def caching_table(labels: NDArray[np.uint8]) -> bytes: ...
def caching_labels(content: bytes, rows: NDArray[np.float32], own: bool) -> NDArray[np.uint8]: ...
def plan(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    options: dict[str, Any],
    *,
    threads: int,
    out: str | None = None,
    force: bool = False,
    progress: Progress | None,
) -> str: ...
def wa(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    options: dict[str, Any],
    *,
    trainer: Handed | None,
    threads: int,
    out: str | None = None,
    force: bool = False,
    progress: Progress | None,
) -> str: ...
def train(
    stack: str,
    origin: str,
    settings: Sequence[tuple[str, str]],
    options: dict[str, Any],
    *,
    trainer: Handed | None,
    judge: Sequence[tuple[str, str]],
    progress: Progress | None,
) -> tuple[bytes, str]: ...
def info(
    path: str | Sequence[str],
    format: str | None,
    on_bad_record: str,
    options: Mapping[str, str],
    *,
    block: str,
    volume: str | None,
    progress: Progress | None,
) -> str: ...
def characterize(
    path: str | Sequence[str],
    format: str | None,
    on_bad_record: str,
    options: Mapping[str, str],
    *,
    volume: str | None,
    every: str,
    model: bytes | None,
    progress: Progress | None,
) -> str: ...
def characterizer_rows(
    path: str | Sequence[str],
    format: str | None,
    on_bad_record: str,
    options: Mapping[str, str],
    *,
    volume: str | None,
    by: str,
    progress: Progress | None,
) -> list[tuple[str, NDArray[np.uint64], NDArray[np.float32]]]: ...
def characterizer_features(by: str) -> list[str]: ...
def points(
    responses: NDArray[np.float64],
    least_gain: float = ...,
    gain_of: str = "before",
    *,
    from_off: bool = False,
) -> NDArray[np.uint32]: ...
def recognise(path: str) -> str: ...

@final
class Model:
    def __new__(cls, content: bytes) -> Model: ...
    def describe(self) -> str: ...
    def weights(self) -> dict[str, NDArray[np.float32]]: ...
    def outputs(self, sequences: NDArray[np.float32]) -> NDArray[np.float32]: ...
    def quantised(self, sequences: NDArray[np.float32]) -> bytes: ...

@final
class TraceReader:
    def __new__(
        cls,
        path: str | Sequence[str],
        format: str | None,
        on_bad_record: str,
        options: Mapping[str, str],
    ) -> TraceReader: ...
    def paths(self) -> list[Path]: ...
    def read(self, limit: int) -> Columns: ...
    def volumes(self) -> list[str]: ...
    def skipped(self) -> tuple[int, int, list[str]]: ...
    def notes(self) -> list[str]: ...
    def has_times(self) -> bool: ...
    def requests_hint(self) -> int | None: ...

@final
class WorkloadObserver:
    def __new__(
        cls,
        path: str | Sequence[str],
        format: str | None,
        on_bad_record: str,
        options: Mapping[str, str],
        *,
        volume: str | None,
        block: str,
        memory: str,
    ) -> WorkloadObserver: ...
    def requests_hint(self) -> int | None: ...
    def requests(self) -> int: ...
    def advance(self, count: int) -> bool: ...
    def settle(self) -> None: ...
    def answer(self) -> str: ...

@final
class TraceMerger:
    def __new__(
        cls,
        inputs: Sequence[tuple[str, str, str | None, float, int]],
        on_bad_record: str,
        options: Mapping[str, str],
        common_clock: bool = False,
    ) -> TraceMerger: ...
    def paths(self) -> list[Path]: ...
    def read(self, limit: int) -> Columns: ...
    def volumes(self) -> list[str]: ...
    def skipped(self) -> tuple[int, int, list[str]]: ...
    def notes(self) -> list[str]: ...
    def requests_hint(self) -> int | None: ...

@final
class VolumeChoice:
    def __new__(cls, text: str) -> VolumeChoice: ...
    def among(self, volumes: Sequence[str]) -> list[bool]: ...
    def refuse_unknown(self, volumes: Sequence[str]) -> None: ...

@final
class TraceWriter:
    def __new__(cls, path: str, format: str | None, options: Mapping[str, str]) -> TraceWriter: ...
    def write(
        self,
        time_ns: NDArray[np.uint64],
        offset_bytes: NDArray[np.uint64],
        length_bytes: NDArray[np.uint64],
        op: NDArray[np.uint8],
        volume: NDArray[np.uint32],
        volumes: Sequence[str],
    ) -> None: ...
    def finish(self) -> tuple[int, int, int]: ...
    def discard(self) -> None: ...

@final
class Verdict:
    HIT: ClassVar[Verdict]
    BYPASS: ClassVar[Verdict]
    @staticmethod
    def admit(evicted: int | None = None) -> Verdict: ...

@final
class Answer:
    @property
    def hit(self) -> bool: ...
    @property
    def hits(self) -> list[int]: ...
    @property
    def admitted(self) -> list[int]: ...
    @property
    def bypassed(self) -> list[int]: ...
    @property
    def fetched(self) -> list[int]: ...
    @property
    def written_through(self) -> list[int]: ...
    @property
    def evicted(self) -> list[tuple[str, int]]: ...
    @property
    def written_back(self) -> list[tuple[str, int]]: ...
    @property
    def discarded(self) -> list[int]: ...

@final
class LiveCache:
    def __new__(
        cls,
        capacities: Sequence[str],
        policy: str,
        names: Sequence[str],
        *,
        block: str,
        write: str,
        seed: int,
        load: Callable[[str, str], Callable[..., Any]] | None,
    ) -> LiveCache: ...
    def decide(self, op: int, offset: int, length: int, tenant: int, time_ns: int) -> Answer: ...
    def decide_all(
        self,
        op: NDArray[np.uint8],
        offset: NDArray[np.uint64],
        length: NDArray[np.uint64],
        tenant: NDArray[np.uint16],
        time_ns: NDArray[np.uint64],
    ) -> list[NDArray[np.uint32]]: ...
    def resize(self, capacities: Sequence[str]) -> Answer: ...
    def contains(self, tenant: int, block: int) -> bool: ...
    def counters(self, tenant: int) -> list[tuple[str, int]]: ...
    def dirty_blocks(self) -> int: ...
    def audit(self) -> None: ...
