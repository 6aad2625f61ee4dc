"""What a reproduced paper on caches before a disk shows: tables and charts.

For: `cachewright_lab.report.reproduced`. Must never know: how numbers were measured, HTML. Units:
hit ratios and shares are of block accesses after the part that trains; writes to the cache device
and replacements are per 100 requests. A scheme that sees ahead is shown, but never called best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import altair as alt

from cachewright import words
from cachewright.answers import Case
from cachewright.report import charts, marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.parts import Table, plain
from cachewright.report.plots import PANEL_HEIGHT, Plot, Series
from cachewright.summary import best_index
from cachewright_lab.report import grouped, reproduced_labels
from cachewright_lab.report.reproduced_labels import LABELS
from cachewright_lab.reproduce.caching import Asked, Caching, CachingFigure, Scheme, Window
from cachewright_lab.reproduce.imitators import Imitator

Measure = Callable[[Case], float]
NS_PER_S = 1e9
BEST_OF = "best of the others"


def notes(what: Caching) -> list[str]:
    """Return what to know before the numbers."""
    share = words.percent(what.training.share)
    return [
        f"The first {share} of each trace trains the models and fills the cache; only what comes "
        "after is counted. Schemes that see ahead are bounds, not schemes to use.",
    ]


def shared(what: Caching) -> list[Table]:
    """Return the tables that belong to all figures: none."""
    del what
    return []


def hit_ratio(case: Case) -> float:
    """Return the share of block accesses that hit."""
    return case.total.hit_ratio


def replacements(case: Case) -> float:
    """Return blocks that left for others per 100 requests."""
    return _per_100(case, case.total.evictions)


def writes(case: Case) -> float:
    """Return blocks written to the cache device per 100 requests."""
    return _per_100(case, case.total.cache_writes)


def response_us(case: Case) -> float:
    """Return the mean response of requests in us."""
    return (case.total.mean_response_ns or 0.0) / 1e3


def _per_100(case: Case, count: int) -> float:
    return 100.0 * count / max(case.total.requests, 1)


MEASURES: dict[str, tuple[str, Measure, bool]] = {
    "hits": ("hit ratio", hit_ratio, True),
    "imitated": ("hit ratio by the oracle's", hit_ratio, True),
    "replacements": ("replacements per 100 requests", replacements, False),
    "writes": ("blocks written to the SSD per 100 requests", writes, False),
    "response": ("mean response (us)", response_us, False),
}


def shown(what: Caching, figure: CachingFigure) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    match figure.shows:
        case "agreement":
            return [_agreement(what, figure)]
        case "ceilings":
            return [*reproduced_labels.ceilings(what, figure, _title(figure))]
        case "in-sample":
            return [*reproduced_labels.in_sample(what, figure, _title(figure))]
        case "learning":
            return reproduced_labels.learning(what, figure, _title(figure))
        case "sizes":
            return [_sizes(what, figure, name) for name in figure.workloads]
        case "over-time":
            return [chart for name in figure.workloads for chart in _over_time(what, figure, name)]
    return [_by_workload(what, figure), _bars(what, figure), *_beside(what, figure)]


def _beside(what: Caching, figure: CachingFigure) -> list[Table]:
    """Return the trained and our own schemes as quotients by the best of the others on average.

    A figure without such schemes compares those that see ahead; `beside` of its spec names others.
    """
    _, _, highest = MEASURES[figure.shows]
    values = {scheme.title: _values(what, figure, scheme) for scheme in figure.schemes}
    others = [scheme.title for scheme in figure.schemes if not scheme.bound and not scheme.own]
    ours = [scheme.title for scheme in figure.schemes if scheme.own]
    ours = ours or [scheme.title for scheme in figure.schemes if scheme.bound]
    if not others or not ours:
        return []
    means = {title: sum(values[title]) / len(values[title]) for title in others}
    best = (max if highest else min)(others, key=lambda title: means[title])
    named = [(title, "", title) for title in figure.beside if title in others]
    rows = [
        [own, label, said, *_quotients(values[own], values[other])]
        for own in ours
        for label, said, other in [*named, (BEST_OF, best, best)]
    ]
    headers = ["scheme", "by", "", *figure.workloads, "mean", "least", "greatest"]
    title = f"{MEASURES[figure.shows][0]}: quotients"
    return [plain(_title(figure), title, headers, rows, 3, "beside", keys=2)]


def _quotients(own: Sequence[float], other: Sequence[float]) -> list[str]:
    """Return quotients per workload, that of the means, and the least and the greatest."""
    each = [one / base for one, base in zip(own, other, strict=True) if base > 0]
    cells = [words.times(one, base) for one, base in zip(own, other, strict=True)]
    cells.append(words.times(sum(own), sum(other)))
    ends = [min(each), max(each)] if each else []
    return cells + ([words.significant(one) for one in ends] or [words.NOTHING] * 2)


def _title(figure: CachingFigure) -> str:
    return f"{figure.title} ({figure.source})"


def _case(what: Caching, figure: CachingFigure, workload: str, scheme: Scheme) -> Case:
    return what.cases[Asked(workload, figure.sizes[0], scheme)]


def _values(what: Caching, figure: CachingFigure, scheme: Scheme) -> list[float]:
    """Return a figure's measure of a scheme, per workload."""
    _, measure, _ = MEASURES[figure.shows]
    values = [measure(_case(what, figure, name, scheme)) for name in figure.workloads]
    if figure.shows != "imitated":
        return values
    bounds = [scheme for scheme in figure.schemes if scheme.bound]
    tops = [
        max(measure(_case(what, figure, name, bound)) for bound in bounds)
        for name in figure.workloads
    ]
    return [value / top if top > 0 else 1.0 for value, top in zip(values, tops, strict=True)]


def _by_workload(what: Caching, figure: CachingFigure) -> Table:
    """Return a row per scheme, a column per workload, the mean last."""
    title, _, highest = MEASURES[figure.shows]
    each = [_values(what, figure, scheme) for scheme in figure.schemes]
    each = [[*values, sum(values) / len(values)] for values in each]
    honest = [at for at, scheme in enumerate(figure.schemes) if not scheme.bound]
    best: list[set[int]] = [set()]
    for column in range(len(each[0])):
        places = best_index([each[at][column] for at in honest], highest=highest)
        best.append({honest[place] for place in places})
    digits = words.ratio if highest else words.significant
    rows = [
        [scheme.title, *(digits(value) for value in values)]
        for scheme, values in zip(figure.schemes, each, strict=True)
    ]
    size = f"{figure.sizes[0]:g} % of the working set"
    headers = ["scheme", *figure.workloads, "mean"]
    return Table(_title(figure), f"{title}, cache of {size}", headers, rows, best)


def _bars(what: Caching, figure: CachingFigure) -> Figure:
    """Return the same as bars, a group per workload."""
    title = MEASURES[figure.shows][0]
    rows = [
        {"workload": name, "scheme": scheme.title, "value": value}
        for scheme in figure.schemes
        for name, value in zip(figure.workloads, _values(what, figure, scheme), strict=True)
    ]
    chart = grouped.bars(rows, "workload", "scheme", title)
    caption = f"Each scheme on the later part of each trace, cache of {figure.sizes[0]:g} %."
    return Figure(f"{figure.name}-bars", figure.title, caption, chart)


def _sizes(what: Caching, figure: CachingFigure, workload: str) -> Table:
    """Return hit ratios by size of the cache."""
    each = [
        [hit_ratio(what.cases[Asked(workload, size, scheme)]) for size in figure.sizes]
        for scheme in figure.schemes
    ]
    rows = [
        [scheme.title, *(words.ratio(value) for value in values)]
        for scheme, values in zip(figure.schemes, each, strict=True)
    ]
    headers = ["scheme", *(f"{size:g} %" for size in figure.sizes)]
    title = f"{workload}: hit ratio by size of the cache in per cent of the working set"
    return plain(_title(figure), title, headers, rows, 1, workload)


def _agreement(what: Caching, figure: CachingFigure) -> Table:
    """Return how often models say what the oracle does, beside always saying the commonest."""
    rows = []
    for scheme in figure.schemes:
        for name in figure.workloads:
            model = what.models[name, scheme.learns]
            cells = [scheme.title, name]
            for _, of in LABELS:
                said = (model.agreement(own=False), model.agreement(own=True), model.majority)
                cells += [words.percent(of(one)) for one in said]
            rows.append([*cells, _gain(model)])
        of_scheme = [row for row in rows if row[0] == scheme.title]
        rows.append([scheme.title, "mean", *_column_means(of_scheme)])
    each = ("told the oracle's labels", "fed its own", "the commonest")
    headers = ["scheme", "workload", *(f"{label}, {one}" for label, _ in LABELS for one in each)]
    title = "agreement with the oracle on the later part; gain: equation 4, less one"
    return plain(_title(figure), title, [*headers, "gain"], rows, 2)


def _column_means(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the means of the columns of numbers of some rows, gains as changes."""
    means = []
    for column in zip(*(row[2:] for row in rows), strict=True):
        values = [value for value in map(words.value_of, column) if value is not None]
        means.append(sum(values) / len(values) if values else None)
    *shares, gain = means
    last = words.NOTHING if gain is None else words.signed(gain, 0)
    return [*map(words.percent, shares), last]


def _gain(model: Imitator) -> str:
    found = commonest = 1.0
    for _, of in LABELS:
        found *= of(model.agreement(own=False))
        commonest *= of(model.majority)
    return words.change(found, commonest, 0)


def _over_time(what: Caching, figure: CachingFigure, workload: str) -> list[Table | Figure]:
    """Return hit ratios over the replay, as a chart and by tenths of it."""
    windows = {
        scheme.title: what.windows[Asked(workload, figure.sizes[0], scheme)]
        for scheme in figure.schemes
    }
    points = [
        {"scheme": title, "seconds": window.time_ns / NS_PER_S, "hits": window.hit_ratio}
        for title, own in windows.items()
        for window in own
    ]
    series = Series("scheme", [scheme.title for scheme in figure.schemes], "scheme")
    tips = [Tip("scheme", "scheme"), Tip("time", "seconds", "seconds")]
    tips.append(Tip("hit ratio", "hits", "ratio"))
    y = alt.Y("hits:Q").title("hit ratio")
    panel = marks.lines(points, series, charts.seconds(points), y, tips, height=PANEL_HEIGHT + 40)
    chart = Plot([panel], [series])
    caption = "Hit ratio of each window; what trains comes before."
    name = f"{figure.name}-{workload}"
    return [
        _tenths(figure, workload, windows),
        Figure(name, f"{workload} over time", caption, chart),
    ]


def _tenths(figure: CachingFigure, workload: str, windows: Mapping[str, Sequence[Window]]) -> Table:
    """Return mean hit ratios by tenths of the replay, of each scheme's windows by title."""
    ends = [window.time_ns / NS_PER_S for own in windows.values() for window in own]
    end = max(ends, default=1.0)
    rows = []
    for title, own in windows.items():
        cells = []
        for tenth in range(10):
            inside = [
                window.hit_ratio
                for window in own
                if tenth <= min(10 * (window.time_ns / NS_PER_S) / end, 9.999) < tenth + 1
            ]
            cells.append(words.ratio(sum(inside) / len(inside)) if inside else words.NOTHING)
        rows.append([title, *cells])
    headers = ["scheme", *(f"{10 * tenth} %" for tenth in range(10))]
    title = f"{workload}: hit ratio from so much of the replay on"
    return plain(_title(figure), title, headers, rows, 1, workload)
