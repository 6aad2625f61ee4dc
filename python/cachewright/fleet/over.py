"""A command on every volume of a dataset: tasks, the journal, and the files of its answer.

For: `mrc`, `wa`, `characterize`, `compare` and `train shiro` on datasets. Must never know: how a
command is shown, where tasks run. The folder of an answer holds `answers.jsonl` (a line per volume,
in the dataset's order), `rows.parquet` (its numbers as a table), `models/` of a training,
`failed.jsonl` where something failed, `unread.json` where files cannot be read, and the journal.
What a journal holds is not run again; the files are the same whichever engine ran and however often
it was stopped.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cachewright import targets, words
from cachewright.answers import (
    AmplificationAnswer,
    CharacterizeAnswer,
    CurvesAnswer,
    RunAnswer,
)
from cachewright.documents import load
from cachewright.fleet import job
from cachewright.fleet.datasets.files import JOURNAL_SUFFIX
from cachewright.fleet.datasets.manifest import Reading
from cachewright.fleet.datasets.volumes import Dataset, open_dataset
from cachewright.fleet.journal import Journal
from cachewright.fleet.task import Task

if TYPE_CHECKING:
    from cachewright.types import PathLike, Progress

WORK = "cachewright.fleet.work"
ANSWERS, ROWS, MODELS, UNREAD = "answers.jsonl", "rows.parquet", "models", "unread.json"
TRAINING = "train_shiro"
FUTURES = frozenset(("future", "benefit"))
"""Needs of policies that take memory per access."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Unread:
    """How many files a dataset has, and those that cannot be read, with their errors."""

    files: int = 0
    failed: Sequence[tuple[str, str]] = ()

    def sentence(self) -> str:
        """Return how many files could not be read; nothing where all could."""
        if not self.failed:
            return ""
        few = words.count(len(self.failed))
        return f"{few} of {words.counted(self.files, 'file')} could not be read"


@dataclass(frozen=True)
class Answered:
    """What a command found on the volumes of a dataset."""

    folder: Path
    volumes: int
    failed: Sequence[tuple[str, str]]
    """Volumes without an answer, with their errors."""

    unread: Unread
    rates: job.Rates

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yield `volume` and `answer` of each volume."""
        return answers_in(self.folder)

    def named(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name of each volume with its answer."""
        return ((one["volume"], one["answer"]) for one in self.answers())


def answers_in(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield `volume` and `answer` of each volume of a folder of answers."""
    with (folder / ANSWERS).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def unread_in(folder: Path) -> Unread:
    """Return the files that could not be read, of a folder of answers."""
    try:
        found = json.loads((folder / UNREAD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Unread()
    return Unread(found["files"], [(one["name"], one["error"]) for one in found["unread"]])


def _write_unread(unread: Unread, folder: Path) -> None:
    """Write the files that could not be read; remove what an earlier run wrote where all could."""
    path = folder / UNREAD
    if not unread.failed:
        path.unlink(missing_ok=True)
        return
    listed = [{"name": name, "error": error} for name, error in unread.failed]
    text = json.dumps({"files": unread.files, "unread": listed}, indent=2, ensure_ascii=False)
    targets.write_whole(path, f"{text}\n")


def command_of(folder: Path) -> str | None:
    """Return the command whose answers on a dataset a folder holds; None where it holds none."""
    if not (folder / ANSWERS).is_file():
        return None
    return next((name for name in ROWS_OF if (folder / f"{name}{JOURNAL_SUFFIX}").exists()), None)


def over(
    command: str,
    location: str,
    out: Path,
    arguments: Mapping[str, Any],
    *,
    reading: Reading,
    how: job.How,
    volume: str | None = None,
    inputs: Sequence[PathLike] = (),
    opened: Callable[[Dataset], None] | None = None,
    progress: Progress | None = None,
) -> Answered:
    """Run a command of `fleet.work` on every volume of a location; files go to `out`.

    `arguments` are those of the command; `inputs` are files that they name. `opened` is called
    before the volumes are run.
    Errors: `SpecError`, `RunError` (cancelled), `OSError`. A volume that fails is listed.
    """
    dataset = open_dataset(
        location, out, reading=reading, how=how, volume=volume, progress=progress
    )
    if opened is not None:
        opened(dataset)
    tasks = _tasks(dataset, command, arguments, reading, inputs)
    with Journal(out / f"{command}{JOURNAL_SUFFIX}") as journal:
        job.run_job(tasks, journal, how, stage="volumes", progress=progress)
        write(command, tasks, journal, out)
        failed = job.write_failures(tasks, journal, out)
        unread = Unread(dataset.files, dataset.failed)
        _write_unread(unread, out)
        return Answered(out, len(tasks), failed, unread, job.rates(tasks, journal))


def _tasks(
    dataset: Dataset,
    command: str,
    arguments: Mapping[str, Any],
    reading: Reading,
    inputs: Sequence[PathLike],
) -> list[Task]:
    """Return a task for each volume."""
    plain = json.loads(json.dumps(dict(arguments), default=os.fspath))
    known = [job.identity(path) for path in inputs]
    future = needs_future(plain)
    return [
        job.task_of(
            volume.name,
            f"{WORK}:{command}",
            {"volume": volume.plain(), "reading": reading.plain(), **plain},
            volume.replay_bytes(future=future),
            known,
        )
        for volume in dataset.volumes
    ]


def needs_future(arguments: Mapping[str, Any]) -> bool:
    """Return whether arguments name a policy that needs the future, or all policies."""
    from cachewright import registries

    known = {
        entry.name
        for entry in registries.list("policies")
        if FUTURES.intersection(entry.needs or ())
    }
    return not {*known, "all"}.isdisjoint(re.findall(r"[\w-]+", json.dumps(arguments)))


def write(command: str, tasks: Sequence[Task], journal: Journal, out: Path) -> None:
    """Write the answers and their rows, a volume at a time."""
    import polars as pl

    rows_of, frames = ROWS_OF[command], list[pl.DataFrame]()
    with (
        targets.whole(out / ANSWERS) as part,
        part.open("w", encoding="utf-8") as file,
    ):
        for task, value in job.values(tasks, journal):
            is_model = command == TRAINING
            answer = _model_written(task.name, value, out) if is_model else value
            line = {"volume": task.name, "answer": answer}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            rows = [{"volume": task.name, **row} for row in rows_of(answer)]
            if rows:
                frames.append(pl.DataFrame(rows, infer_schema_length=None))
    frame = pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()
    with targets.whole(out / ROWS) as part:
        frame.write_parquet(part, compression="zstd")


def _model_written(name: str, value: Row, out: Path) -> Row:
    """Write the model of a volume; return the rest of its answer."""
    file = out / MODELS / f"{quote(name, safe='')}.model"
    targets.write_whole(file, base64.b64decode(value["model"]))
    answer: Row = value["answer"]
    return answer


def _curve_rows(value: Row) -> list[Row]:
    from cachewright.results import Curves

    return Curves(load(CurvesAnswer, value), None).points.to_dicts()


def _case_rows(value: Row) -> list[Row]:
    from cachewright.results import Result

    return Result(load(RunAnswer, value), None).cases.to_dicts()


def _amplification_rows(value: Row) -> list[Row]:
    from cachewright.results import Amplification

    return Amplification(load(AmplificationAnswer, value), None).cases.to_dicts()


def _character_rows(value: Row) -> list[Row]:
    answer = load(CharacterizeAnswer, value)
    return [character_row(answer)]


def character_row(answer: CharacterizeAnswer) -> Row:
    """Return what a volume's whole trace is like, and the kind that most periods were judged."""
    from cachewright.tables import volumes

    total = answer.total
    return {
        "reads": total.reads,
        "writes": total.writes,
        "read_share": total.read_share,
        "rate_per_s": total.rate_per_s,
        "mean_bytes": total.mean_bytes,
        "working_set_bytes": total.working_set_bytes,
        "sequential": total.classes.sequential,
        "overlapped": total.classes.overlapped,
        "strided": total.classes.strided,
        "random": total.classes.random,
        "kind": volumes.kind(answer),
    }


def _training_rows(value: Row) -> list[Row]:
    return [{key: one for key, one in value.items() if isinstance(one, str | int | float)}]


ROWS_OF: dict[str, Callable[[Row], list[Row]]] = {
    "mrc": _curve_rows,
    "wa": _amplification_rows,
    "characterize": _character_rows,
    "compare": _case_rows,
    TRAINING: _training_rows,
}
