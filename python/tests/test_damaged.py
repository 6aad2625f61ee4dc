"""Damaged result folders: `report` says in one sentence what is wrong.

For: `cachewright.documents` and `cachewright.cli.report`. Must never know: how reports are drawn.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from hypothesis import given, settings
from hypothesis import strategies as st

from cachewright import SpecError, _native, documents
from cachewright.results import Result

WA = ("--superblock", "16KiB", "--op", "50%", "--separation", "none,sepbit")


@pytest.fixture
def result(stack: Path, command: Command) -> Path:
    """Return the folder of a finished run."""
    answer = command("run", "stack.toml", "--out", "r")
    assert answer.status == 0, answer.err
    return stack.parent / "r"


def _changed(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda document: {**document, **values}


def _refused(command: Command, folder: str, *expected: str) -> None:
    answer = command("report", folder)
    assert (answer.status, answer.out) == (2, ""), answer
    assert answer.err.startswith(f"error: {folder}")
    assert answer.err.count("\n") == 1
    for part in expected:
        assert part in answer.err


DAMAGES: list[tuple[Callable[[dict[str, Any]], Any], list[str]]] = [
    (lambda _: {}, ["without a `cachewright` version", "a result of `run` or `compare`"]),
    (lambda _: [1, 2], ["without a `cachewright` version"]),
    (lambda _: "text", ["without a `cachewright` version"]),
    (_changed(cachewright=3), ["without a `cachewright` version"]),
    (_changed(schema_version=9), ["with version `9` of its schema", "run the command again"]),
    (_changed(schema_version=None), ["with no version of its schema, expected version 1"]),
    (_changed(cases=None), ["result.cases: found null, expected a list"]),
    (_changed(name=7), ["result.name: found an integer, expected text"]),
    (_changed(cases=[]), ["found a damaged result"]),
    (_changed(cases=[{}]), ["result.cases[0]: found no key `case`, expected one"]),
    (_changed(cases=["x"]), ["result.cases[0]: found text, expected an object"]),
    (_changed(name="a\x1b[1m"), ["found the name `a?[1m`", "control characters"]),
    (_changed(workload={}), ["result.workload: found no key `requests`", "of `run` or `compare`"]),
]


@pytest.mark.parametrize(("damage", "expected"), DAMAGES)
def test_a_damaged_document_is_refused_in_one_sentence(
    result: Path, command: Command, damage: Callable[[dict[str, Any]], Any], expected: list[str]
) -> None:
    file = result / "result.json"
    file.write_text(json.dumps(damage(json.loads(file.read_text()))))
    _refused(command, "r", "r/result.json: ", *expected)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000], ids=repr)
def test_what_is_no_document_is_refused_in_one_sentence(
    result: Path, command: Command, content: bytes
) -> None:
    (result / "result.json").write_bytes(content)
    _refused(command, "r", "r/result.json: found no JSON")


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "other"])
def test_a_damaged_series_is_refused_in_one_sentence(
    result: Path, command: Command, damage: str
) -> None:
    file = result / "series.parquet"
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "other":
        documents.frame([{"case": 1}]).write_parquet(file)
    else:
        flipped = content[:-60] + bytes(60)
        file.write_bytes({"empty": b"", "cut": content[:-20], "flipped": flipped}[damage])
    _refused(command, "r", "r/series.parquet: found no ")


def test_a_result_names_only_its_own_series(result: Path) -> None:
    file = result / "result.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "series": "../../elsewhere.parquet"}))
    assert Result.load(result).series.height > 0


KEYS = st.lists(st.integers(0, 1000), min_size=1, max_size=6)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.just([]))


@given(KEYS, VALUES)
@settings(max_examples=150)
def test_no_change_of_a_document_ends_in_a_traceback(
    tmp_path: Path, keys: list[int], value: Any
) -> None:
    document: Any = {
        "cachewright": _native.__version__,
        "schema_version": _native.SCHEMA_VERSION,
        "name": "x",
        "spec": {"replay": {}},
        "workload": {"requests": 1},
        "tenants": [{"name": "a"}],
        "varied": [],
        "cases": [{"settings": {"cache.policy": "lru"}, "tenants": [{"name": "a"}]}],
    }
    place = document
    for key in keys[:-1]:
        inner = [item for item in _items(place) if isinstance(item, dict | list) and item]
        place = inner[key % len(inner)] if inner else place
    spots = list(range(len(place))) if isinstance(place, list) else list(place)
    place[spots[keys[-1] % len(spots)]] = value
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document))
    with contextlib.suppress(SpecError), documents.whole(file):
        Result.load(tmp_path).best()


def _items(place: Any) -> list[Any]:
    return list(place.values()) if isinstance(place, dict) else list(place)


def test_a_result_of_wa_has_its_own_report(traces: Path, command: Command) -> None:
    assert command("wa", "a.csv", *WA, "--out", "w").status == 0
    answer = command("report", "w", "--figures", "svg")
    assert (answer.status, answer.out) == (0, "report: w/report.html\n"), answer.err
    assert "sepbit" in (traces / "w" / "report.html").read_text()
    assert list((traces / "w" / "figures").glob("*.svg"))
    file = traces / "w" / "wa.json"
    file.write_text(file.read_text().replace('"schema_version": ', '"schema_version": 9'))
    _refused(command, "w", "w/wa.json: found a result of", "version `91` of its schema")
    file.write_text("{}")
    _refused(command, "w", "w/wa.json: ", "a result of `wa`")


@pytest.mark.parametrize("file", ["mrc.json", "plan.json"])
def test_a_damaged_result_of_another_command_is_named(
    folder: Path, command: Command, file: str
) -> None:
    (folder / "m").mkdir()
    (folder / "m" / file).write_text("{}")
    _refused(command, "m", f"m/{file}: found JSON without a `cachewright` version")


@pytest.mark.parametrize("file", ["tables.md", "measures.json"])
def test_a_paper_has_a_page_of_its_own(folder: Path, command: Command, file: str) -> None:
    (folder / "m").mkdir()
    (folder / "m" / file).write_text("{}")
    _refused(command, "m", "found a result of `reproduce`, which writes its page itself")
    (folder / "m" / "fig7a").mkdir()
    (folder / "m" / "fig7a" / "result.json").write_text("{}")
    _refused(command, "m", "expected the folder of a figure in it: fig7a")
