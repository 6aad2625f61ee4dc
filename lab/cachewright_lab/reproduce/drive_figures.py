"""What papers on data caches of drives show: tables and charts of `drive_mixes`.

A slowdown is a tenant's mean response by what it is alone with the whole cache; changes are
relative, quotients are of max slowdowns. Groups of mixes with as many tenants stay apart; seeds are
averaged before mixes are. Times and slowdowns of mixes are orders of magnitude apart, so that their
mean is the geometric one. A scheme that sees ahead is shown, but never called best; where a scheme
has several seeds, a cell is their mean with the least and the greatest. The best static division is
chosen after the fact and for each measure anew, so that it bounds every measure that is reported.
MSE is of labels as shares of the cache, judged on the part that did not train; a gain in hits is in
points of the hit ratio. Utilisation is the share of time in which the drive works for a tenant that
runs alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

from cachewright import _native, words
from cachewright.answers import TenantTiming, Timing
from cachewright.report.figure import Figure
from cachewright.tables import best_index, timing
from cachewright.train.demand import Reading
from cachewright.train.reports import Errors, Naive, TenantReport
from cachewright_lab.report.drive_charts import by_size, mix_dots, scatter
from cachewright_lab.report.tables import Table, plain
from cachewright_lab.reproduce.drive_mixes import BASE, DriveMixes, Outcome
from cachewright_lab.reproduce.drive_specs import DriveFigure, Mix, Scheme, Setting
from cachewright_lab.reproduce.features_alone import Line

Measure = Callable[[Outcome], float]
Mean = Callable[[Sequence[float]], float]


def by_seed(
    what: DriveMixes, figure: DriveFigure, mix: Mix, scheme: Scheme, measure: Measure
) -> list[float]:
    """Return a measure of a mix under a scheme: one value, or one for each seed of its models."""
    return [measure(one) for one in what.found(figure, mix, scheme)]


def slowest(
    what: DriveMixes, figure: DriveFigure, mixes: Sequence[Mix], scheme: Scheme
) -> list[float]:
    """Return the max slowdown of every mix, seeds averaged."""
    return [mean(by_seed(what, figure, mix, scheme, lambda one: one.max_slowdown)) for mix in mixes]


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 without values."""
    return sum(values) / max(len(values), 1)


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean; 0 without values, or where one of them is 0."""
    return statistics.geometric_mean(values) if values and min(values) > 0 else 0.0


def over_mixes(values: Sequence[Sequence[float]], how: Mean) -> list[float]:
    """Return the means over mixes, one for each seed."""
    seeds = max(len(one) for one in values)
    return [how([one[min(seed, len(one) - 1)] for one in values]) for seed in range(seeds)]


def left_out(values: Sequence[float], how: Mean) -> tuple[float, float]:
    """Return the least and the greatest mean of all values but one."""
    means = [how([*values[:place], *values[place + 1 :]]) for place in range(len(values))]
    return min(means), max(means)


def cell(values: Sequence[float]) -> str:
    """Return the mean, with the least and the greatest of several."""
    text = words.significant(mean(values))
    if len(values) == 1:
        return text
    ends = f"{words.significant(min(values))} to {words.significant(max(values))}"
    return words.Number(f"{text} ({ends})", mean(values))


# Titles of the schemes that are compared, and of those that they are set beside.
OURS = ("icache", "icache-x")
BESIDE = (
    "shared",
    "equal",
    "costpi",
    "costpi, 3 : 1",
    "justitia",
    "mlcache",
    "mlcache, writes",
)
# Numbers of one replay, in the same order under each scheme; nothing where there is none.
Numbers = Callable[[Outcome], Sequence[float | None]]


def max_slowdown(one: Outcome) -> list[float]:
    """Return the max slowdown of a mix, as its only number."""
    return [one.max_slowdown]


def quotients(what: DriveMixes, figure: DriveFigure) -> list[Table]:
    """Return geometric means of max slowdowns by those of others, with leave-one-out ranges."""
    titles = {scheme.title: scheme for scheme in figure.schemes}
    others = [title for title in BESIDE if title in titles]
    rows = []
    for group, mixes in figure.groups():
        for ours in [title for title in OURS if title in titles] if others else []:
            cells = []
            for other in others:
                own = slowest(what, figure, mixes, titles[ours])
                base = slowest(what, figure, mixes, titles[other])
                each = [one / two for one, two in zip(own, base, strict=True)]
                cells.append(words.significant(geometric(each)))
                ends = left_out(each, geometric) if len(each) > 1 else None
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
    return [plain(figure.heading, title, headers, rows, 2, "quotients", keys=2)]


def changes_beside(
    what: DriveMixes,
    figure: DriveFigure,
    numbers: Numbers,
    name: str = "beside",
) -> list[Table]:
    """Return how far ours are from others: the mean and the greatest fall over mixes or tenants."""
    titles = {scheme.title: scheme for scheme in figure.schemes}
    others = [title for title in BESIDE if title in titles]
    rows = []
    for group, mixes in figure.groups():
        for ours in [title for title in OURS if title in titles]:
            each = [
                _relative(what, figure, mixes, titles[ours], titles[other], numbers)
                for other in others
            ]
            cells = [_signed(pick, one) for one in each for pick in (mean, min)]
            rows.append([group, ours, *cells])
    if not others or not rows:
        return []
    heads = [text for other in others for text in (f"beside {other}", f"{other}, at best")]
    title = f"changes, {figure.where}" + (
        f", {name.removesuffix(', beside')}" if "," in name else ""
    )
    return [plain(figure.heading, title, ["mixes", "scheme", *heads], rows, 2, name)]


def _signed(pick: Callable[[Sequence[float]], float], values: Sequence[float]) -> str:
    return words.signed(pick(values)) if values else words.NOTHING


def _relative(
    what: DriveMixes,
    figure: DriveFigure,
    mixes: Sequence[Mix],
    ours: Scheme,
    other: Scheme,
    numbers: Numbers,
) -> list[float]:
    """Return the changes of every number of every mix, seeds averaged."""
    found = []
    for mix in mixes:
        own, base = (
            [numbers(one) for one in what.found(figure, mix, scheme)] for scheme in (ours, other)
        )
        for place in range(len(own[0])):
            now, before = (_known(one[place] for one in each) for each in (own, base))
            if now is not None and before:
                found.append(now / before - 1)
    return found


def _known(values: Iterable[float | None]) -> float | None:
    """Return the mean of what is known of a number; nothing if nothing is."""
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def summary_beside(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return, for each number of tenants, the mean change from each scheme to each other."""
    found: list[Table | Figure] = []
    for group, mixes in figure.groups():
        rows = []
        for ours in figure.schemes:
            cells = [
                words.NOTHING
                if other is ours
                else _signed(mean, _relative(what, figure, mixes, ours, other, max_slowdown))
                for other in figure.schemes
            ]
            rows.append([ours.title, *cells])
        headers = ["max slowdown of", *(f"beside {one.title}" for one in figure.schemes)]
        paper = _paper_row(figure, group)
        rows += [paper] if paper else []
        title = f"{group}, {figure.where}"
        found.append(plain(figure.heading, title, headers, rows, 1, group))
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
    for group, mixes in figure.groups():
        each = [by_seed(what, figure, mix, scheme, lambda one: one.max_slowdown) for mix in mixes]
        rows.append(
            [group, *(words.significant(value, 4) for value in over_mixes(each, geometric))]
        )
    count = len(_seeds(what, figure, scheme))
    headers = ["max slowdown, geometric mean", *(f"seed {seed + 1}" for seed in range(count))]
    title = f"{scheme.title} by seed of its models"
    return plain(figure.heading, title, headers, rows, 1, f"seeds of {scheme.title}")


MEASURES: tuple[tuple[str, str, Measure], ...] = (
    ("", "max slowdown", lambda one: one.max_slowdown),
    ("response", "mean response (us)", lambda one: one.mean() / 1e3),
    ("tail", "max response (us)", lambda one: one.mean(lambda tenant: tenant.max_ns) / 1e3),
)


def static_bounds(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return a table for each measure: schemes beside the best static division."""
    return [_bounds(what, figure, *one) for one in MEASURES]


def _bounds(
    what: DriveMixes, figure: DriveFigure, name: str, title: str, measure: Measure
) -> Table:
    rows = []
    for mix in figure.mixes:
        split, best, tried = _best_static(what, figure, mix, measure)
        own = [mean(by_seed(what, figure, mix, one, measure)) for one in figure.schemes]
        cells = [words.significant(value) for value in own]
        cells.append(words.NOTHING if best is None else words.significant(best))
        rows.append([mix.name, str(len(mix.members)), *cells, split, words.count(tried)])
    schemes = [scheme.title for scheme in figure.schemes]
    headers = ["mix", "tenants", *schemes, "best static", "parts", "tried"]
    where = f"{title}, {figure.where}"
    return plain(figure.heading, where, headers, rows, 2, name, keys=1)


def _best_static(
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


NS_PER_S = 1e9
# A mix is saturated when its tenants' utilisations alone add up to more.
SATURATED = 0.3


def by_load(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return tables of tenants alone, of mixes and of max slowdowns, by speed."""
    return [_slowdowns(what, figure), _mixes(what, figure), _tenants(what, figure)]


def _alone(what: DriveMixes, figure: DriveFigure, setting: Setting, workload: str) -> Timing:
    mix = next(one for one in figure.alone if one.name == workload)
    return timing.of(what.of(setting, mix, BASE, 1)[0].case)


def _utilisation(what: DriveMixes, figure: DriveFigure, setting: Setting, workload: str) -> float:
    return max(device.busy for device in _alone(what, figure, setting, workload).devices)


def _sum(what: DriveMixes, figure: DriveFigure, setting: Setting, mix: Mix) -> float:
    return sum(_utilisation(what, figure, setting, one.workload) for one in mix.members)


def _tenants(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return requests per second and utilisation of each tenant alone, by speed."""
    rows = []
    for name in figure.workloads:
        cells = []
        for _, setting in figure.settings:
            rate = _alone(what, figure, setting, name).total.throughput_per_s
            cells.append(words.significant(rate))
            cells.append(words.percent(_utilisation(what, figure, setting, name)))
        rows.append([name, *cells])
    heads = [f"{title}, {part}" for title, _ in figure.settings for part in ("requests/s", "busy")]
    return plain(figure.heading, "tenants alone", ["tenant", *heads], rows, 1, "tenants")


def _mixes(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return the sum of utilisations alone of each mix, by speed, and what that makes of it."""
    rows = []
    for mix in figure.mixes:
        sums = [_sum(what, figure, setting, mix) for _, setting in figure.settings]
        cells = [
            words.Number(f"{words.percent(one)}{' saturated' if one > SATURATED else ''}", one)
            for one in sums
        ]
        rows.append([mix.name, str(len(mix.members)), *cells])
    headers = ["mix", "tenants", *(title for title, _ in figure.settings)]
    title = f"sum of utilisations alone; above {words.percent(SATURATED)} is saturated"
    return plain(figure.heading, title, headers, rows, 2, "utilisation", keys=1)


def _slowdowns(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return geometric means of max slowdowns by speed, number of tenants and scheme."""
    rows = []
    for title, setting in figure.settings:
        for group, mixes in figure.groups():
            cells = []
            for scheme in figure.schemes:
                each = [what.of(setting, mix, scheme, figure.seeds) for mix in mixes]
                found = [mean([one.max_slowdown for one in own]) for own in each]
                cells.append(words.significant(geometric(found)))
            rows.append([title, group, *cells])
    headers = ["speed", "mixes", *(scheme.title for scheme in figure.schemes)]
    title = f"max slowdown, geometric means, {figure.setting.cache}"
    return plain(figure.heading, title, headers, rows, 2)


LSTM, ALL = "lstm", "1111"
Guess = Callable[[Naive], Errors]
# Answers that need no model.
GUESSES: tuple[tuple[str, Guess], ...] = (
    ("the last label", lambda naive: naive.last_label),
    ("the mean label", lambda naive: naive.mean_label),
)
LAST, MEAN = (guess for _, guess in GUESSES)


@dataclass(frozen=True)
class Gain:
    """What the same piece of cache more brings a tenant: hit ratios and mean responses in ns."""

    low: float
    hits: float
    before_ns: float
    after_ns: float
    locality: float
    """The hit ratio with the whole cache."""

    @property
    def fall(self) -> float:
        """By which share of itself the response falls."""
        return 1 - self.after_ns / self.before_ns


# What ranks tenants, and how a chart calls it.
RANKS: tuple[tuple[str, str, str, Callable[[Gain], float]], ...] = (
    ("hits", "gain in hits", "gain in hit ratio", lambda gain: gain.hits),
    ("locality", "locality", "hit ratio with all", lambda gain: gain.locality),
)


def of_tenants_alone(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    match figure.shows:
        case "sizes":
            return _sizes(what, figure)
        case "gains":
            return _gains(what, figure)
        case "labels":
            return [_labels(what, figure)]
        case "features-alone":
            return _features_alone(what, figure)
        case "signs":
            return [_signs(what, figure)]
        case "overheads":
            return [_overheads(figure)]
        case "models":
            return [_models(what, figure)]
        case "features":
            return [_features(what, figure)]
        case "elsewhere":
            return [_elsewhere(what, figure)]
    return [_settings(what, figure)]


def _correlations(figure: DriveFigure, gains: Sequence[Gain]) -> Table:
    """Return how well hits and locality rank tenants by what the cache brings them in time."""
    falls = [gain.fall for gain in gains]
    rows = [
        [title, _with_sign(rank_correlation([of(gain) for gain in gains], falls))]
        for _, title, _, of in RANKS
    ]
    title = "rank correlation with the fall of the response time"
    return plain(figure.heading, title, ["", "coefficient"], rows, 1, "ranks")


def _with_sign(number: float, digits: int = 2) -> str:
    return words.Number(f"{number:+.{digits}f}", number)


def _sizes(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return mean responses by size and the two points of each tenant."""
    names = list(figure.workloads)
    granules = figure.setting.granules
    means, points, rows = {}, {}, []
    for name in names:
        means[name] = _means(what, figure.setting, name)
        points[name] = _points(means[name])
        mbp, oap = points[name]
        for granule in range(1, granules + 1):
            marks = [mark for mark, at in (("MBP", mbp), ("OAP", oap)) if at == granule]
            rows.append(
                {
                    "tenant": name,
                    "all": "alone",
                    "size_bytes": _size(figure.setting, granule),
                    "us": means[name][granule] / 1e3,
                    "point": " and ".join(marks),
                }
            )
    table = [
        [words.size(_size(figure.setting, granule)) if granule else "off"]
        + [words.significant(means[name][granule] / 1e3) for name in names]
        for granule in range(granules + 1)
    ]
    for place, mark in enumerate(("MBP", "OAP")):
        sizes = [words.size(_size(figure.setting, points[name][place])) for name in names]
        table.append([mark, *sizes])
    title = f"mean response alone (us), {figure.setting.machine}"
    caption = (
        "Each tenant alone over the whole replay. MBP: the size whose last granule brought most; "
        "OAP: the first size above it whose last granule brought less than 5 %."
    )
    return [
        plain(figure.heading, title, ["cache", *names], table, 1),
        Figure(figure.name, figure.title, caption, by_size(rows, "tenant", "all")),
    ]


def _size(setting: Setting, granule: int) -> float:
    return int(_native.parse_bytes(setting.cache)) * granule / setting.granules


def _means(what: DriveMixes, setting: Setting, workload: str) -> list[float]:
    """Return the mean response of a workload with 0, 1, ... granules."""
    tenant = what.segments(setting, workload).tenants[0]
    requests = max(int(tenant.requests.sum()), 1)
    return [float(row.sum()) / requests for row in tenant.response_ns]


def _points(means: Sequence[float]) -> tuple[int, int]:
    import numpy as np

    mbp, oap = Reading().points(np.array([means], dtype=np.float64))[0]
    return int(mbp), int(oap)


def _gain(what: DriveMixes, figure: DriveFigure, workload: str) -> Gain:
    """Return what the same piece of cache more brings a tenant."""
    low, high = (int(figure.about[key]) for key in ("from_granules", "to_granules"))
    means = _means(what, figure.setting, workload)
    tenant = what.segments(figure.setting, workload).tenants[0]
    accesses = max(int(tenant.accesses.sum()), 1)
    hits = [float(row.sum()) / accesses for row in tenant.hits]
    return Gain(hits[low], hits[high] - hits[low], means[low], means[high], hits[-1])


def _gains(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    gains = {name: _gain(what, figure, name) for name in figure.workloads}
    rows = [
        [
            name,
            words.ratio(one.low),
            _with_sign(100 * one.hits),
            words.fixed(one.before_ns / 1e3, 1),
            words.fixed(one.after_ns / 1e3, 1),
            words.signed(-one.fall),
            words.ratio(one.locality),
        ]
        for name, one in gains.items()
    ]
    low, high = (figure.about[key] for key in ("from_granules", "to_granules"))
    sizes = [words.size(_size(figure.setting, granule)) for granule in (low, high)]
    headers = ["tenant", "hit ratio", "more hits (points)", "response (us)", "then", "change"]
    headers.append("hits with all (locality)")
    table = plain(figure.heading, f"from {sizes[0]} to {sizes[1]}, alone", headers, rows, 1)
    charts: list[Table | Figure] = []
    for key, _, axis, of in RANKS:
        dots = [{"tenant": n, "x": of(one), "y": one.fall} for n, one in gains.items()]
        chart = scatter(dots, axis, "fall of the response time", "tenant")
        caption = "The same piece of cache more for each tenant alone."
        charts.append(Figure(f"{figure.name}-{key}", f"Response time by {axis}", caption, chart))
    return [table, _correlations(figure, list(gains.values())), *charts]


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Return Spearman's coefficient, equal values at their mean rank; 0 where one does not vary."""
    one, other = _ranks(left), _ranks(right)
    mean = (len(left) - 1) / 2
    both = sum((a - mean) * (b - mean) for a, b in zip(one, other, strict=True))
    spread = sum((a - mean) ** 2 for a in one) * sum((b - mean) ** 2 for b in other)
    return float(both / spread**0.5) if spread > 0 else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
        for value in values
    ]


def _features_alone(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    lines = what.alone[figure.name, figure.setting.machine].lines
    sizes = [size for size, _ in lines[0].points if size]
    rows, drawn = [], []
    for line in lines:
        means = {size: mean / 1e3 for size, mean in line.points}
        rows.append(
            [line.series, line.workload, line.label]
            + [words.significant(means[size]) for size in sizes]
        )
        for size in sizes:
            drawn.append(
                {
                    "panel": f"{line.series}, {line.workload}",
                    "label": line.label,
                    "size_bytes": size,
                    "us": means[size],
                    "point": "",
                }
            )
    headers = ["changed", "tenant", "to", *(words.size(size) for size in sizes)]
    caption = "Synthetic tenants alone; within a panel one feature differs, nothing else."
    chart = by_size(drawn, "panel", "label")
    return [
        plain(figure.heading, "mean response (us) by cache size", headers, rows, 3),
        Figure(figure.name, figure.title, caption, chart),
    ]


# What counts as a change of a response time.
LEAST_CHANGE = 0.01


def _signs(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return what each feature changes on each machine, and how many of the paper's signs hold.

    A feature's sign holds where every tenant waits longer; that of the cache where responses are
    shorter with the last size than with the first, on average over all tenants.
    """
    signed = [one["title"] for one in figure.document["series"] if one.get("sign") == "longer"]
    rows, heads = [], []
    for machine in figure.alone_on:
        lines = what.alone[figure.name, machine].lines
        changes = {key: ends[-1] / ends[0] - 1 for key, ends in _by_series(lines).items()}
        by_cache = [_sized(line)[-1][1] / _sized(line)[0][1] - 1 for line in lines]
        held = [
            all(change >= LEAST_CHANGE for (own, _), change in changes.items() if own == series)
            for series in signed
        ]
        held.append(mean(by_cache) <= -LEAST_CHANGE)
        heads = [f"{series}, {workload}" for series, workload in changes]
        cells = [*map(words.signed, changes.values()), words.signed(mean(by_cache))]
        rows.append([machine, *cells, words.count(sum(held))])
    small, large = (words.size(size) for size in _ends_of(what, figure))
    title = (
        f"change of the mean response at {small} from the first to the last value; "
        f"signs of the paper that hold, of {len(signed) + 1}"
    )
    headers = ["machine", *heads, f"cache, to {large}", "signs"]
    return plain(figure.heading, title, headers, rows, 1)


def _by_series(lines: Sequence[Line]) -> dict[tuple[str, str], list[float]]:
    """Return mean responses with the smallest cache by series and tenant, in order."""
    found: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        found.setdefault((line.series, line.workload), []).append(_sized(line)[0][1])
    return found


def _sized(line: Line) -> list[tuple[int, float]]:
    """Return the points of a line without the one of no cache."""
    return [point for point in line.points if point[0]]


def _ends_of(what: DriveMixes, figure: DriveFigure) -> tuple[int, int]:
    points = _sized(what.alone[figure.name, figure.alone_on[0]].lines[0])
    return points[0][0], points[-1][0]


# Bytes of a number in f32.
F32 = 4


def _overheads(figure: DriveFigure) -> Table:
    """Return what a scheme's model and counters take, by its own formulas."""
    about = figure.document["network"]
    inputs, units, steps, outputs = (
        int(about[key]) for key in ("inputs", "units", "steps", "outputs")
    )
    operations = inputs * (inputs * units + units**2 + units) * steps
    per_ns = about["clock_ghz"] * about["dmips_per_mhz"]
    counted = figure.document["counters"]
    addresses = counted["requests_per_hour"] / 3600
    weights = 4 * units * (inputs + units) + units * outputs
    biases = F32 * (4 * units + outputs)
    rows_of_weights = 2 * 4 * units + outputs
    # Weights of the inputs, of the units and of the outputs.
    tensors = 3
    rows = [
        ["operations of a prediction", words.count(operations)],
        ["a prediction on a Cortex-R8", words.duration(operations / per_ns)],
        ["addresses of a second", words.size(addresses * counted["bytes_per_address"])],
        ["model, one scale per tensor", words.size(weights + biases + F32 * tensors)],
        ["model, one scale per row", words.size(weights + biases + F32 * rows_of_weights)],
    ]
    return plain(figure.heading, "by the paper's formulas", ["of", "takes"], rows, 1)


def _reports(
    what: DriveMixes, figure: DriveFigure, setting: Setting, kind: str, features: str
) -> list[list[TenantReport]]:
    """Return the reports of all workloads by seed."""
    return [
        [what.model(setting, name, kind, features, seed) for name in figure.workloads]
        for seed in range(1, figure.seeds + 1)
    ]


def _over(
    reports: Sequence[Sequence[TenantReport]], value: Callable[[TenantReport], float]
) -> list[float]:
    """Return the mean over workloads for each seed."""
    return [sum(value(one) for one in each) / len(each) for each in reports]


def _mse(report: TenantReport) -> float:
    return report.models[0].test.mse


def _errors(values: Sequence[float]) -> str:
    mean = sum(values) / len(values)
    spread = f" ({min(values):.4f} to {max(values):.4f})" if len(values) > 1 else ""
    return words.Number(f"{mean:.4f}{spread}", mean)


def _naive(reports: Sequence[TenantReport], guess: Guess) -> float:
    return sum(guess(one.naive).mse for one in reports) / len(reports)


def _models(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return error, size and time of each kind of model, then answers that need none."""
    rows, errors = [], []
    for kind in figure.about["models"]:
        reports = _reports(what, figure, figure.setting, kind, ALL)
        every = [one.models[0] for each in reports for one in each]
        own = _over(reports, _mse)
        errors.append(sum(own) / len(own))
        size = sum(one.bytes for one in every) / len(every)
        takes = sum(one.inference_ns for one in every) / len(every)
        rows.append([kind, _errors(own), words.size(size), words.duration(takes)])
    naive = _reports(what, figure, figure.setting, figure.about["models"][0], ALL)[0]
    for title, guess in GUESSES:
        errors.append(_naive(naive, guess))
        rows.append([title, words.ratio(errors[-1]), words.NOTHING, words.NOTHING])
    granules, spread = figure.setting.granules, _label_variance(what, figure)
    last = errors[len(figure.about["models"]) - 1]
    for row, error in zip(rows, errors, strict=True):
        units = [error * granules**2, error / spread if spread else 0.0]
        row += [*map(words.significant, units), words.signed(error / last - 1)]
    headers = ["model", "MSE", "stored in", "answer takes", "in granules squared"]
    headers += ["in label variances", f"beside {figure.about['models'][-1]}"]
    title = f"means over {words.counted(len(figure.workloads), 'tenant')}, later part"
    best = [set(), best_index(errors, highest=False)] + [set[int]() for _ in headers[2:]]
    return Table(figure.heading, title, headers, rows, best)


def _label_variance(what: DriveMixes, figure: DriveFigure) -> float:
    """Return the variance of a tenant's labels around their mean, the mean over tenants."""
    labels = [
        what.segments(figure.setting, name).tenants[0].labels(_reading(figure.setting))
        for name in figure.workloads
    ]
    return mean([float(each.var(axis=0).mean()) for each in labels])


def _features(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return the error with some features switched off, per tenant and on average."""
    names = list(figure.workloads)
    each = {
        features: _reports(what, figure, figure.setting, LSTM, features)
        for features in figure.about["features"]
    }
    rows = [
        [features, *(_errors([_mse(one[at]) for one in reports]) for at in range(len(names))),
         _errors(_over(reports, _mse))]
        for features, reports in each.items()
    ]  # fmt: skip
    means = [sum(_over(reports, _mse)) for reports in each.values()]
    for place, row in enumerate(rows):
        others = min((*means[:place], *means[place + 1 :]), default=means[place])
        row.append(words.signed(means[place] / others - 1))
    best: list[set[int]] = [set() for _ in range(len(names) + 1)] + [
        best_index(means, highest=False),
        set(),
    ]
    title = "MSE; intensity, write ratio, request size, unique ratio: 1 is seen"
    headers = ["features", *names, "mean", "beside the best of the others"]
    return Table(figure.heading, title, headers, rows, best)


def _elsewhere(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return how models do on other volumes than their own, beside that volume's own."""
    names = list(figure.workloads)
    reports = _reports(what, figure, figure.setting, LSTM, ALL)
    rows = []
    for trained, judged in figure.pairs:
        own = [one[names.index(judged)] for one in reports]
        found = [
            what.elsewhere(figure.setting, (trained, judged), seed)
            for seed in range(1, figure.seeds + 1)
        ]
        naive = (words.ratio(_naive(own[:1], guess)) for guess in (MEAN, LAST))
        mine = [_mse(one) for one in own]
        rows.append([trained, judged, _errors(found), _errors(mine), *naive])
    headers = ["trained on", "judged on", "MSE", "of its own model", "its mean label", "last label"]
    title = "LSTM, later part of the volume that judges"
    return plain(figure.heading, title, headers, rows, 2)


def _settings(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return how a scheme does in other settings, apart by number of tenants."""
    scheme = figure.schemes[0]
    rows = []
    for group, mixes in figure.groups():

        def outcomes(setting: Setting, mixes: list[Mix] = mixes) -> list[Outcome]:
            found = [what.of(setting, mix, scheme, figure.seeds) for mix in mixes]
            return [one for each in found for one in each]

        base = outcomes(figure.settings[0][1])
        for title, setting in figure.settings:
            cells = _setting_cells(outcomes(setting), base)
            names = tuple(dict.fromkeys(one.workload for mix in mixes for one in mix.members))
            reports = _reports(what, replace(figure, mixes=tuple(mixes)), setting, LSTM, ALL)
            said = [_errors(_over(reports, _mse)), words.ratio(_naive(reports[0], LAST))]
            demands = [words.fixed(one, 1) for one in _demands(what, setting, names)]
            rows.append([title, group, *cells, *said, *demands])
    headers = ["setting", "mixes", "max slowdown", "beside the first", "fairness", "response"]
    headers += ["MSE", "of the last label", "mean MBP", "mean OAP"]
    title = f"{scheme.title}; geometric means of max slowdowns, responses beside the first setting"
    return plain(figure.heading, title, headers, rows, 2)


def _setting_cells(found: Sequence[Outcome], base: Sequence[Outcome]) -> list[str]:
    slowest = [geometric_mean([one.max_slowdown for one in some]) for some in (found, base)]
    beside = [
        own.mean_ns / usual.mean_ns
        for one, other in zip(found, base, strict=True)
        for own, usual in zip(one.tenants, other.tenants, strict=True)
        if usual.requests
    ]
    return [
        words.significant(slowest[0], 4),
        words.signed(slowest[0] / slowest[1] - 1),
        words.significant(sum(one.fairness for one in found) / len(found)),
        words.signed(sum(beside) / len(beside) - 1),
    ]


def _labels(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return mean labels by reading, and how often the first granule is said to gain most."""
    rows = []
    for name in figure.workloads:
        tenant, cells = what.segments(figure.setting, name).tenants[0], []
        for _, setting in figure.settings:
            points = tenant.labels(_reading(setting)) * setting.granules
            mbp, oap = points.mean(axis=0)
            cells += [words.fixed(float(one), 1) for one in (mbp, oap)]
            cells.append(words.percent(float((points[:, 0] < 1.5).mean())))
        rows.append([name, *cells])
    heads = [f"{title}: {part}" for title, _ in figure.settings for part in ("MBP", "OAP", "one")]
    title = "mean labels in granules; one: share of intervals whose MBP is one granule"
    return plain(figure.heading, title, ["tenant", *heads], rows, 1)


def _reading(setting: Setting) -> Reading:
    return Reading(**setting.of(("from_off", "least_gain", "gain_of")))


def _demands(what: DriveMixes, setting: Setting, names: Sequence[str]) -> tuple[float, float]:
    """Return the mean labels of tenants' intervals, in granules."""
    reading = _reading(setting)
    labels = [what.segments(setting, name).tenants[0].labels(reading) for name in names]
    means = [each.mean(axis=0) * setting.granules for each in labels]
    mbp, oap = sum(means) / len(means)
    return float(mbp), float(oap)


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
        case "pairs":
            return _pairs(what, figure)
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
            return summary_beside(what, figure)
        case "bounds":
            return static_bounds(what, figure)
        case "loads":
            return by_load(what, figure)
    return of_tenants_alone(what, figure)


def _slowdown(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    found = _by_mix(what, figure, "max slowdown", lambda one: one.max_slowdown)
    changes = changes_beside(what, figure, max_slowdown)
    return _with(found, [*changes, *quotients(what, figure)])


def _pairs(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return the max slowdowns of many mixes, and how far ours range beside others."""
    found = _by_mix(what, figure, "max slowdown", lambda one: one.max_slowdown)
    titles = {scheme.title: scheme for scheme in figure.schemes}
    rows = []
    for group, mixes in figure.groups():
        for ours in [title for title in OURS if title in titles]:
            for other in [title for title in BESIDE if title in titles]:
                each = _relative(what, figure, mixes, titles[ours], titles[other], max_slowdown)
                ends = (mean(each), statistics.median(each), min(each), max(each))
                less = words.percent(sum(one < 0 for one in each) / len(each))
                rows.append([group, ours, other, *map(words.signed, ends), less])
    headers = ["mixes", "scheme", "beside", "mean", "median", "least", "greatest", "of them less"]
    title = f"changes of the max slowdown over all {words.count(len(figure.mixes))} mixes"
    table = plain(figure.heading, title, headers, rows, 3, "range")
    changes = changes_beside(what, figure, max_slowdown)
    response = changes_beside(what, figure, lambda one: one.slowdown_by_tenant, "response, beside")
    return _with(found, [table, *changes, *response])


def _response(what: DriveMixes, figure: DriveFigure, name: str = "") -> list[Table | Figure]:
    title = "mean response (us)"
    found = _by_mix(what, figure, title, lambda one: one.mean() / 1e3, name=name)
    own = ", ".join(part for part in (name, "beside") if part)
    return _with(found, changes_beside(what, figure, lambda one: one.slowdown_by_tenant, own))


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
        *changes_beside(what, figure, lambda one: [one.fairness], "fairness, beside"),
        *_hits(what, figure, "hits"),
        *changes_beside(what, figure, lambda one: [one.hit_ratio], "hits, beside"),
        *_beside_alone(what, figure),
    ]
    return [*_slowdown(what, figure), *(part for part in rest if isinstance(part, Table))]


def _beside_alone(what: DriveMixes, figure: DriveFigure) -> list[Table]:
    """Return how far tenants' responses are from alone with the whole cache, by scheme."""
    rows = []
    for group, mixes in figure.groups():
        for scheme in figure.schemes:
            found = [one for mix in mixes for one in what.found(figure, mix, scheme)]
            each = [slowdown - 1 for one in found for slowdown in one.slowdowns]
            cells = [_signed(pick, each) for pick in (mean, min, max)]
            rows.append([group, scheme.title, *cells])
    title = "responses of tenants beside alone"
    headers = ["mixes", "scheme", "mean", "at best", "at worst"]
    return [plain(figure.heading, title, headers, rows, 2, "alone")]


def _tail(what: DriveMixes, figure: DriveFigure, title: str, of: Of) -> list[Table | Figure]:
    """Return a tail of responses by mix; only the paper's own is drawn, too."""
    short = title.split(" (", maxsplit=1)[0]
    found = _by_mix(what, figure, title, lambda one: one.mean(of) / 1e3, name=short)
    changes = changes_beside(what, figure, lambda one: _figures(one, of), f"{short}, beside")
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
