"""What a reproduced paper on data caches of drives shows: tables and charts.

For: `cachewright_lab.report.reproduced`. Must never know: how numbers were measured, HTML. Units: a
slowdown is a tenant's mean response by what it is alone with the whole cache; changes are relative.
A scheme that sees ahead is shown, but never called best; where a scheme has several seeds, a cell
is their mean with the least and the greatest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cachewright import words
from cachewright.answers import TenantTiming
from cachewright.report.figure import Figure
from cachewright.report.parts import Table, plain
from cachewright.summary import best_index
from cachewright_lab.report import reproduced_drive_alone as alone
from cachewright_lab.report import reproduced_drive_beside as beside
from cachewright_lab.report import reproduced_drive_bounds as bounds
from cachewright_lab.report import reproduced_drive_loads as loads
from cachewright_lab.report.drive_charts import mix_dots
from cachewright_lab.report.reproduced_drive_means import (
    Mean,
    Measure,
    by_seed,
    cell,
    geometric,
    left_out,
    mean,
    over_mixes,
)
from cachewright_lab.reproduce.drive_mixes import DriveMixes, Outcome
from cachewright_lab.reproduce.drive_specs import DriveFigure, Mix, Scheme

EQUAL = "equal"
Of = Callable[[TenantTiming], float]
# Tails of responses; the paper's is the maximum ("maximum response latency").
TAILS: tuple[tuple[str, Of], ...] = (
    ("max (us)", lambda one: one.max_ns),
    ("p99.9 (us)", lambda one: one.p999_ns),
)


def notes(what: DriveMixes) -> list[str]:
    """Return what to know before the numbers."""
    found = [
        "A slowdown is a tenant's mean response by that alone with the whole cache. Only requests "
        "after the part that trains are counted. `opt` and `best static` see ahead: bounds, not "
        "schemes to use.",
        "Groups of mixes with as many tenants are never pooled. `leaving one out` is the range of "
        "a group's mean without one of its mixes. `= equal` marks a scheme that divides every "
        "cache of the row exactly as `equal` does.",
    ]
    if what.common.training.seeds > 1:
        found.append("Models of icache are trained from several seeds: mean (least to greatest).")
    return found


def shared(what: DriveMixes) -> list[Table]:
    """Return the table that belongs to all figures: the mixes."""
    rows = []
    for mix in what.common.mixes:
        names = [member.name for member in mix.members]
        sensitive = [member.name for member in mix.members if member.sensitive]
        rows.append([mix.name, str(len(names)), ", ".join(names), ", ".join(sensitive)])
    headers = ["mix", "number", "tenants", "sensitive (costpi)"]
    return [plain("", "Mixes", headers, rows, 4)]


def shown(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    match figure.shows:
        case "interference":
            return [_interference(what, figure)]
        case "slowdown":
            return _slowdown(what, figure)
        case "response":
            return _response(what, figure)
        case "fairness":
            return _fairness(what, figure)
        case "tail":
            return [part for tail in TAILS for part in _tail(what, figure, *tail)]
        case "hits":
            return _hits(what, figure)
        case "group":
            return _group(what, figure)
        case "summary":
            return beside.summary(what, figure)
        case "bounds":
            return bounds.shown(what, figure)
        case "loads":
            return loads.shown(what, figure)
    return alone.shown(what, figure)


def _slowdown(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    found = _by_mix(what, figure, "max slowdown", lambda one: one.max_slowdown)
    changes = beside.changes(what, figure, beside.max_slowdown)
    return _with(found, [*changes, *beside.quotients(what, figure)])


def _response(what: DriveMixes, figure: DriveFigure, name: str = "") -> list[Table | Figure]:
    title = "mean response (us)"
    found = _by_mix(what, figure, title, lambda one: one.mean() / 1e3, name=name)
    own = ", ".join(part for part in (name, "beside") if part)
    return _with(found, beside.changes(what, figure, lambda one: one.slowdown_by_tenant, own))


def _fairness(what: DriveMixes, figure: DriveFigure, name: str = "") -> list[Table | Figure]:
    return _by_mix(what, figure, "fairness", lambda one: one.fairness, highest=True, name=name)


def _hits(what: DriveMixes, figure: DriveFigure, name: str = "") -> list[Table | Figure]:
    return _by_mix(what, figure, "hit ratio", lambda one: one.hit_ratio, highest=True, name=name)


def _group(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return every measure of mixes with as many tenants; the max slowdown as a chart, too."""
    rest = [
        *_response(what, figure, "response"),
        *(part for tail in TAILS for part in _tail(what, figure, *tail)),
        *_fairness(what, figure, "fairness"),
        *_hits(what, figure, "hits"),
    ]
    return [*_slowdown(what, figure), *(part for part in rest if isinstance(part, Table))]


def _tail(what: DriveMixes, figure: DriveFigure, title: str, of: Of) -> list[Table | Figure]:
    """Return a tail of responses by mix; only the paper's own is drawn, too."""
    short = title.split(" (", maxsplit=1)[0]
    found = _by_mix(what, figure, title, lambda one: one.mean(of) / 1e3, name=short)
    changes = beside.changes(what, figure, lambda one: _figures(one, of), f"{short}, beside")
    return _with(found if title == TAILS[0][0] else found[:1], changes)


def _with(found: list[Table | Figure], changes: list[Table]) -> list[Table | Figure]:
    """Return a figure's table, what changes beside others, then its chart."""
    return [*found[:1], *changes, *found[1:]]


def _figures(one: Outcome, of: Of) -> list[float | None]:
    """Return a number of each tenant's responses; nothing for one without requests."""
    return [float(of(tenant)) if tenant.requests else None for tenant in one.tenants]


def _by_mix(
    what: DriveMixes,
    figure: DriveFigure,
    title: str,
    measure: Measure,
    *,
    highest: bool = False,
    name: str = "",
) -> list[Table | Figure]:
    """Return a row per mix and per group of mixes, and the same as dots.

    The mean over mixes is the geometric one, except for shares.
    """
    rows, best_of, dots = [], [], []
    word, how = ("mean", mean) if highest else ("geometric mean", geometric)
    for mix in figure.mixes:
        each = [by_seed(what, figure, mix, scheme, measure) for scheme in figure.schemes]
        rows.append([mix.name, str(len(mix.members)), *map(cell, each)])
        best_of.append([mean(values) for values in each])
        for scheme, values in zip(figure.schemes, each, strict=True):
            dots.append({"mix": mix.name, "scheme": scheme.title, "value": mean(values)})
    for group, mixes in figure.groups():
        of_schemes = [
            [by_seed(what, figure, mix, scheme, measure) for mix in mixes]
            for scheme in figure.schemes
        ]
        every = [over_mixes(one, how) for one in of_schemes]
        alike = [_as_equal(what, figure, mixes, scheme) for scheme in figure.schemes]
        rows.append([f"{word}, {group}", "", *map(_marked, every, alike)])
        best_of.append([mean(one) for one in every])
        for row in _left_out_rows(group, of_schemes, how):
            rows.append(row)
            best_of.append([])
    headers = ["mix", "tenants", *(scheme.title for scheme in figure.schemes)]
    table = Table(
        figure.heading,
        f"{title}, {figure.where}",
        headers,
        rows,
        _best(figure, best_of, highest=highest),
        texts=2,
        name=name,
        keys=1,
    )
    caption = f"{title} of each mix under each scheme; {'more' if highest else 'less'} is better."
    chart = mix_dots(dots, title, ratios=not highest)
    file = f"{figure.name}-{title.split(' (', maxsplit=1)[0].replace(' ', '-')}"
    return [table, Figure(file, f"{figure.title}: {title}", caption, chart)]


def _marked(values: Sequence[float], alike: bool) -> str:
    text = cell(values)
    return words.Number(f"{text} = equal", mean(values)) if alike else text


def _as_equal(what: DriveMixes, figure: DriveFigure, mixes: Sequence[Mix], scheme: Scheme) -> bool:
    """Return whether a scheme does in all of some mixes exactly what `equal` does."""
    equal = next((one for one in figure.schemes if one.title == EQUAL), scheme)
    if equal is scheme:
        return False
    pairs = ((what.found(figure, mix, scheme), what.found(figure, mix, equal)) for mix in mixes)
    return all(one.tenants == other.tenants for own, base in pairs
               for one in own for other in base)  # fmt: skip


def _left_out_rows(
    group: str,
    of_schemes: Sequence[Sequence[Sequence[float]]],
    how: Mean,
) -> list[list[str]]:
    """Return the range of a group's means, leaving one mix out: none for a single mix."""
    if len(of_schemes[0]) < 2:
        return []
    left = [left_out([mean(one) for one in mixes], how) for mixes in of_schemes]
    return [
        [f"{group}, leaving one out, {end}", "", *(words.significant(one[place]) for one in left)]
        for place, end in enumerate(("least", "greatest"))
    ]


def _best(figure: DriveFigure, rows: list[list[float]], *, highest: bool) -> list[set[int]]:
    """Return the rows in which each column is best of those that do not see ahead."""
    found: list[set[int]] = [set() for _ in range(2 + len(figure.schemes))]
    for place, row in enumerate(rows):
        if not row:
            continue
        pairs = zip(figure.schemes, row, strict=True)
        known = [None if scheme.bound else value for scheme, value in pairs]
        for column in best_index(known, highest=highest):
            found[2 + column].add(place)
    return found


def _interference(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return each tenant's performance under the first scheme beside alone, and fairness."""
    rows, every = [], []
    for mix in figure.mixes:
        one = what.found(figure, mix, figure.schemes[0])[0]
        ratios = [slowdown and 1 / slowdown for slowdown in one.slowdown_by_tenant]
        named = zip(mix.members, ratios, strict=True)
        each = ", ".join(f"{member.name} {words.percent(ratio)}" for member, ratio in named)
        # A mix without requests is as fast as alone, as in its max slowdown.
        known = [ratio for ratio in ratios if ratio is not None] or [1.0]
        every.append((min(known), mean(known), one.fairness))
        rows.append([mix.name, each, *_kept(every[-1])])
    least = (min(column) for column in zip(*every, strict=True))
    rows.append(["least of all mixes", "", *_kept(tuple(least))])
    headers = ["mix", "performance beside alone", "least", "mean", "fairness"]
    return plain(figure.heading, figure.where, headers, rows, 2, keys=1)


def _kept(values: Sequence[float]) -> list[str]:
    *kept, fairness = values
    return [*map(words.percent, kept), words.ratio(fairness)]
