"""A paper's figures, run from their specs: `lab/papers/PAPER/*.toml`.

`setup.toml` names the kind of study and what all figures share; every other file with a `[figure]`
table is one figure, of that kind unless it names another. A kind is a module like `amplified`: what
is run for its figures, and what they show. `KINDS` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cachewright._native import SpecError
from cachewright_lab.reproduce import (
    amplified,
    caching,
    drive_figures,
    drive_mixes,
    drive_replays,
    isolation,
    mixes,
    specs,
    workload_kinds,
)
from cachewright_lab.reproduce.specs import SETUP, FigureSpec, Setup

if TYPE_CHECKING:
    from cachewright.report.figure import Figure
    from cachewright.types import PathLike, Progress
    from cachewright_lab.report.tables import Table


class Study(Protocol):
    """The figures of a paper with what was found for them."""

    setup: Setup
    figures: Sequence[Any]

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run every case of the figures once."""

    def count(self) -> int:
        """Return how many cases were run."""


@dataclass(frozen=True)
class Kind:
    """A kind of study: how its figures are read and run, and what they show."""

    # Returns the figures of a paper, nothing run yet.
    load: Callable[[Setup], Study]
    # What to know before the numbers, in sentences.
    notes: Callable[[Any], list[str]]
    # The tables of all figures together.
    shared: Callable[[Any], list[Table]]
    # The tables and charts of a figure in the order of the page.
    shown: Callable[[Any, Any], list[Table | Figure]]


def _of(module: Any) -> Kind:
    return Kind(module.load, module.notes, module.shared, module.shown)


KINDS = {
    "write-amplification": _of(amplified),
    "mixes": _of(mixes),
    "drive-mixes": Kind(
        drive_mixes.load, drive_figures.notes, drive_figures.shared, drive_figures.shown
    ),
    "caching": _of(caching),
    "drive-replays": _of(drive_replays),
    "isolation": _of(isolation),
    "workload-kinds": _of(workload_kinds),
}


@dataclass
class Together:
    """The studies of a paper whose figures are of more than one."""

    setup: Setup
    parts: dict[str, Study]

    @property
    def figures(self) -> list[FigureSpec]:
        """Every figure, in the order of the page."""
        found = [figure for part in self.parts.values() for figure in part.figures]
        return sorted(found, key=lambda figure: figure.place)

    @figures.setter
    def figures(self, wanted: Sequence[FigureSpec]) -> None:
        for part in self.parts.values():
            part.figures = [figure for figure in part.figures if figure in wanted]

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run every case of the figures once."""
        for part in self.parts.values():
            if part.figures:
                part.run(out, threads, progress)

    def count(self) -> int:
        """Return how many cases were run."""
        return sum(part.count() for part in self.parts.values())


def parts(what: Study) -> Iterator[tuple[str, Study]]:
    """Give the studies of a paper that have figures, by name."""
    if isinstance(what, Together):
        yield from ((name, part) for name, part in what.parts.items() if part.figures)
    else:
        yield what.setup.study, what


def load(
    paper: str, only: str | None, *, quick: bool, specs: Path | None, traces: Path | None = None
) -> Study:
    """Return what is to be run, on the reference traces or on those of the folder `traces`.

    Errors: `SpecError` for an unknown paper or figure, or a folder without traces of its workloads.
    """
    if quick and traces is not None:
        raise SpecError("found `--quick` and `--traces`, expected one of them")
    setup = _setup(paper, specs, quick=quick, traces=traces)
    what = _whole(setup)
    ordered: list[FigureSpec] = sorted(what.figures, key=lambda figure: figure.place)
    names = [figure.name for figure in ordered]
    lack = f"; no trace is given of {', '.join(setup.absent)}" if setup.absent else ""
    if not names:
        where = setup.traces or setup.folder
        raise SpecError(f"{where}: found the traces of no figure, expected those of one{lack}")
    wanted = names if only is None else _parts_of(only, names)
    if not wanted:
        raise SpecError(f"found figure `{only}`, expected one of {', '.join(names)}{lack}")
    what.figures = [figure for figure in ordered if figure.name in wanted]
    return what


def _parts_of(figure: str, names: Sequence[str]) -> list[str]:
    """Return the figure of a name, or its parts.

    >>> _parts_of("fig7", ["fig7a", "fig7b", "fig70"])
    ['fig7a', 'fig7b']
    """
    if figure in names:
        return [figure]
    rests = {name: name.removeprefix(figure) for name in names if name.startswith(figure)}
    return [name for name, rest in rests.items() if rest.isalpha()]


def _whole(setup: Setup) -> Study:
    """Return the paper's study, or all that its figures are of."""
    own = KINDS[setup.study].load(setup)
    others = specs.other_studies(setup.folder)
    for name in others:
        specs.among(setup.folder, "study", name, KINDS)
    if not others:
        return own
    return Together(setup, {setup.study: own} | {name: KINDS[name].load(setup) for name in others})


def _setup(paper: str, folder: Path | None, *, quick: bool, traces: Path | None) -> Setup:
    setup = specs.setup_in(specs.folder_of(paper, folder), quick=quick, traces=traces)
    if setup.study not in KINDS:
        expected = ", ".join(KINDS)
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
