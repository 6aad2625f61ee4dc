"""Engines run every task once, whatever happens to their workers.

For: `cachewright.fleet.engine`, its two engines, journals and jobs. Must never know: commands.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from engines import ENGINES, HAS_RAY, WORK

from cachewright import RunError, SpecError
from cachewright.fleet import job
from cachewright.fleet.journal import Journal
from cachewright.fleet.task import Outcome, Task


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers import the tasks of `engines`."""
    here = str(Path(__file__).parent)
    known = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", f"{here}:{known}" if known else here)


def _tasks(work: str, count: int, memory_bytes: int = 1 << 20, **arguments: Any) -> list[Task]:
    return [
        job.task_of(str(number), WORK + work, {**arguments, "number": number}, memory_bytes)
        for number in range(count)
    ]


def _run(folder: Path, tasks: list[Task], engine: str, **how: Any) -> list[Any]:
    with Journal(folder / "tasks.journal") as journal:
        job.run_job(tasks, journal, job.How(engine, 2, **how), stage="tasks")
        return [value for _, value in job.values(tasks, journal)]


@pytest.mark.parametrize("engine", ENGINES)
def test_values_come_in_the_order_of_the_tasks(folder: Path, engine: str) -> None:
    assert _run(folder, _tasks("double", 30), engine) == [2 * number for number in range(30)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("work", ["vanish_once", "starve_once"])
def test_a_task_whose_worker_is_killed_is_run_again(folder: Path, engine: str, work: str) -> None:
    tasks = _tasks(work, 5, folder=str(folder))
    assert _run(folder, tasks, engine) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_task_that_always_loses_its_worker_is_listed_and_others_go_on(
    folder: Path, engine: str
) -> None:
    tasks = [*_tasks("vanish", 1), *_tasks("double", 5)]
    assert _run(folder, tasks, engine, retries=1) == [0, 2, 4, 6, 8]
    with Journal(folder / "tasks.journal") as journal:
        assert job.failures(tasks, journal) == [("0", "the worker ended before the task did")]


@pytest.mark.parametrize("engine", ENGINES)
def test_failures_are_tried_again_on_request_alone(folder: Path, engine: str) -> None:
    tasks = [*_tasks("refuse", 2), *_tasks("defect", 1)]
    assert _run(folder, tasks, engine) == []
    written = (folder / "tasks.journal").read_bytes()
    assert _run(folder, tasks, engine) == []
    assert (folder / "tasks.journal").read_bytes() == written
    assert _run(folder, tasks, engine, retry_failed=True) == []
    assert (folder / "tasks.journal").read_bytes().count(b"\n") == 6
    with Journal(folder / "tasks.journal") as journal:
        assert job.write_failures(tasks, journal, folder) == [
            ("0", "found 0, expected another"),
            ("1", "found 1, expected another"),
            ("0", "ZeroDivisionError: division by zero"),
        ]
    first = (folder / "failed.jsonl").read_text().splitlines()[0]
    assert json.loads(first) == {"name": "0", "error": "found 0, expected another"}


@pytest.mark.parametrize("engine", ENGINES)
def test_tasks_that_declare_all_memory_run_one_at_a_time(folder: Path, engine: str) -> None:
    size = 512 << 20
    tasks = _tasks("overlap", 4, size, folder=str(folder))
    assert _run(folder, tasks, engine, memory_bytes=size) == [1, 1, 1, 1]


def test_a_task_larger_than_the_memory_runs_alone(folder: Path) -> None:
    tasks = _tasks("overlap", 3, 2 << 30, folder=str(folder))
    assert _run(folder, tasks, "local", memory_bytes=1 << 30) == [1, 1, 1]


def test_a_cancelled_job_goes_on(folder: Path) -> None:
    tasks = _tasks("double", 10)
    seen: list[tuple[str, int, int | None]] = []

    def stop(stage: str, done: int, total: int | None) -> bool:
        seen.append((stage, done, total))
        return done < 4

    with (
        Journal(folder / "tasks.journal") as journal,
        pytest.raises(RunError, match=r"cancelled; .* holds 4 of 10 tasks"),
    ):
        job.run_job(tasks, journal, job.How("local", 2), stage="tasks", progress=stop)
    assert seen == [("tasks", done, 10) for done in range(5)]
    assert _run(folder, tasks, "local") == [2 * number for number in range(10)]
    assert (folder / "tasks.journal").read_bytes().count(b"\n") == 10


@pytest.mark.parametrize("cut", [1, 9, 20])
def test_a_line_that_was_cut_off_is_dropped(folder: Path, cut: int) -> None:
    path = folder / "tasks.journal"
    with Journal(path) as journal:
        for key in ("a", "b"):
            journal.add(Outcome(key, {"value": key}))
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    with Journal(path) as journal:
        assert journal.is_done("a")
        assert not journal.is_done("b")
        journal.add(Outcome("b", {"value": "b"}))
        assert [journal.value(key)["value"] for key in ("a", "b")] == ["a", "b"]
    assert path.read_bytes() == content


def test_a_damaged_line_is_no_answer(folder: Path) -> None:
    path = folder / "tasks.journal"
    with Journal(path) as journal:
        for key in ("a", "b"):
            journal.add(Outcome(key, key))
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)
    with Journal(path) as journal:
        assert not journal.is_done("a")
        assert journal.value("b") == "b"


def test_a_journal_has_one_holder(folder: Path) -> None:
    with (
        Journal(folder / "tasks.journal"),
        pytest.raises(SpecError, match="in use by another process"),
    ):
        Journal(folder / "tasks.journal")


def test_a_key_stands_for_arguments_and_inputs() -> None:
    keys = {
        job.task_of("a", "m:f", {"x": 1}).key,
        job.task_of("a", "m:f", {"x": 2}).key,
        job.task_of("a", "m:g", {"x": 1}).key,
        job.task_of("a", "m:f", {"x": 1}, inputs=[["trace", 5]]).key,
    }
    assert len(keys) == 4


def test_engines_are_refused_by_name() -> None:
    with pytest.raises(SpecError, match="found `slurm`, expected one of local, ray"):
        job.How("slurm").make()
    with pytest.raises(SpecError, match="`address`: found `head:6379` for engine `local`"):
        job.How("local", address="head:6379").make()


@pytest.mark.skipif(HAS_RAY, reason="ray is installed")
def test_without_ray_its_engine_says_how_to_install_it() -> None:
    with pytest.raises(SpecError, match=r"cachewright\[fleet\]"):
        job.How("ray").make()
