"""How a command starts: it imports what it needs and nothing else, and help says what it does.

For: `cachewright.cli.app` and `cachewright.cli.direct`. Must never know: how long anything takes;
time belongs in benches.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command

from cachewright import _native
from cachewright.cli import direct
from cachewright.cli.app import COMMANDS as COMMANDS_OF_APP

HEAVY = {"polars", "altair", "vl_convert", "numpy", "jax", "sklearn"}
# What a plain `run STACK` starts without, too: the parser of options, what draws on a terminal, and
# what makes classes slowly.
BESIDE = {"cyclopts", "rich", "attrs", "inspect", "dataclasses", "tomllib", "decimal"}
# Modules of the package that a plain `run STACK` may import, and of all others.
OWN_MODULES, ALL_MODULES = 33, 130
# What the reader of plain command lines imports.
DIRECT = {f"cachewright.cli.{name}" for name in ("direct", "replay", "progress")}


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


def test_the_version_imports_no_library(folder: Path) -> None:
    imported = _imported("--version")
    assert not (HEAVY | {"rich", "cyclopts", "json", "tomllib"}) & imported
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
def test_a_command_imports_what_it_needs(stack: Path, words: list[str]) -> None:
    imported = _imported(*words)
    assert not HEAVY & imported
    if words == ["--help"]:
        assert not {name for name in imported if name.startswith("cachewright.cli.run")}


PLAIN = [
    ["run", "stack.toml"],
    ["run", "stack.toml", "-q", "--out", "folder", "--fresh"],
    ["run", "--threads=1", "stack.toml", "--set", "cache.policy=fifo", "--set=cache.capacity=1MiB"],
    ["run", "./stack.toml", "--out=folder"],
]


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_a_plain_run_starts_without_a_parser_of_options(stack: Path, words: list[str]) -> None:
    imported = _imported(*words)
    assert not (HEAVY | BESIDE) & imported
    own = [name for name in imported if name.startswith("cachewright")]
    assert len(own) <= OWN_MODULES, sorted(own)
    assert len(imported) <= ALL_MODULES, sorted(imported)


def test_help_imports_no_more_than_the_parser_of_options(stack: Path) -> None:
    imported = _imported("--help")
    assert not HEAVY & imported
    own = {name for name in imported if name.startswith("cachewright.")}
    commands = {"cachewright.cli", "cachewright.cli.app", "cachewright.cli.output"}
    assert not {name for name in own if name.startswith("cachewright.cli.")} - commands - DIRECT


@pytest.mark.parametrize(
    "words",
    [
        *PLAIN,
        ["run", "stack.toml", "--json"],
        ["run", "stack.toml", "--csv", "--quiet"],
        ["run", "missing.toml"],
        ["run", "stack.toml", "--set", "cache.polcy=lru"],
        ["run", "stack.toml", "--set", " cache.policy = fifo "],
        ["run", "stack.toml", "--set=cache.policy=fifo", "--set=cache.policy=lru"],
        ["run", "stack.toml", "--out", "a b"],
    ],
    ids=" ".join,
)
def test_a_plain_run_is_what_the_parser_of_options_reads(
    stack: Path, words: list[str], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert direct.read(words) is not None
    found = command(*words)
    files = _files(stack.parent)
    for folder in ("folder", "a b"):
        shutil.rmtree(stack.parent / folder, ignore_errors=True)
    monkeypatch.setattr(direct, "read", lambda _: None)
    assert command(*words) == found
    assert _files(stack.parent) == files


def _files(folder: Path) -> dict[str, bytes]:
    """Return what every result below a folder holds."""
    files = sorted(folder.glob("*/result.json"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["compare", "stack.toml"],
        ["run"],
        ["run", "a.csv"],
        ["run", "stack.toml", "other.toml"],
        ["run", "stack.toml", "--help"],
        ["run", "stack.toml", "--report"],
        ["run", "stack.toml", "--policy", "lru"],
        ["run", "stack.toml", "--json", "--csv"],
        ["run", "stack.toml", "--fresh", "--fresh"],
        ["run", "stack.toml", "--fresh=yes"],
        ["run", "stack.toml", "--out"],
        ["run", "stack.toml", "--out", "a", "--out", "b"],
        ["run", "stack.toml", "--out", "--fresh"],
        ["run", "stack.toml", "--threads", "-1"],
        ["run", "stack.toml", "--threads", "1025"],
        ["run", "stack.toml", "--threads", "1_0"],
        ["run", "stack.toml", "--set", "cache.policy"],
        ["run", "stack.toml", "--set", "=lru"],
        ["run", "stack.toml", "--", "--fresh"],
    ],
    ids=" ".join,
)
def test_all_other_command_lines_are_left_to_the_parser_of_options(words: list[str]) -> None:
    assert direct.read(words) is None


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
