"""Small traces and stacks that every test can use.

For: fixtures. Must never know: files outside the test's own folder.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cachewright import cli

REQUESTS = 4000
BLOCKS = 500


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
