"""Bad input of every kind: one sentence that names file, line or key, exit status 2, little memory.

For: the corpus in `hostile`, run in one process of its own. Must never know: how anything is read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hostile import corpus

CASES = {case.name: case for case in corpus.cases()}
GIB_KIB = 1 << 20


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what became of every case, by name."""
    root = tmp_path_factory.mktemp("hostile")
    done = subprocess.run(
        [sys.executable, "-m", "hostile.process", str(root)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    names = list(CASES)
    stopped = names[len(found)] if len(found) < len(names) else "none"
    assert done.returncode == 0, f"the process ended in case `{stopped}`: {done.stderr[-2000:]}"
    return {one["name"]: one for one in found}


def test_the_corpus_is_large_and_its_names_differ() -> None:
    assert len(list(corpus.cases())) == len(CASES)
    assert len(CASES) >= 300


@pytest.mark.parametrize("name", list(CASES))
def test_bad_input_is_answered_with_one_sentence(
    name: str, answers: dict[str, dict[str, Any]]
) -> None:
    answer, case = answers[name], CASES[name]
    assert answer["status"] == 2, answer
    errors = [line for line in answer["err"].splitlines() if not line.startswith("note: ")]
    assert len(errors) == 1, answer["err"]
    assert errors[0].startswith("error: ")
    assert len(errors[0]) < 1000
    for word in case.words:
        assert word in errors[0], errors[0]
    assert "Traceback" not in answer["err"]


def test_no_bad_input_takes_two_gibibytes(answers: dict[str, dict[str, Any]]) -> None:
    largest = max(answers.values(), key=lambda one: int(one["peak_kib"]))
    assert largest["peak_kib"] < 2 * GIB_KIB, largest["name"]
