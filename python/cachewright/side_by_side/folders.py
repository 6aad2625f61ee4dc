"""The results that a folder holds, read as rows of measures.

For: `read` and `read_all`. Must never know: what a row means; each command has a reader of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cachewright import characterized, documents, measures
from cachewright import results as result
from cachewright._native import SpecError
from cachewright.answers import (
    AmplificationAnswer,
    CharacterizeAnswer,
    CurvesAnswer,
    PlanAnswer,
    RunAnswer,
)
from cachewright.side_by_side import characters, drives, runs
from cachewright.side_by_side.reading import Reading

PLAN_FILE = "plan.json"
EXPECTED = "expected a result folder, which `run`, `compare`, `mrc`, `plan`, `wa`, `characterize` "
EXPECTED += "and `reproduce` write with `--out`"


def _document(kind: type[Any], command: str) -> Callable[[Path], Any]:
    return lambda file: documents.read(kind, file, f"a result of `{command}`")


# By the file's name: what reads it, and what makes rows of it.
READERS: dict[str, tuple[Callable[[Path], Any], Callable[[str, Any], Reading]]] = {
    result.RESULT_FILE: (_document(RunAnswer, "run"), runs.of_run),
    result.CURVES_FILE: (_document(CurvesAnswer, "mrc"), runs.of_curves),
    PLAN_FILE: (_document(PlanAnswer, "plan"), runs.of_plan),
    result.AMPLIFICATION_FILE: (_document(AmplificationAnswer, "wa"), drives.of_amplification),
    characterized.CHARACTER_FILE: (
        _document(CharacterizeAnswer, "characterize"),
        characters.of_character,
    ),
    measures.FILE: (measures.read, drives.of_paper),
}


def read(folder: Path, label: str | None = None) -> list[Reading]:
    """Return every result of a folder, labelled by the folder's name unless a label is given.

    Errors: `SpecError` where there is none, or where one is damaged.
    """
    if not folder.is_dir():
        kind = "a file" if folder.exists() else "no such folder"
        raise SpecError(f"{folder}: found {kind}, {EXPECTED}")
    files = [folder / name for name in READERS if (folder / name).exists()]
    if not files:
        raise SpecError(f"{folder}: found no result, {EXPECTED}")
    label = folder.resolve().name if label is None else label
    readings = []
    for file in files:
        load, rows_of = READERS[file.name]
        found = load(file)
        with documents.whole(file):
            readings.append(rows_of(label, found))
    return readings


def read_all(folders: Sequence[Path]) -> list[Reading]:
    """Return the results of several folders under labels that tell them apart.

    Errors: `SpecError`, as `read`.
    """
    found: list[Reading] = []
    for folder, label in zip(folders, labels(folders), strict=True):
        several = read(folder, label)
        if len(several) > 1:
            several = [_named(one) for one in several]
        found += several
    return found


def _named(reading: Reading) -> Reading:
    from dataclasses import replace

    return replace(reading, label=f"{reading.label} ({reading.command})")


def labels(folders: Sequence[Path]) -> list[str]:
    """Return the shortest ends of paths that differ from each other; equal paths are numbered."""
    parts = [folder.resolve().parts for folder in folders]
    named = []
    for place, own in enumerate(parts):
        others = [other for at, other in enumerate(parts) if at != place and other != own]
        length = 1
        while length < len(own) and any(other[-length:] == own[-length:] for other in others):
            length += 1
        named.append("/".join(own[-length:]))
    return [
        f"{name} ({named[:place].count(name) + 1})" if named.count(name) > 1 else name
        for place, name in enumerate(named)
    ]
