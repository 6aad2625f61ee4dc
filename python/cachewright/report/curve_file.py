"""The miss-ratio figure as a file of its own.

For: `Curves.figure`. Must never know: how the figure is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cachewright import words
from cachewright._native import RunError

if TYPE_CHECKING:
    from cachewright.results import CurveFrames

KINDS = (".svg", ".png", ".pdf")
NAME = "miss-ratio-curves"


def write_miss_ratio_figure(curves: CurveFrames, path: Path) -> Path:
    """Draw the miss ratios by cache size to `path`, whose suffix says how.

    Errors: `RunError` when the suffix is of another kind, there are no points, or the file cannot
    be written.
    """
    from cachewright.report import curves as drawn

    if path.suffix not in KINDS:
        raise RunError(f"{path}: found `{path.suffix}`, expected one of {', '.join(KINDS)}")
    named = [one for one in drawn.figures(curves.answer) if one.name == NAME]
    if not named:
        raise RunError(f"{path}: found curves without points, expected block accesses to draw")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        named[0].save(path)
    except OSError as error:
        raise RunError(f"{error.filename or path}: {words.reason(error)}") from None
    return path
