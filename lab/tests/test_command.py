"""`cachewright reproduce` from outside: what it refuses, and figures as tasks of an engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures import Command


def _files(folder: str) -> dict[str, bytes]:
    """Return what a result folder holds, but for journals."""
    found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in found
        if path.suffix != ".journal"
    }


def test_figures_of_a_paper_are_tasks(folder: Path, command: Command) -> None:
    words = ["reproduce", "shiro", "fig7", "--quick", "-q"]
    assert command(*words, "--out", "whole").status == 0
    assert command(*words, "--out", "parts", "--engine", "local").status == 0
    whole, parts = _files("whole"), _files("parts")
    assert whole["measures.json"] == parts["measures.json"]
    assert whole["tables.md"] == parts["tables.md"]
    cases = {name for name in whole if "/cases/" in name}
    assert cases
    assert cases == {name for name in parts if "/cases/" in name}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nine"], "found paper `nine`, expected one of icache, oc-cache, rc-rnn, shiro, soft-qos"),
        (["rc-rnn", "--quick", "--out", "a.csv"], "a.csv: found a file, expected a folder"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    traces: Path, command: Command, words: list[str], said: str
) -> None:
    answer = command("reproduce", *words)
    assert answer.status == 2
    assert said in answer.err
