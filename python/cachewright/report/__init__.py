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

if TYPE_CHECKING:
    from cachewright.report.figure import Figure, PrintStyle
    from cachewright.results import CurveFrames, RunFrames
    from cachewright.tables.amplification import AmplificationFrames

FIGURE_FOLDER = "figures"
FIGURE_KINDS = (".svg", ".png", ".pdf")
MISS_RATIOS = "miss-ratio-curves"
__all__ = [
    "write_amplification_report",
    "write_curves_report",
    "write_latency_figure",
    "write_miss_ratio_figure",
    "write_page",
    "write_report",
]


def write_report(
    result: RunFrames, path: Path, kinds: Sequence[str] = (), *, rank_by: str | None = None
) -> Path:
    """Write the report to `path`, and every figure in each of `kinds` beside it.

    Errors: `RunError` when a file cannot be written, `SpecError` for what cannot be ranked by.
    """
    from cachewright.report import run

    figures = run.figures(result)
    return write_page(run.page(result, figures, rank_by), figures, path, kinds)


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


def write_miss_ratio_figure(
    curves: CurveFrames, path: Path, style: PrintStyle | None = None
) -> Path:
    """Draw the miss ratios by cache size to `path`, whose suffix says how; for print in a style.

    Errors: `RunError` when the suffix is of another kind, there are no points, or the file cannot
    be written.
    """
    from cachewright.report import curves as drawn

    if path.suffix not in FIGURE_KINDS:
        raise RunError(f"{path}: found `{path.suffix}`, expected one of {', '.join(FIGURE_KINDS)}")
    named = [one for one in drawn.figures(curves.answer) if one.name == MISS_RATIOS]
    if not named:
        raise RunError(f"{path}: found curves without points, expected block accesses to draw")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        named[0].save(path, style)
    except OSError as error:
        raise RunError(f"{error.filename or path}: {words.reason(error)}") from None
    return path


def write_latency_figure(curves: CurveFrames, path: Path, style: PrintStyle | None = None) -> Path:
    """Draw the response times by cache size to `path`, whose suffix says how; for print in a style.

    Errors: `RunError` when there are none, or when the file cannot be written.
    """
    from cachewright.report import timed

    if path.suffix not in FIGURE_KINDS:
        raise RunError(f"{path}: found `{path.suffix}`, expected one of {', '.join(FIGURE_KINDS)}")
    if not curves.answer.latency:
        raise RunError(f"{path}: found no response times, expected curves made with `latency`")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        timed.latency_figure(curves.answer).save(path, style)
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
