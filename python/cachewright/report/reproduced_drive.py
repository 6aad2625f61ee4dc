"""What a reproduced paper on data caches of drives shows: tables and charts.

For: `cachewright.report.reproduced`. Must never know: how numbers were measured, HTML. Units: a
slowdown is a tenant's mean response by what it is alone with the whole cache; changes are relative.
A scheme that sees ahead is shown, but never called best; where a scheme has several seeds, a cell
is their mean with the least and the greatest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import geometric_mean
from typing import Any

from cachewright import words
from cachewright.report import reproduced_drive_alone as alone
from cachewright.report import reproduced_drive_bounds as bounds
from cachewright.report import reproduced_drive_loads as loads
from cachewright.report.drive_charts import mix_dots
from cachewright.report.figure import Figure
from cachewright.report.parts import Table, plain
from cachewright.reproduce.drive_mixes import DriveMixes, Outcome
from cachewright.reproduce.drive_specs import DriveFigure, Mix, Scheme
from cachewright.summary import best_index

Measure = Callable[[Outcome], float]
# Whose sentences are told, beside whom.
OURS = ("icache", "icache-x")
EQUAL = "equal"
BESIDE = ("shared", "equal", "costpi", "justitia", "mlcache")


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
    if what.common.training["seeds"] > 1:
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
            return [part for key, title in TAILS for part in _tail(what, figure, key, title)]
        case "hits":
            return _hits(what, figure)
        case "group":
            return _group(what, figure)
        case "summary":
            return _summary(what, figure)
        case "bounds":
            return bounds.shown(what, figure)
        case "loads":
            return loads.shown(what, figure)
    return alone.shown(what, figure)


def _slowdown(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    found = _by_mix(what, figure, "max slowdown", lambda one: one.max_slowdown)
    changes = _changes(what, figure, lambda one: [one.max_slowdown])
    return _with(found, [*changes, *_quotients(what, figure)])


def _response(what: DriveMixes, figure: DriveFigure, name: str = "") -> list[Table | Figure]:
    title = "mean response (us)"
    found = _by_mix(what, figure, title, lambda one: one.mean() / 1e3, name=name)
    beside = ", ".join(part for part in (name, "beside") if part)
    return _with(found, _changes(what, figure, lambda one: one.slowdowns, beside))


def _fairness(what: DriveMixes, figure: DriveFigure, name: str = "") -> list[Table | Figure]:
    return _by_mix(what, figure, "fairness", lambda one: one.fairness, highest=True, name=name)


def _hits(what: DriveMixes, figure: DriveFigure, name: str = "") -> list[Table | Figure]:
    return _by_mix(what, figure, "hit ratio", lambda one: one.hit_ratio, highest=True, name=name)


def _group(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return every measure of mixes with as many tenants; the max slowdown as a chart, too."""
    rest = [
        *_response(what, figure, "response"),
        *(part for key, title in TAILS for part in _tail(what, figure, key, title)),
        *_fairness(what, figure, "fairness"),
        *_hits(what, figure, "hits"),
    ]
    return [*_slowdown(what, figure), *(part for part in rest if isinstance(part, Table))]


# The paper's tail is the maximum ("maximum response latency").
TAILS = (("max_ns", "max (us)"), ("p999_ns", "p99.9 (us)"))


def _tail(what: DriveMixes, figure: DriveFigure, key: str, title: str) -> list[Table | Figure]:
    short = title.split(" (", maxsplit=1)[0]
    found = _by_mix(what, figure, title, lambda one: one.mean(key) / 1e3, name=short)
    changes = _changes(what, figure, lambda one: _figures(one, key), f"{short}, beside")
    return _with(found if key == "max_ns" else found[:1], changes)


def _with(found: list[Table | Figure], changes: list[Table]) -> list[Table | Figure]:
    """Return a figure's table, what changes beside others, then its chart."""
    return [*found[:1], *changes, *found[1:]]


def _figures(one: Outcome, key: str) -> list[float]:
    return [float(tenant[key]) for tenant in one.tenants if tenant["requests"]]


def _title(figure: DriveFigure) -> str:
    return f"{figure.title} ({figure.source})"


def _place(figure: DriveFigure) -> str:
    return f"{figure.setting.cache}, {figure.setting.machine}"


def groups(figure: DriveFigure) -> list[tuple[str, list[Mix]]]:
    """Return the mixes by their number of tenants: means of different numbers are not alike."""
    counts = sorted({len(mix.members) for mix in figure.mixes})
    return [
        (f"{count} tenants", [mix for mix in figure.mixes if len(mix.members) == count])
        for count in counts
    ]


def _values(
    what: DriveMixes, figure: DriveFigure, mix: Mix, scheme: Scheme, measure: Measure
) -> list[float]:
    return [measure(one) for one in what.found(figure, mix, scheme)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def cell(values: Sequence[float]) -> str:
    """Return the mean, with the least and the greatest of several."""
    text = words.significant(_mean(values))
    if len(values) == 1:
        return text
    ends = f"{words.significant(min(values))} to {words.significant(max(values))}"
    return words.Number(f"{text} ({ends})", _mean(values))


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

    Times and slowdowns of mixes are orders of magnitude apart, so their mean is the geometric one.
    """
    rows, best_of, dots = [], [], []
    word, mean = ("mean", _mean) if highest else ("geometric mean", geometric_mean)
    for mix in figure.mixes:
        each = [_values(what, figure, mix, scheme, measure) for scheme in figure.schemes]
        rows.append([mix.name, str(len(mix.members)), *map(cell, each)])
        best_of.append([_mean(values) for values in each])
        for scheme, values in zip(figure.schemes, each, strict=True):
            dots.append({"mix": mix.name, "scheme": scheme.title, "value": _mean(values)})
    for group, mixes in groups(figure):
        of_schemes = [
            [_values(what, figure, mix, scheme, measure) for mix in mixes]
            for scheme in figure.schemes
        ]
        every = [_over_mixes(one, mean) for one in of_schemes]
        alike = [_as_equal(what, figure, mixes, scheme) for scheme in figure.schemes]
        rows.append([f"{word}, {group}", "", *map(_marked, every, alike)])
        best_of.append([_mean(one) for one in every])
        for row in _left_out_rows(group, of_schemes, mean):
            rows.append(row)
            best_of.append([])
    headers = ["mix", "tenants", *(scheme.title for scheme in figure.schemes)]
    table = Table(
        _title(figure),
        f"{title}, {_place(figure)}",
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
    return words.Number(f"{text} = equal", _mean(values)) if alike else text


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
    mean: Callable[[Sequence[float]], float],
) -> list[list[str]]:
    """Return the range of a group's means, leaving one mix out: none for a single mix."""
    if len(of_schemes[0]) < 2:
        return []
    left = [left_out([_mean(one) for one in mixes], mean) for mixes in of_schemes]
    return [
        [f"{group}, leaving one out, {end}", "", *(words.significant(one[place]) for one in left)]
        for place, end in enumerate(("least", "greatest"))
    ]


def left_out(
    values: Sequence[float], mean: Callable[[Sequence[float]], float]
) -> tuple[float, float]:
    """Return the least and the greatest mean of all but one."""
    means = [mean([*values[:place], *values[place + 1 :]]) for place in range(len(values))]
    return min(means), max(means)


def _quotients(what: DriveMixes, figure: DriveFigure) -> list[Table]:
    """Return geometric means of max slowdowns by those of others, with leave-one-out ranges."""
    titles = {scheme.title: scheme for scheme in figure.schemes}
    others = [title for title in BESIDE if title in titles]
    rows = []
    for group, mixes in groups(figure):
        for ours in [title for title in OURS if title in titles] if others else []:
            cells = []
            for other in others:
                own = _slowest(what, figure, mixes, titles[ours])
                base = _slowest(what, figure, mixes, titles[other])
                each = [one / two for one, two in zip(own, base, strict=True)]
                cells.append(words.significant(geometric_mean(each)))
                ends = left_out(each, geometric_mean) if len(each) > 1 else None
                cells += map(words.significant, ends) if ends else [words.NOTHING] * 2
            rows.append([group, ours, *cells])
    if not rows:
        return []
    heads = [
        text
        for other in others
        for text in (f"by {other}", f"{other}, least", f"{other}, greatest")
    ]
    title = "geometric means as quotients, and their range leaving one mix out"
    headers = ["mixes", "scheme", *heads]
    return [plain(_title(figure), title, headers, rows, 2, "quotients", keys=2)]


def _slowest(
    what: DriveMixes, figure: DriveFigure, mixes: Sequence[Mix], scheme: Scheme
) -> list[float]:
    """Return the max slowdown of every mix, seeds averaged."""
    return [_mean(_values(what, figure, mix, scheme, lambda one: one.max_slowdown))
            for mix in mixes]  # fmt: skip


def _over_mixes(
    values: Sequence[Sequence[float]], mean: Callable[[Sequence[float]], float]
) -> list[float]:
    """Return the means over mixes, one for each seed."""
    seeds = max(len(one) for one in values)
    return [mean([one[min(seed, len(one) - 1)] for one in values]) for seed in range(seeds)]


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
        ratios = [1 / slowdown for slowdown in one.slowdowns]
        named = zip(mix.members, ratios, strict=False)
        each = ", ".join(f"{member.name} {words.percent(ratio)}" for member, ratio in named)
        every.append((min(ratios), _mean(ratios), one.fairness))
        rows.append([mix.name, each, *_kept(every[-1])])
    least = (min(column) for column in zip(*every, strict=True))
    rows.append(["least of all mixes", "", *_kept(tuple(least))])
    headers = ["mix", "performance beside alone", "least", "mean", "fairness"]
    return plain(_title(figure), _place(figure), headers, rows, 2, keys=1)


def _kept(values: Sequence[float]) -> list[str]:
    *kept, fairness = values
    return [*map(words.percent, kept), words.ratio(fairness)]


def _changes(
    what: DriveMixes,
    figure: DriveFigure,
    measure: Callable[[Outcome], list[float]],
    name: str = "beside",
) -> list[Table]:
    """Return how far ours are from others: the mean and the greatest fall over mixes or tenants."""
    titles = {scheme.title: scheme for scheme in figure.schemes}
    others = [title for title in BESIDE if title in titles]
    rows = []
    for group, mixes in groups(figure):
        for ours in [title for title in OURS if title in titles]:
            each = [
                _relative(what, figure, mixes, titles[ours], titles[other], measure)
                for other in others
            ]
            cells = [words.signed(pick(one)) for one in each for pick in (_mean, min)]
            rows.append([group, ours, *cells])
    if not others or not rows:
        return []
    heads = [text for other in others for text in (f"beside {other}", f"{other}, at best")]
    title = f"changes, {_place(figure)}" + (
        f", {name.removesuffix(', beside')}" if "," in name else ""
    )
    return [plain(_title(figure), title, ["mixes", "scheme", *heads], rows, 2, name)]


def _relative(
    what: DriveMixes,
    figure: DriveFigure,
    mixes: Sequence[Mix],
    ours: Scheme,
    other: Scheme,
    measure: Callable[[Outcome], list[float]],
) -> list[float]:
    """Return the changes of every number of every mix, seeds averaged."""
    changes = []
    for mix in mixes:
        bases = measure(what.found(figure, mix, other)[0])
        each = [measure(one) for one in what.found(figure, mix, ours)]
        own = [_mean(numbers) for numbers in zip(*each, strict=True)]
        changes += [one / base - 1 for one, base in zip(own, bases, strict=True) if base > 0]
    return changes


def _summary(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return, for each number of tenants, the mean change from each scheme to each other."""
    found: list[Table | Figure] = []

    def measure(one: Outcome) -> list[float]:
        return [one.max_slowdown]

    for group, mixes in groups(figure):
        rows = []
        for ours in figure.schemes:
            changes = [
                words.NOTHING
                if other is ours
                else words.signed(_mean(_relative(what, figure, mixes, ours, other, measure)))
                for other in figure.schemes
            ]
            rows.append([ours.title, *changes])
        headers = ["max slowdown of", *(f"beside {one.title}" for one in figure.schemes)]
        paper = _paper_row(figure, group)
        rows += [paper] if paper else []
        title = f"{group}, {_place(figure)}"
        found.append(plain(_title(figure), title, headers, rows, 1, group))
    seeded = [scheme for scheme in figure.schemes if len(_seeds(what, figure, scheme)) > 1]
    for scheme in seeded:
        found.append(_seed_table(what, figure, scheme))
    return found


def _paper_row(figure: DriveFigure, group: str) -> list[str] | None:
    claims: Any = figure.document.get("claims", {}).get(group)
    if claims is None or not any(scheme.title in claims for scheme in figure.schemes):
        return None
    texts = [f"{claims[s.title]:+} %" if s.title in claims else words.NOTHING
             for s in figure.schemes]  # fmt: skip
    return ["the paper's icache", *texts]


def _seeds(what: DriveMixes, figure: DriveFigure, scheme: Scheme) -> list[Outcome]:
    return what.found(figure, figure.mixes[0], scheme)


def _seed_table(what: DriveMixes, figure: DriveFigure, scheme: Scheme) -> Table:
    """Return the geometric mean of max slowdowns by the seed that models were trained from."""
    rows = []
    for group, mixes in groups(figure):
        each = [_values(what, figure, mix, scheme, lambda one: one.max_slowdown) for mix in mixes]
        rows.append(
            [group, *(words.significant(value, 4) for value in _over_mixes(each, geometric_mean))]
        )
    count = len(_seeds(what, figure, scheme))
    headers = ["max slowdown, geometric mean", *(f"seed {seed + 1}" for seed in range(count))]
    title = f"{scheme.title} by seed of its models"
    return plain(_title(figure), title, headers, rows, 1, f"seeds of {scheme.title}")
