"""What a reproduced paper on write amplification shows: tables and charts.

For: `cachewright_lab.report.reproduced`. Must never know: how numbers were measured, HTML.
Units: (F-U)/U and F/U are flash writes beyond, and per, host write; shares are ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from cachewright import amplification, words
from cachewright.answers import Classifier, ThresholdSpread
from cachewright.report import amplified
from cachewright.report.figure import Figure
from cachewright.report.parts import Table, plain
from cachewright.summary import best_index
from cachewright_lab.report import grouped
from cachewright_lab.reproduce.amplified import Amplified, Scheme, SchemesSpec

Of = Callable[[Classifier], float | None]
# By the name of the column: the key under which a spec has the paper's value, and ours.
MEASURES: dict[str, tuple[str, Of]] = {
    "accuracy": ("accuracy", lambda found: found.accuracy),
    "precision": ("precision", lambda found: found.precision),
    "recall": ("recall", lambda found: found.recall),
    "F1": ("f1", lambda found: found.f1),
}
# Of predictions: what always answering the same would score, how many are short.
SHARES: dict[str, Of] = {
    "always the more frequent": lambda found: found.majority,
    "called short": lambda found: found.called_short,
    "were short": lambda found: found.were_short,
}
NUMBERS: tuple[Of, ...] = (*(of for _, of in MEASURES.values()), *SHARES.values())
# The lifetimes up to which pages were short, by the name of their column.
THRESHOLDS: dict[str, Callable[[ThresholdSpread], int | None]] = {
    "least": lambda found: found.min,
    "middle": lambda found: found.median,
    "most": lambda found: found.max,
}
# Shares of pages whose lifetime a row of figure 1 gives.
QUANTILES = (0.25, 0.5, 0.75, 0.9)
# A separation whose settings are not those of its source begins so.
TABLE = "{"
# The stream on which schemes that predict place pages they call short.
SHORT = 0


def shared(what: Amplified) -> list[Table]:
    """Return the tables that belong to all figures: the traces."""
    return [_traces(what)]


def shown(what: Amplified, figure: SchemesSpec) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    found: list[Table | Figure] = []
    for op in figure.op:
        found += [*_tables(what, figure, op), *_charts(what, figure, op)]
    return found


def _traces(what: Amplified) -> Table:
    rows = []
    for workload, drive in product(what.setup.workloads, what.drives()):
        answer = what.answer(workload, drive)
        rounds = f"repeated {words.significant(answer.rounds)} times"
        rows.append(
            [
                workload.name,
                words.size(answer.page_bytes),
                words.size(answer.superblock_bytes),
                words.size(answer.logical_pages * answer.page_bytes),
                rounds if answer.looped else "once",
                words.count(answer.live_pages),
                words.count(answer.working_pages),
                words.count(answer.load_pages),
                words.count(answer.user_pages),
                words.significant(answer.drive_writes),
            ]
        )
    headers = ["trace", "page", "superblock", "drive", "replayed", "most live at once"]
    headers += ["pages ever written", "loaded", "written", "drive writes"]
    return plain("", "Traces", headers, rows, 5, "traces", keys=4)


def _tables(what: Amplified, figure: SchemesSpec, op: str) -> list[Table]:
    match figure.shows:
        case "classifier":
            return [_classifier(what, figure, op)]
        case "accuracy":
            return [_accuracy(what, figure, op)]
        case "metadata":
            return [_metadata(what, figure, op)]
        case "lifetimes":
            return [_lifetimes(what, figure, op)]
        case "ablation":
            return [_extra(what, figure, op), _averages(what, figure, op)]
    return [_extra(what, figure, op), *_beside(what, figure, op)]


def _at(text: str, op: str) -> str:
    return f"{text}, {op} over-provisioning"


def _extra(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    """(F-U)/U per trace and scheme, the lowest mean first; bounds last."""
    bound = {scheme: what.cases(figure, scheme, op)[0].bound for scheme in figure.schemes}
    order = sorted(figure.schemes, key=lambda s: (bound[s], what.mean(figure, s, op)))
    columns = [
        [case.extra_writes for case in each]
        for each in zip(*(what.cases(figure, s, op) for s in order), strict=True)
    ]
    columns.append([what.mean(figure, s, op) for s in order])
    best: list[set[int]] = [set()]
    for column in columns:
        known = [None if bound[s] else v for s, v in zip(order, column, strict=True)]
        best.append(best_index(known, highest=False))
    base = next((s for s in figure.schemes if s.title == figure.base), None)
    rows = []
    for place, scheme in enumerate(order):
        mean = columns[-1][place]
        row = [scheme.title + (" (bound)" if bound[scheme] else "")]
        row += [*(words.fixed(column[place], 3) for column in columns), words.fixed(1 + mean, 3)]
        row.append(_dram(what, figure, scheme, op))
        if base is not None:
            own = what.mean(figure, base, op)
            changes = [words.change(mean, own), words.change(1 + mean, 1 + own)]
            row += [words.NOTHING] * 2 if scheme is base else changes
        rows.append(row)
    headers = ["scheme", *_names(what, figure), "mean", "F/U, mean", "memory per TB"]
    if base is not None:
        headers += [f"(F-U)/U beside {base.title}", f"F/U beside {base.title}"]
    best += [set() for _ in headers[len(best) :]]
    return Table(figure.heading, _at("(F-U)/U", op), headers, rows, best, name=op)


def _names(what: Amplified, figure: SchemesSpec) -> list[str]:
    """Return the workloads' names, those that are repeated marked."""
    workloads = what.setup.workloads
    looped = {w.name: what.answer(w, figure.drive).looped for w in workloads}
    return [f"{name} {amplification.DAGGER}" if flag else name for name, flag in looped.items()]


def _judged(
    what: Amplified, figure: SchemesSpec, op: str
) -> list[tuple[Scheme, list[Classifier | None]]]:
    """Return the schemes that predict, each with its classifiers by workload (None: no case)."""
    found = []
    for scheme in figure.schemes:
        each = [case.classifier for case in what.cases(figure, scheme, op)]
        known = [one if one and one.judged else None for one in each]
        if any(known):
            found.append((scheme, known))
    return found


def _classifier(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    """Table V: a row per scheme and trace, then the average and the paper's."""
    nothing = [words.NOTHING] * len(THRESHOLDS)
    rows = []
    for scheme, each in _judged(what, figure, op):
        for name, one in zip(_names(what, figure), each, strict=True):
            if one is not None:
                numbers = [words.fixed(of(one), 3) for of in NUMBERS]
                rows.append([scheme.title, name, *numbers, *_thresholds(one)])
        rows.append([scheme.title, "average", *_means(each), *nothing])
    if all(isinstance(figure.paper.get(key), float) for key, _ in MEASURES.values()):
        numbers = [f"{figure.paper[key]:.3f}" for key, _ in MEASURES.values()]
        rows.append(["paper", "average", *numbers, *[words.NOTHING] * len(SHARES), *nothing])
    headers = [*_measure_headers("scheme", "trace"), *(f"{key} T" for key in THRESHOLDS)]
    return plain(figure.heading, _at("predictions", op), headers, rows, 2, op)


def _thresholds(classifier: Classifier) -> list[str]:
    """Return the least, middle and most lifetime that was called short, in host page writes."""
    return [words.count(of(classifier.threshold)) for of in THRESHOLDS.values()]


def _averages(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    rows = [[scheme.title, *_means(each)] for scheme, each in _judged(what, figure, op)]
    title = _at("predictions, average over the traces", op)
    headers = _measure_headers("scheme")
    return plain(figure.heading, title, headers, rows, 1, f"{op}, predictions")


def _measure_headers(*names: str) -> list[str]:
    return [*names, *MEASURES, *SHARES]


def _means(each: Sequence[Classifier | None]) -> list[str]:
    known = [one for one in each if one is not None]
    return [words.fixed(sum(of(one) or 0.0 for one in known) / len(known), 3) for of in NUMBERS]


def _accuracy(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    headers = ["scheme", "trace", "after the first part", "after one drive write", "at the end"]
    rows = []
    for scheme in figure.schemes:
        for name, case in zip(_names(what, figure), what.cases(figure, scheme, op), strict=True):
            parts = amplification.accuracy_over_time(case)
            if parts:
                later = [part for part in parts if part.drive_writes >= 1] or parts[-1:]
                chosen = [parts[0], later[0], parts[-1]]
                texts = [words.ratio(part.cumulative_accuracy) for part in chosen]
                rows.append([scheme.title, name, *texts])
    title = _at("accuracy of all predictions so far", op)
    return plain(figure.heading, title, headers, rows, 2, op)


def _metadata(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    misses = [f"misses, {name}" for name in _names(what, figure)]
    headers = ["scheme", "bytes per page", "flash writes for it", *misses]
    rows = []
    for scheme in figure.schemes:
        cases = what.cases(figure, scheme, op)
        written = sum(c.meta_pages for c in cases) / sum(c.flash_pages for c in cases)
        size = words.significant(cases[0].metadata_bytes_per_page)
        shares = [words.percent(amplification.miss_share(case)) for case in cases]
        rows.append([scheme.title, size, words.percent(written), *shares])
    return plain(figure.heading, _at("bytes, and look-ups that miss", op), headers, rows, 1, op)


def _dram(what: Amplified, figure: SchemesSpec, scheme: Scheme, op: str) -> str:
    answer = what.answer(what.setup.workloads[0], figure.drive)
    return amplification.dram(answer, what.cases(figure, scheme, op)[0])


def _lifetimes(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    """Figure 1 as numbers: how long pages live that a scheme places with the short-lived."""
    rows = []
    for name, scheme in product(_names(what, figure), figure.schemes):
        place = _names(what, figure).index(name)
        case = what.cases(figure, scheme, op)[place]
        streams = [one for one in case.streams if one.stream == SHORT]
        bins = [(most, user) for one in streams for most, user, _ in one.lifetimes or () if user]
        total = sum(user for _, user in bins)
        rows.append([name, scheme.title, words.count(total), *_quantiles(bins, total)])
    headers = ["trace", "scheme", "pages of the host"]
    headers += [f"{share:.0%} live up to" for share in QUANTILES]
    title = _at("lifetimes of pages placed as short-lived, in page writes of the host", op)
    return plain(figure.heading, title, headers, rows, 2, op)


def _quantiles(bins: Sequence[tuple[int | None, int]], total: int) -> list[str]:
    """Return the bounds of the bins in which quantiles lie; nothing for the end of the trace."""
    found = []
    for share in QUANTILES:
        below = 0
        for most, count in sorted(bins, key=lambda one: (one[0] is None, one[0] or 0)):
            below += count
            if below >= share * total:
                found.append("beyond the end" if most is None else words.count(most))
                break
        else:
            found.append(words.NOTHING)
    return found


def _beside(what: Amplified, figure: SchemesSpec, op: str) -> list[Table]:
    """Return how far the learned scheme is below none and each rule, by (F-U)/U and F/U."""
    if figure.base is None or figure.learned is None:
        return []
    learned = next(scheme for scheme in figure.schemes if scheme.title == figure.learned)
    own = what.mean(figure, learned, op)
    rows, rules = [], []
    for scheme in figure.schemes:
        if scheme.title == figure.base or not _learns(what, figure, scheme, op):
            other = what.mean(figure, scheme, op)
            changes = [words.change(own, other), words.change(1 + own, 1 + other)]
            rows.append([learned.title, scheme.title, *changes])
            if scheme.title != figure.base and not scheme.separation.startswith(TABLE):
                rules.append(other)
    if rules:
        changes = [words.change(own, min(rules)), words.change(1 + own, 1 + min(rules))]
        rows.append([learned.title, "the best rule as published", *changes])
    headers = ["scheme", "beside", "(F-U)/U", "F/U"]
    title = _at(f"{learned.title} beside {figure.base} and the rules, means of the traces", op)
    return [plain(figure.heading, title, headers, rows, 2, f"{op}, beside")]


def _learns(what: Amplified, figure: SchemesSpec, scheme: Scheme, op: str) -> bool:
    return any(case.learning for case in what.cases(figure, scheme, op))


def notes(what: Amplified) -> list[str]:
    """Return what to know before the numbers."""
    if not any(answer.looped for answer in what.answers.values()):
        return []
    writes = what.drive.get("drive_writes")
    reached = f" to reach {words.count(writes)} drive writes" if writes is not None else ""
    return [
        f"{amplification.DAGGER}: the trace is repeated{reached}, which flatters schemes that "
        "learn or know the future."
    ]


def _charts(what: Amplified, figure: SchemesSpec, op: str) -> list[Figure]:
    name = f"{figure.name}-{op.removesuffix('%')}"
    title = f"{op} over-provisioning"
    if figure.shows in ("extra-writes", "ablation"):
        return [_bars(what, figure, op, name, title)]
    if figure.shows != "accuracy":
        return []
    lines = [
        (_line_title(figure, scheme, workload.name), case)
        for scheme in figure.schemes
        for workload, case in zip(what.setup.workloads, what.cases(figure, scheme, op), strict=True)
        if amplification.predicting([case])
    ]
    return [amplified.accuracy(name, title, lines)]


def _line_title(figure: SchemesSpec, scheme: Scheme, workload: str) -> str:
    return workload if len(figure.schemes) == 1 else f"{scheme.title}, {workload}"


def _bars(what: Amplified, figure: SchemesSpec, op: str, name: str, title: str) -> Figure:
    rows = [
        {
            "scheme": scheme.title,
            "trace": workload.name,
            "extra": case.extra_writes,
        }
        for scheme in figure.schemes
        for workload, case in zip(what.setup.workloads, what.cases(figure, scheme, op), strict=True)
    ]
    axis = "extra writes per host write, (F-U)/U"
    chart = grouped.bars(rows, "trace", "scheme", axis, value="extra")
    caption = "Pages programmed beyond those of the host, per page of the host; lower is better."
    return Figure(f"extra-writes-{name}", f"{figure.title}, {title}", caption, chart)
