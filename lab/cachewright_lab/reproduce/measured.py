"""Where the numbers of a paper come from, how they differ from others, and their names.

The document itself, which `report` and `view` of the product read too, is
`cachewright.tables.measures`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cachewright import words
from cachewright._native import __version__
from cachewright.tables.measures import Measured, Provenance, Traces
from cachewright_lab.digest import KeptFigure
from cachewright_lab.reproduce import specs
from cachewright_lab.reproduce.specs import Setup, Workload

# The figure that tables of all figures together are of.
ALL = "all"
# Numbers nearer to each other than this share of themselves are the same.
SAME = 1e-9


@dataclass(frozen=True)
class Change:
    """A number that is not what it was: absent before, absent now, or another."""

    name: str
    before: float | None
    now: float | None

    def row(self) -> list[str]:
        """Return the change as cells: name, before, now, by how much."""
        before, now = (
            words.NOTHING if value is None else words.significant(value, 5)
            for value in (self.before, self.now)
        )
        known = self.before and self.now is not None
        by = words.change(self.now or 0.0, self.before or 0.0) if known else words.NOTHING
        return [self.name, before, now, by]


def provenance(setup: Setup, figure: str, workloads: Sequence[Workload]) -> Provenance:
    """Return where a figure's numbers come from: program, spec, the traces of its study."""
    names = tuple(one.name for one in workloads)
    traces = Traces(kind=setup.kind, names=names)
    if setup.traces is not None:
        traces = Traces(kind=setup.kind, names=names, folder=setup.traces.name)
    said = digest(setup.folder, figure)
    return Provenance(cachewright=__version__, specs=said, traces=traces)


def digest(folder: Path, figure: str) -> str:
    """Return a digest of what `setup.toml` and a figure's spec say, whatever their comments."""
    said = hashlib.sha256()
    for name in (specs.SETUP, f"{figure}.toml"):
        path = folder / name
        document = specs.toml(path) if path.is_file() else {}
        said.update(json.dumps(document, sort_keys=True, default=str).encode())
    return said.hexdigest()[:16]


def unique(pairs: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return measures by name; a name that is taken gets a number. What is not finite is left out.

    Names in order, so that a file of them changes only where numbers do.
    """
    found: dict[str, float] = {}
    for name, value in pairs:
        if not math.isfinite(value):
            continue
        own, count = name, 1
        while own in found:
            count += 1
            own = f"{name} ({count})"
        found[own] = value
    return dict(sorted(found.items()))


def changes(before: Measured, now: Measured) -> list[Change]:
    """Return what differs of the figures that both have; a new figure is no change."""
    both = [name for name in now.figures if name in before.figures]
    return [one for figure in both for one in changed(before.of(figure), now.of(figure))]


def changed(before: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """Return the numbers that differ, those that only one side has among them."""
    names = sorted({*before, *now})
    return [
        Change(name, before.get(name), now.get(name))
        for name in names
        if not _same(before.get(name), now.get(name))
    ]


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=SAME, abs_tol=1e-12)


def stale(figures: Mapping[str, KeptFigure], folder: Path) -> list[str]:
    """Return the figures whose spec says something else than when they were run."""
    return [
        name
        for name, where in figures.items()
        if name != ALL and where.specs != digest(folder, name)
    ]
