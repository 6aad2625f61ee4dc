"""The command `report`: the HTML report of a result folder, or of several side by side.

For: the report of whatever a folder holds, the comparison of several, and their figures as files.
Must never know: how a result is made or drawn. A damaged result ends in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cachewright._native import SpecError
from cachewright.cli import options, output, parsing
from cachewright.tables import side_by_side

if TYPE_CHECKING:
    from cachewright.tables.side_by_side import Comparison

REPORT_FILE = "report.html"
TOGETHER = Path("results") / "side-by-side"
# Rows of each table that a terminal shows.
SHOWN = 12

Folders = Annotated[
    Path,
    Parameter(
        help="Folders that `run`, `compare`, `mrc`, `plan`, `wa`, `characterize`, `fleet study`, "
        "`trace report` or `reproduce` wrote with `--out` or `--report`; several are shown side by "
        "side."
    ),
]


@Parameter(name="*")
@dataclass
class PrintArgs:
    """Figures as files, as papers need them."""

    figures: options.Figures = None

    into: Path | None = None
    """Folder of the figures' files (`figures` beside the report if no folder is named)."""

    width: str | None = None
    """Width of the files: column (85mm), middle (114mm), page (178mm), or millimetres (`120mm`)."""

    font: float | None = None
    """Size of text in the files in points; 8 if only a width is given."""


def report(
    *folders: Folders,
    out: Path | None = None,
    printed: PrintArgs | None = None,
    csv: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the HTML report of a result folder, or of several results side by side.

    Parameters
    ----------
    out
        Folder of the report: the result's own, or `results/side-by-side` for several.
    csv
        Print what several results have in common as CSV: a line per measure, row and result.

    """
    from cachewright.report import write_page
    from cachewright.report.figure import PrintStyle

    how = printed or PrintArgs()
    kinds = parsing.figure_kinds(how.figures)
    style = PrintStyle.of(how.width, how.font)
    output.be_quiet(quiet)
    if not folders:
        raise SpecError("found no folder, expected result folders to report")
    if not kinds and (style is not None or how.into is not None):
        raise SpecError("found no `--figures`, expected their kinds (svg, png, pdf) to write files")
    if len(folders) == 1:
        from cachewright.report.single import drawn

        if csv:
            raise SpecError("--csv: found one folder, expected several to compare")
        text, figures = drawn(folders[0])
        folder = folders[0] if out is None else out
    else:
        from cachewright.report import compared

        found = side_by_side.Comparison.of(side_by_side.read_all(folders))
        if csv:
            output.print_csv(found.records(), ("measure", "result", "value"))
        else:
            _show(found)
        text, figures = compared.page(found), compared.figures(found)
        folder = TOGETHER if out is None else out
    path = write_page(text, figures, folder / REPORT_FILE, kinds, style, how.into)
    if not csv:
        output.say(f"report: {path}")


def _show(found: Comparison) -> None:
    """Print settings that differ, and the rows that results share."""
    for unlike in (found.unlike_settings, found.unlike_workloads):
        if unlike.rows:
            output.show(unlike)
    for one in found.tables:
        if one.matched:
            table = one.table(matched=SHOWN)
            output.show(table)
            if table.left_out:
                more = f"{table.left_out} more rows not shown; --csv and the report have all"
                output.say(f"{more}\n")
    unmatched = [one.measure.name for one in found.tables if not one.matched]
    if unmatched:
        output.say(f"no case in two results: {', '.join(unmatched)}; the report has all rows\n")
