"""The page of one result folder, whatever command wrote it.

For: `report` of one folder and the pages of `view`. Must never know: how figures are drawn. A
damaged result ends in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from cachewright import characterized, documents, side_by_side
from cachewright import results as result
from cachewright._native import SpecError
from cachewright.report import curves, figures, timed
from cachewright.report import side_by_side as beside
from cachewright.report.figure import Figure
from cachewright.report.page import page, whole_page
from cachewright.results import Amplification, Curves, Result
from cachewright.side_by_side.folders import EXPECTED, PLAN_FILE

# What `reproduce` writes; its page has been drawn already.
PAPER_FILES = ("tables.md", "measures.json")
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
        if any((folder / name).exists() for name in PAPER_FILES):
            own = "a result of `reproduce`, which writes its page itself (index.html)"
            raise SpecError(f"{folder}: found {own}; {EXPECTED}")
    kind = "no result" if folder.is_dir() else "a file" if folder.exists() else "no such folder"
    raise SpecError(f"{folder}: found {kind}, {EXPECTED}")


def _run(found: Result) -> Drawn:
    several = [*figures.all_figures(found), *timed.figures(found)]
    return page(found, several), several


def _curves(found: Curves) -> Drawn:
    return curves.page(found.answer), curves.figures(found.answer)


def _amplification(found: Amplification) -> Drawn:
    from cachewright.report import amplified

    several = amplified.figures(found)
    return amplified.page(found, several), several


def _reading(command: str) -> Callable[[Path], side_by_side.Reading]:
    return lambda folder: next(one for one in side_by_side.read(folder) if one.command == command)


def _tables(found: side_by_side.Reading) -> Drawn:
    """Return the page of a plan, or of what runs on a trace: its tables, without figures."""
    title = f"{found.settings.get('name', found.label)}: {found.command}"
    parts = [f"<h1>{escape(title)}</h1>", *beside.tables_of(found)]
    return whole_page(title, parts), []


_KINDS: dict[str, tuple[Callable[[Path], Any], Callable[[Any], Drawn]]] = {
    result.RESULT_FILE: (Result.load, _run),
    result.CURVES_FILE: (Curves.load, _curves),
    result.AMPLIFICATION_FILE: (Amplification.load, _amplification),
    PLAN_FILE: (_reading("plan"), _tables),
    characterized.CHARACTER_FILE: (_reading("characterize"), _tables),
}
