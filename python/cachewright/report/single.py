"""The page of one result folder, whatever command wrote it.

For: `report` of one folder and the pages of `view`. Must never know: how figures are drawn. A
damaged result ends in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cachewright import characterized, documents, results
from cachewright._native import SpecError
from cachewright.answers import CharacterizeAnswer, FleetPlanAnswer, PlanAnswer, WorkloadAnswer
from cachewright.fleet import over, study
from cachewright.fleet.placement import host_files
from cachewright.report import character, curves, fleet, placed, planned, run, volumes, workload
from cachewright.report.figure import Figure
from cachewright.results import Amplification, Curves, Result
from cachewright.tables import volumes as volumes_tables
from cachewright.tables import workload as workload_tables
from cachewright.tables.side_by_side import EXPECTED, PLAN_FILE

# What `reproduce` writes; its page has been drawn already.
PAPER_FILES = ("tables.md", "measures.json")
# Folders of figures that a refusal names.
SHOWN_FOLDERS = 6
Drawn = tuple[str, list[Figure]]


def drawn(folder: Path) -> Drawn:
    """Return the page of a folder's result and its figures.

    Errors: `SpecError` where there is no result, or where it is damaged.
    """
    if folder.is_dir():
        for name, (load, of) in _KINDS.items():
            file = folder / name
            if file.exists():
                found = load(folder)
                with documents.whole(file):
                    return of(found)
        if (command := over.command_of(folder)) is not None:
            return _volumes(folder, command)
        if any((folder / name).exists() for name in PAPER_FILES):
            raise SpecError(f"{folder}: {_of_paper(folder)}")
    kind = "no result" if folder.is_dir() else "a file" if folder.exists() else "no such folder"
    raise SpecError(f"{folder}: found {kind}, {EXPECTED}")


def _of_paper(folder: Path) -> str:
    """Return why a folder of `reproduce` has no page here, and which folders in it have one."""
    below = [
        one.name
        for one in sorted(folder.iterdir())
        if any((one / name).exists() for name in _KINDS)
    ]
    more = f" and {len(below) - SHOWN_FOLDERS} more" if len(below) > SHOWN_FOLDERS else ""
    own = "found a result of `reproduce`, which writes its page itself (index.html)"
    if not below:
        return f"{own}, expected a result of another command"
    return f"{own}, expected the folder of a figure in it: {', '.join(below[:SHOWN_FOLDERS])}{more}"


def _run(found: Result) -> Drawn:
    several = run.figures(found)
    return run.page(found, several), several


def _volumes(folder: Path, command: str) -> Drawn:
    """Return the page of a command's answers on a dataset."""
    with documents.whole(folder / over.ANSWERS):
        answers = [(one["volume"], one["answer"]) for one in over.answers_in(folder)]
        summed = volumes_tables.of(command, answers)
    if summed is None:
        raise SpecError(f"{folder}: found models of a training, which have no page; {EXPECTED}")
    return volumes.page(command, summed, folder), volumes.figures(summed)


def _curves(found: Curves) -> Drawn:
    return curves.page(found.answer), curves.figures(found.answer)


def _amplification(found: Amplification) -> Drawn:
    from cachewright.report import amplified

    several = amplified.figures(found)
    return amplified.page(found, several), several


def _plan(found: PlanAnswer) -> Drawn:
    several = planned.figures(found)
    return planned.page(found, several), several


def _placed(found: FleetPlanAnswer) -> Drawn:
    several = placed.figures(found)
    return placed.page(found, several), several


def _character(found: CharacterizeAnswer) -> Drawn:
    several = character.figures(found)
    return character.page(found, several), several


def _workload(found: WorkloadAnswer) -> Drawn:
    return workload.page(found), workload.figures(found)


def _document(kind: type[Any], file: str, command: str) -> Callable[[Path], Any]:
    return lambda folder: documents.read(kind, folder / file, f"a result of `{command}`")


_KINDS: dict[str, tuple[Callable[[Path], Any], Callable[[Any], Drawn]]] = {
    results.RESULT_FILE: (Result.load, _run),
    results.CURVES_FILE: (Curves.load, _curves),
    results.AMPLIFICATION_FILE: (Amplification.load, _amplification),
    host_files.DOCUMENT: (_document(FleetPlanAnswer, host_files.DOCUMENT, "plan --fleet"), _placed),
    study.STUDY: (lambda folder: folder, fleet.drawn),
    PLAN_FILE: (_document(PlanAnswer, PLAN_FILE, "plan"), _plan),
    characterized.CHARACTER_FILE: (
        _document(CharacterizeAnswer, characterized.CHARACTER_FILE, "characterize"),
        _character,
    ),
    workload_tables.FILE: (
        _document(WorkloadAnswer, workload_tables.FILE, "trace report"),
        _workload,
    ),
}
