"""The HTML report of a result, and its figures as files.

For: `write_report`, `write_amplification_report`. Must never know: how results are made. The page
is one file that loads nothing, so that it opens offline and prints; its figures are drawn in it by
Vega-Lite, and stand still where scripts are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright import words
from cachewright._native import RunError
from cachewright.report import figures as drawn
from cachewright.report.page import page

if TYPE_CHECKING:
    from cachewright.amplification import AmplificationFrames
    from cachewright.report.figure import Figure
    from cachewright.report.printed import PrintStyle
    from cachewright.results import CurveFrames, RunFrames

FIGURE_FOLDER = "figures"
__all__ = [
    "write_amplification_report",
    "write_curves_report",
    "write_latency_figure",
    "write_page",
    "write_report",
]


def write_report(result: RunFrames, path: Path, kinds: Sequence[str] = ()) -> Path:
    """Write the report to `path`, and every figure in each of `kinds` beside it.

    Errors: `RunError` when a file cannot be written.
    """
    from cachewright.report import timed

    figures = [*drawn.all_figures(result), *timed.figures(result)]
    return write_page(page(result, figures), figures, path, kinds)


def write_amplification_report(
    result: AmplificationFrames, path: Path, kinds: Sequence[str] = ()
) -> Path:
    """Write the report of `wa` to `path`, and every figure in each of `kinds` beside it.

    Errors: `RunError` when a file cannot be written.
    """
    from cachewright.report import amplified

    figures = amplified.figures(result)
    return write_page(amplified.page(result, figures), figures, path, kinds)


def write_curves_report(curves: CurveFrames, path: Path, kinds: Sequence[str] = ()) -> Path:
    """Write the report of `mrc` to `path`, and every figure in each of `kinds` beside it.

    Errors: `RunError` when a file cannot be written.
    """
    from cachewright.report import curves as drawn

    return write_page(drawn.page(curves.answer), drawn.figures(curves.answer), path, kinds)


def write_latency_figure(curves: CurveFrames, path: Path) -> Path:
    """Draw the response times by cache size to `path`, whose suffix says how.

    Errors: `RunError` when there are none, or when the file cannot be written.
    """
    from cachewright.report import timed

    kinds = (".svg", ".png", ".pdf")
    if path.suffix not in kinds:
        raise RunError(f"{path}: found `{path.suffix}`, expected one of {', '.join(kinds)}")
    if not curves.answer.latency:
        raise RunError(f"{path}: found no response times, expected curves made with `latency`")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        timed.latency_figure(curves.answer).save(path)
    except OSError as error:
        raise RunError(f"{error.filename or path}: {words.reason(error)}") from None
    return path


def write_page(
    text: str,
    figures: Sequence[Figure],
    path: Path,
    kinds: Sequence[str] = (),
    style: PrintStyle | None = None,
    folder: Path | None = None,
) -> Path:
    """Write a page to `path`, and its figures in each of `kinds` and in a style for print.

    They go to `folder`, else to `figures` beside the page. Errors: `RunError` when a file cannot be
    written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A result may hold half characters, which no file can.
        path.write_text(text, encoding="utf-8", errors="replace")
        if kinds:
            folder = folder or path.parent / FIGURE_FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            for figure in figures:
                for kind in kinds:
                    figure.save(folder / f"{figure.name}.{kind}", style)
    except OSError as error:
        raise RunError(f"{error.filename or path}: {words.reason(error)}") from None
    return path
