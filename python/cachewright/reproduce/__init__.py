"""A paper's figures, run from their specs: `specs/PAPER/*.toml`.

For: which study a paper is, and running its figures. Must never know: any paper, how a figure is
drawn. `setup.toml` names the study and what all figures share; every other file with a `[figure]`
table is one figure. A study of another kind is a module like `amplified` or `mixes`, one like
`cachewright.report.reproduced_mixes` to draw it, and a line in each `STUDIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cachewright._native import SpecError
from cachewright.reproduce import amplified, drive_mixes, mixes, specs
from cachewright.reproduce.specs import SETUP, FigureSpec, Setup

if TYPE_CHECKING:
    from cachewright.spec import PathLike
    from cachewright.types import Progress


class Study(Protocol):
    """The figures of a paper with what was found for them."""

    setup: Setup
    figures: Sequence[Any]

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run every case of the figures once."""

    def count(self) -> int:
        """Return how many cases were run."""


STUDIES: dict[str, Callable[[Setup], Study]] = {
    "write-amplification": amplified.load,
    "mixes": mixes.load,
    "drive-mixes": drive_mixes.load,
}


def load(paper: str, only: str | None, *, quick: bool, specs: Path | None) -> Study:
    """Return what is to be run. Errors: `SpecError` for an unknown paper or figure."""
    setup = _setup(paper, specs, quick=quick)
    what = STUDIES[setup.study](setup)
    ordered: list[FigureSpec] = sorted(what.figures, key=lambda figure: figure.place)
    names = [figure.name for figure in ordered]
    if only is not None and only not in names:
        raise SpecError(f"found figure `{only}`, expected one of {', '.join(names)}")
    what.figures = [figure for figure in ordered if only in (None, figure.name)]
    return what


def _setup(paper: str, folder: Path | None, *, quick: bool) -> Setup:
    setup = specs.setup_in(specs.folder_of(paper, folder), quick=quick)
    if setup.study not in STUDIES:
        expected = ", ".join(STUDIES)
        path = setup.folder / SETUP
        raise SpecError(f"{path}: `study`: found `{setup.study}`, expected one of {expected}")
    return setup


def run(
    what: Study,
    *,
    out: PathLike | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Study:
    """Run every case of the figures once; with `out` the results are kept in folders below it."""
    what.run(out, threads, progress)
    return what
