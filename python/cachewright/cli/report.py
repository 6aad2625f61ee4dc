"""The command `report`: the HTML report of a result folder, written again.

For: the report of whatever the folder holds. Must never know: how a result is made or drawn. A
damaged result ends in one sentence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachewright import documents, result
from cachewright._native import SpecError
from cachewright.cli import options, output, parsing
from cachewright.result import Amplification, Result

REPORT_FILE = "report.html"
# Results of commands that show themselves all there is.
OTHERS = {
    "mrc.json": "`mrc`, which draws its figures itself (`mrc --figure FILE`)",
    "plan.json": "`plan`, which prints its tables itself",
    "tables.md": "`reproduce`, which writes its page itself (index.html)",
}

Folder = Annotated[
    Path,
    Parameter(help="A folder that `run`, `compare` or `wa` wrote with `--out` or `--report`."),
]


def report(
    folder: Folder,
    /,
    *,
    figures: options.Figures = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the HTML report of a result folder again."""
    kinds = parsing.figure_kinds(figures)
    output.be_quiet(quiet)
    file, found = _load(folder)
    with documents.whole(file):
        path = found.report(folder / REPORT_FILE, kinds)
    output.say(f"report: {path}")


def _load(folder: Path) -> tuple[Path, Result | Amplification]:
    """Return the result in a folder, and its file. Errors: `SpecError` when there is none."""
    expected = "expected a result folder, which `run`, `compare` and `wa` write with `--out`"
    if not folder.is_dir():
        kind = "a file" if folder.exists() else "no such folder"
        raise SpecError(f"{folder}: found {kind}, {expected}")
    if (folder / result.RESULT_FILE).exists():
        return folder / result.RESULT_FILE, Result.load(folder)
    if (folder / result.AMPLIFICATION_FILE).exists():
        return folder / result.AMPLIFICATION_FILE, Amplification.load(folder)
    for file, what in OTHERS.items():
        if (folder / file).exists():
            raise SpecError(f"{folder}: found a result of {what}; {expected}")
    raise SpecError(f"{folder}: found no result, {expected}")
