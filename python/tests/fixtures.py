"""Small traces and stacks that every test can use, and no test that depends on time.

For: the fixtures of the product's tests and of the laboratory's, and the one profile of hypothesis:
no deadline, and no complaint that a loaded machine makes inputs slowly. Must never know: files
outside the test's own folder.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, settings

from cachewright import cli
from cachewright.cli import progress

settings.register_profile(
    "timeless",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("timeless")

RESULT_SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schema" / "result.json"
REQUESTS = 4000
BLOCKS = 500
# Twenty rounds over sixty blocks.
LOOP = [4096 * (at % 60) for at in range(1200)]


def frame(offsets: list[int], op: str = "read", gap_ns: int = 20_000_000) -> pl.DataFrame:
    """Return a trace of whole blocks."""
    return pl.DataFrame(
        {
            "time_ns": [gap_ns * at for at in range(len(offsets))],
            "offset_bytes": offsets,
            "length_bytes": [4096] * len(offsets),
            "op": [op] * len(offsets),
        }
    )


def by_file(config: pytest.Config, log: Any, together: Collection[str] = ()) -> Any:
    """Return a scheduler that keeps the tests of a file in one process, and those of `together`.

    `--dist loadgroup` would do, but sees no group under pytest 9: it marks ids that are not kept.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            stem = Path(nodeid.split("::", 1)[0]).stem
            return "together" if stem in together else stem

    config.option.loadscopereorder = False
    return Files(config, log)


def longest_first(items: list[pytest.Item], longest: Sequence[str]) -> None:
    """Put the longest files first, so that no process waits for one of them at the end.

    The order of the others stays.
    """
    place = {stem: position for position, stem in enumerate(longest)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@dataclass(frozen=True)
class Answer:
    """What a command line gave."""

    status: int
    out: str
    err: str


def trace_text(seed: int, requests: int = REQUESTS) -> str:
    """Return a trace in Alibaba's columns: skewed reads and writes of 4 to 16 KiB."""
    rng = random.Random(seed)
    lines = []
    for number in range(requests):
        block = int(BLOCKS * rng.random() ** 3)
        op = "R" if rng.random() < 0.7 else "W"
        length = 4096 * rng.choice([1, 1, 2, 4])
        lines.append(f"{seed},{op},{block * 4096},{length},{number * 1000}")
    return "\n".join(lines) + "\n"


def fits_schema(kind: str, document: object) -> None:
    """Check a document against its type in the schema of results."""
    from jsonschema import Draft202012Validator

    schema = json.loads(RESULT_SCHEMA.read_text(encoding="utf-8"))
    own = {"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]}
    found = [error.message for error in Draft202012Validator(own).iter_errors(document)]
    assert found == []


class StoppedClock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    """Stop the clock of progress: a slow machine shows no more of it than a fast one."""
    stopped = StoppedClock()
    monkeypatch.setattr(progress, "time", stopped)
    return stopped


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


@pytest.fixture
def traces(folder: Path) -> Path:
    """Return a folder with the traces `a.csv` and `b.csv`."""
    (folder / "a.csv").write_text(trace_text(1))
    (folder / "b.csv").write_text(trace_text(2))
    return folder


@pytest.fixture
def stack(traces: Path) -> Path:
    """Return a stack file of two tenants."""
    path = traces / "stack.toml"
    path.write_text(
        'name = "two"\n[cache]\ncapacity = "512KiB"\npolicy = "lru"\n[replay]\nwindows = 10\n'
        '[[tenant]]\nname = "a"\ntrace = "a.csv"\n[[tenant]]\nname = "b"\ntrace = "b.csv"\n'
    )
    return path


Command = Callable[..., Answer]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command line in this process."""

    def run(*arguments: str | Path) -> Answer:
        capsys.readouterr()
        try:
            status = cli.status_of([str(argument) for argument in arguments])
        except SystemExit as done:
            status = int(done.code or 0)
        captured = capsys.readouterr()
        return Answer(status, captured.out, captured.err)

    return run
