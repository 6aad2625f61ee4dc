"""What the program answers to a wide range of stacks and traces is what it answered before.

For: changes that promise to change no number: of `check`, `run`, `compare`, `mrc`, `wa`, `plan`,
`info`, `characterize` and `segments`. The tables of `reproduce` stand in `test_reproduced_answers`.
Must never know: what an answer means.

Answers are kept in `answers/kept/VERB/NAME.json`, as `answers/kept.py` says. A change that moves
numbers on purpose writes them anew, and its difference is read before it is taken:

    CACHEWRIGHT_WRITE_ANSWERS=1 python -m pytest tests/test_answers.py

Not covered: Python's lists of names (`cachewright.list`), the trainers,
schemes of a drive that are written with settings, and what the program says beside its answers.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from answers import corpus, kept
from answers.case import Case

import cachewright
from cachewright import _native

WRITES = "CACHEWRIGHT_WRITE_ANSWERS" in os.environ
SHOWN = 10
CASES = {case.key: case for case in corpus.cases()}
WRITTEN = {
    "run/closed-devices": "result.json",
    "compare/layouts-on-demand": "result.json",
    "mrc/mini": "mrc.json",
    "wa/stack": "wa.json",
    "plan/goals": "plan.json",
}
"""Questions that are also asked with a folder for the answer, and the file in which it is."""

BESIDE = ("series_rows", "series", "throughput", "rooms")
"""Keys of a result that tell where its time series are."""

NAMED = {"schemes"}
"""Stages whose entries stand in questions by the names of others."""

TABLES = ("machine", "array", "log")
"""Entries of the list of devices that are tables of settings."""


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which all questions are asked."""
    folder = tmp_path_factory.mktemp("answers")
    corpus.furnish(folder)
    return folder


@pytest.fixture(autouse=True)
def asked(furnished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask in that folder."""
    monkeypatch.chdir(furnished)


def told(key: str, lines: Iterator[str]) -> str:
    """Return the first differences of an answer, a line each."""
    first = list(itertools.islice(lines, SHOWN + 1))
    more = ["..."] if len(first) > SHOWN else []
    return "\n".join(f"{key}: {line}" for line in first[:SHOWN] + more)


@pytest.mark.parametrize("key", CASES)
def test_an_answer_is_the_kept_one(key: str) -> None:
    document = json.loads(json.dumps(CASES[key].answer()))
    if WRITES:
        kept.write(key, document)
    before = kept.read(key)
    assert before is not None, f"{key}: nothing is kept; CACHEWRIGHT_WRITE_ANSWERS=1 keeps it"
    differences = told(key, kept.differences(before, document))
    assert not differences, f"not as kept:\n{differences}"
    checked = CASES[key].resolved()
    if checked is not None:
        changed = told(key, kept.differences(checked, document["spec"]))
        assert not changed, f"`check` says otherwise:\n{changed}"


@pytest.mark.parametrize("key", WRITTEN)
def test_what_is_written_is_what_is_answered(key: str, tmp_path: Path) -> None:
    case = CASES[key]
    written = Case(case.verb, case.name, case.spec, {**case.arguments, "out": tmp_path})
    assert written.answer()
    before = kept.read(key)
    after = json.loads((tmp_path / WRITTEN[key]).read_text())
    series = tmp_path / "series.parquet"
    if series.exists():
        rows = pl.read_parquet(series).select(
            *("case", "window", "time_ns", "tenant", "accesses", "hits"),
            *("occupancy_blocks", "quota_blocks", "state"),
        )
        found = [list(row) for row in rows.rows()]
        assert not told(key, kept.differences(before["series_rows"], found))
    old, new = ({k: v for k, v in one.items() if k not in BESIDE} for one in (before, after))
    differences = told(key, kept.differences(old, new))
    assert not differences, f"not as kept:\n{differences}"


def test_every_kept_answer_has_a_question() -> None:
    found = {str(path.relative_to(kept.FOLDER)) for path in kept.FOLDER.rglob("*.json")}
    stale = sorted(name for name in found if name.removesuffix(".json") not in CASES)
    stale = [name for name in stale if not name.startswith("reproduce")]
    if WRITES:
        for name in stale:
            (kept.FOLDER / name).unlink()
    assert WRITES or stale == []
    assert len(CASES) == sum(1 for _ in corpus.cases()), "two questions of one name"


def test_every_name_of_the_registries_is_asked_about() -> None:
    asked = set(corpus.words(list(CASES.values())))
    stages = {stage for stage, _ in _native.stages()} - NAMED
    for stage in sorted(stages):
        names = [entry.name for entry in cachewright.list(stage) if entry.name not in TABLES]
        assert [name for name in names if name not in asked] == [], f"{stage} without a question"


def test_a_difference_has_a_path() -> None:
    document = {
        "cachewright": "0.1.0",
        "schema_version": 1,
        "cases": [{"total": {"hits": 3, "ratio": 1.0}, "series": list(range(200))}],
    }
    small = json.loads(kept.text(kept.small(document)))
    assert list(small) == ["cases"]
    assert kept.is_digest(small["cases"][0]["series"])
    assert not list(kept.differences(small, document))
    one: dict[str, Any] = json.loads(json.dumps(document))
    one["cases"][0]["total"] = {"ratio": 1, "hits": 4, "misses": 0}
    one["cases"][0]["series"][7] = 0
    series = kept.compact(one["cases"][0]["series"])[: kept.LONG_GROUP]
    assert list(kept.differences(small, one)) == [
        "cases[0].total.hits: kept 3, found 4",
        "cases[0].total.ratio: kept 1.0, found 1",
        "cases[0].total.misses: kept nothing, found 0",
        f"cases[0].series: kept other values than {series}...",
    ]
    one = json.loads(json.dumps(document))
    one["cases"][0]["total"] = {"ratio": 1.0, "hits": 3}
    assert list(kept.differences(small, one)) == [
        "cases[0].total: kept the keys in the order hits, ratio, found ratio, hits"
    ]


def test_a_long_document_keeps_what_it_can() -> None:
    cases = [{"case": at, "inner": {"values": [1.5] * 20, "more": "x" * 60}} for at in range(60)]
    document = {"cases": cases}
    small = kept.small(document)
    assert len(kept.compact(small)) <= kept.LONG_DOCUMENT
    assert small["cases"][0]["case"] == 0
    assert not list(kept.differences(json.loads(kept.text(small)), document))
    cases[59]["inner"] = {}
    assert len(list(kept.differences(small, document))) == 1
