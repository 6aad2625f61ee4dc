"""How a command starts: it leaves heavy libraries alone, and help says what it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command

from cachewright import _native
from cachewright.cli.app import COMMANDS as COMMANDS_OF_APP

HEAVY = {"polars", "altair", "vl_convert", "numpy", "jax", "sklearn"}


def _imported(*words: str) -> set[str]:
    """Return the modules that a command line has imported when it is done."""
    code = (
        "import sys\nfrom cachewright import cli\nstatus = cli.status_of(sys.argv[1:])\n"
        "print(status, *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    status, *modules = done.stdout.splitlines()[-1].split()
    assert status == "0"
    return set(modules)


def test_the_version_is_printed_without_a_library(folder: Path) -> None:
    assert not (HEAVY | {"rich", "cyclopts", "json", "tomllib"}) & _imported("--version")
    done = subprocess.run(
        [sys.executable, "-m", "cachewright", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{_native.__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["run", "--help"],
        ["list", "policies"],
        ["check", "stack.toml"],
        ["run", "stack.toml", "-q"],
        ["compare", "a.csv", "--policy", "lru,fifo", "--csv", "-q"],
        ["trace", "info", "a.csv", "--json"],
    ],
    ids=" ".join,
)
def test_a_command_without_frames_and_drawings_starts_without_their_libraries(
    stack: Path, words: list[str]
) -> None:
    assert not HEAVY & _imported(*words)


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"]], ids=" ".join)
def test_help_is_shown_without_the_classes_of_answers(folder: Path, words: list[str]) -> None:
    assert "cachewright.answers" not in _imported(*words)


def test_the_list_of_commands_says_what_each_command_says(folder: Path, command: Command) -> None:
    for name, (_, sentence) in COMMANDS_OF_APP.items():
        own = " ".join(command(name, "--help").out.split())
        assert sentence in own, name


def test_the_help_of_a_command_has_more_than_its_sentence(folder: Path, command: Command) -> None:
    shown = " ".join(command("compare", "--help").out.split())
    assert "10% and 40% of their working set" in shown


def test_reproduce_says_what_installs_the_laboratory(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cachewright_lab", None)
    answer = command("reproduce", "shiro", "--quick")
    assert answer.status == 2
    assert "expected it: pip install 'cachewright[lab]'" in answer.err
    assert list(folder.iterdir()) == []
