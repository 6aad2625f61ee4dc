"""What a reproduced paper on data caches shows of tenants alone and of models.

For: `cachewright.report.reproduced_drive`. Must never know: how numbers were measured, HTML. Units:
MSE is of labels as shares of the cache, judged on the part that did not train; a gain in hits is in
points of the hit ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from cachewright import _native, words
from cachewright.report.drive_charts import by_size, scatter
from cachewright.report.figure import Figure
from cachewright.report.parts import Table, plain
from cachewright.reproduce.drive_mixes import DriveMixes, Outcome
from cachewright.reproduce.drive_specs import DriveFigure, Mix, Setting
from cachewright.summary import best_index
from cachewright.train.demand import Reading
from cachewright.train.reports import Errors, Naive, TenantReport

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


def shown(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
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
        [title, _signed(rank_correlation([of(gain) for gain in gains], falls))]
        for _, title, _, of in RANKS
    ]
    title = "rank correlation with the fall of the response time"
    return plain(figure.heading, title, ["", "coefficient"], rows, 1, "ranks")


def _signed(number: float, digits: int = 2) -> str:
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
            _signed(100 * one.hits),
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
    lines = what.alone[figure.name].lines
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
    headers = ["model", "MSE", "stored in", "answer takes"]
    title = f"means over {words.counted(len(figure.workloads), 'tenant')}, later part"
    best = [set(), best_index(errors, highest=False), set(), set()]
    return Table(figure.heading, title, headers, rows, best)


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
    best: list[set[int]] = [set() for _ in range(len(names) + 1)] + [
        best_index(means, highest=False)
    ]
    title = "MSE; intensity, write ratio, request size, unique ratio: 1 is seen"
    return Table(figure.heading, title, ["features", *names, "mean"], rows, best)


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
