"""What a reproduced paper on data caches shows of bounds: the best static division by replay.

For: `cachewright.report.reproduced_drive`. Must never know: how numbers were measured, HTML. The
best of the divisions that were tried is chosen after the fact and for each measure anew, so that it
bounds every measure that is reported, of static divisions. Units: slowdowns, microseconds.
"""

from __future__ import annotations

from collections.abc import Callable

from cachewright import words
from cachewright.report.figure import Figure
from cachewright.report.parts import Table, plain
from cachewright.reproduce.drive_mixes import DriveMixes, Outcome
from cachewright.reproduce.drive_specs import DriveFigure, Mix

Measure = Callable[[Outcome], float]
MEASURES: tuple[tuple[str, str, Measure], ...] = (
    ("", "max slowdown", lambda one: one.max_slowdown),
    ("response", "mean response (us)", lambda one: one.mean() / 1e3),
    ("tail", "max response (us)", lambda one: one.mean("max_ns") / 1e3),
)
EQUAL = "equal"


def shown(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return a table for each measure: schemes beside the best static division."""
    return [_bounds(what, figure, *one) for one in MEASURES]


def _bounds(
    what: DriveMixes, figure: DriveFigure, name: str, title: str, measure: Measure
) -> Table:
    rows = []
    for mix in figure.mixes:
        split, best, tried = _best(what, figure, mix, measure)
        own = [_mean(what, figure, mix, place, measure) for place in range(len(figure.schemes))]
        cells = [words.significant(value) for value in [*own, best]]
        rows.append([mix.name, str(len(mix.members)), *cells, split, words.count(tried)])
    schemes = [scheme.title for scheme in figure.schemes]
    headers = ["mix", "tenants", *schemes, "best static", "parts", "tried"]
    where = f"{title}, {figure.setting.cache}, {figure.setting.machine}"
    about = f"{figure.title} ({figure.source})"
    return plain(about, where, headers, rows, 2, name, keys=1)


def _mean(what: DriveMixes, figure: DriveFigure, mix: Mix, place: int, measure: Measure) -> float:
    values = [measure(one) for one in what.found(figure, mix, figure.schemes[place])]
    return sum(values) / len(values)


def _best(
    what: DriveMixes, figure: DriveFigure, mix: Mix, measure: Measure
) -> tuple[str, float, int]:
    """Return the best division's parts, what it reaches and how many were tried.

    `equal` is one of them, whatever the parts.
    """
    found = {
        " : ".join(map(str, split)): measure(one) for split, one in what.static(figure, mix).items()
    }
    for place, scheme in enumerate(figure.schemes):
        if scheme.title == EQUAL:
            found.setdefault(EQUAL, _mean(what, figure, mix, place, measure))
    split = min(found, key=lambda name: found[name])
    return split, found[split], len(found)
