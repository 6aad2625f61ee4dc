"""What a reproduced paper on data caches shows of bounds: the best static division by replay.

For: `cachewright_lab.report.reproduced_drive`. Must never know: how numbers were measured, HTML.
The best of the divisions that were tried is chosen after the fact and for each measure anew, so
that it bounds every measure that is reported, of static divisions. Units: slowdowns, microseconds.
"""

from __future__ import annotations

from cachewright import words
from cachewright.report.figure import Figure
from cachewright.report.parts import Table, plain
from cachewright_lab.report.reproduced_drive_means import Measure, by_seed, mean
from cachewright_lab.reproduce.drive_mixes import DriveMixes
from cachewright_lab.reproduce.drive_specs import DriveFigure, Mix

MEASURES: tuple[tuple[str, str, Measure], ...] = (
    ("", "max slowdown", lambda one: one.max_slowdown),
    ("response", "mean response (us)", lambda one: one.mean() / 1e3),
    ("tail", "max response (us)", lambda one: one.mean(lambda tenant: tenant.max_ns) / 1e3),
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
        own = [mean(by_seed(what, figure, mix, one, measure)) for one in figure.schemes]
        cells = [words.significant(value) for value in own]
        cells.append(words.NOTHING if best is None else words.significant(best))
        rows.append([mix.name, str(len(mix.members)), *cells, split, words.count(tried)])
    schemes = [scheme.title for scheme in figure.schemes]
    headers = ["mix", "tenants", *schemes, "best static", "parts", "tried"]
    where = f"{title}, {figure.where}"
    return plain(figure.heading, where, headers, rows, 2, name, keys=1)


def _best(
    what: DriveMixes, figure: DriveFigure, mix: Mix, measure: Measure
) -> tuple[str, float | None, int]:
    """Return the best division's parts, what it reaches and how many were tried.

    `equal` is one of them, whatever the parts. Nothing is best if none was tried.
    """
    found = {
        " : ".join(map(str, split)): measure(one) for split, one in what.static(figure, mix).items()
    }
    for scheme in figure.schemes:
        if scheme.title == EQUAL:
            found[EQUAL] = mean(by_seed(what, figure, mix, scheme, measure))
    if not found:
        return words.NOTHING, None, 0
    split = min(found, key=lambda name: found[name])
    return split, found[split], len(found)
