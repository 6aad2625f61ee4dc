"""Stack files and names that no run may start from: one sentence each, exit status 2.

For: the command line's share; the experiment room tests keys and values. Must never know: how a
stack is run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Command

from cachewright import api


def _refused(command: Command, *arguments: str | Path) -> str:
    answer = command(*arguments)
    assert answer.status == 2, answer.err
    assert answer.out == ""
    (line,) = answer.err.splitlines()
    assert line.startswith("error: ")
    return line


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)))


def _large(path: Path) -> None:
    path.write_text("#" * (5 << 20))


def _empty(path: Path) -> None:
    path.write_text("")


def _absent(path: Path) -> None:
    assert not path.exists()


def _deep(path: Path) -> None:
    path.write_text("a = " + "[" * 100_000)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (_folder, "found a folder, expected a stack file"),
        (_pipe, "found a pipe, expected a stack file"),
        (_binary, "found a byte that is not UTF-8"),
        (_large, "found 5MiB, expected a stack file (TOML) of at most 4MiB"),
        (_empty, "found no `[cache]` table"),
        (_absent, "no such file or directory; expected a stack file"),
        (_deep, "x.toml: line 1, column"),
    ],
)
def test_what_is_no_stack_file_is_refused_in_one_sentence(
    folder: Path, command: Command, make: Callable[[Path], None], expected: str
) -> None:
    make(folder / "x.toml")
    for verb in ("run", "check"):
        assert expected in _refused(command, verb, "x.toml")


def test_no_name_leads_out_of_the_results_folder(stack: Path, command: Command) -> None:
    inner = stack.parent / "inner"
    inner.mkdir()
    text = stack.read_text().replace('"two"', '"../../outside"')
    stack.write_text(text.replace('"a.csv"', f'"{stack.parent}/a.csv"'))
    line = _refused(command, "run", stack, "--report")
    assert "`name`: found `../../outside`, expected a name without `/`" in line
    assert not list(stack.parent.rglob("*outside*"))


def test_a_tenant_with_control_characters_never_reaches_the_charts(
    stack: Path, command: Command
) -> None:
    line = _refused(command, "run", "stack.toml", "--report", "--set", "tenant.a.name=x\u0001")
    assert "`tenant[1].name`: found `x\\u{1}`" in line


def test_the_result_of_another_stack_stays(stack: Path, command: Command) -> None:
    assert command("run", "stack.toml", "--out", "r").status == 0
    before = (stack.parent / "r" / "result.json").read_bytes()
    words = ["run", "stack.toml", "--set", "name=other", "--out", "r"]
    assert "r: found the result of `two` (a from a.csv" in _refused(command, *words)
    assert (stack.parent / "r" / "result.json").read_bytes() == before
    assert command(*words, "--fresh").status == 0
    assert (stack.parent / "r" / "result.json").read_bytes() != before


def test_an_interrupted_run_ends_with_130_and_says_what_is_kept(
    stack: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        stop = KeyboardInterrupt()
        stop.add_note("2 of 6 cases are kept in r; the same command goes on from there")
        raise stop

    monkeypatch.setattr(api, "compare", interrupted)
    answer = command("run", "stack.toml", "--out", "r")
    assert answer.status == 130
    expected = "error: interrupted; 2 of 6 cases are kept in r; the same command goes on from there"
    assert answer.err.splitlines() == [expected]


def test_any_trace_can_be_simulated_whatever_its_name(traces: Path) -> None:
    for name in ("all.csv", "a\\b.csv", "x" * 240 + ".csv"):
        (traces / name).write_text((traces / "a.csv").read_text())
        assert api.simulate(traces / name).document["tenants"][0]["requests"] == 4000
