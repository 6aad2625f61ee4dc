"""Papers on write amplification: schemes on traces and drives, as tables and charts.

Each case is run once for all figures that show it. `[drive]` of `setup.toml` has the options of
`wa`; a trace may name the nominal size of its volume. Units: as `Amplification`; (F-U)/U and F/U
are flash writes beyond, and per, host write; shares are ratios.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import geometric_mean, mean
from typing import TYPE_CHECKING, Any

from cachewright import _native, api, words
from cachewright._native import SpecError
from cachewright.answers import AmplificationAnswer, Classifier, ThresholdSpread
from cachewright.answers import AmplificationCase as Case
from cachewright.report import amplified
from cachewright.report.figure import Figure
from cachewright.tables import amplification, best_index
from cachewright.tables.measures import GIVEN
from cachewright_lab.report import grouped
from cachewright_lab.report.tables import Table, plain
from cachewright_lab.reproduce import specs
from cachewright_lab.reproduce.specs import SETUP, FigureSpec, Setup, Workload

if TYPE_CHECKING:
    from cachewright.results import Amplification
    from cachewright.types import PathLike, Progress

RECLAIM = "cost-benefit"
SHOWN = ("extra-writes", "classifier", "accuracy", "ablation", "metadata", "lifetimes", "volumes")
# Keys of a trace that say how large its drive is, unless a figure does.
OWN = ("capacity",)
# Options of `wa` by name, the over-provisioning among them.
Drive = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Scheme:
    """One row of a figure: a separation and the reclaim policy it is run with."""

    title: str
    separation: str
    reclaim: str


@dataclass(frozen=True)
class SchemesSpec(FigureSpec):
    """One figure: what it shows of which schemes.

    `pairs` are titles of schemes, the one and what it is beside; `own` are traces of the figure
    alone, in place of those of all figures; `about` is the whole table `[figure]`.
    """

    base: str | None
    learned: str | None
    op: tuple[str, ...]
    drive: tuple[tuple[str, Any], ...]
    schemes: tuple[Scheme, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    own: tuple[Workload, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Amplified:
    """The figures of a paper with the answers and cases they show."""

    setup: Setup
    drive: Mapping[str, Any]
    figures: Sequence[SchemesSpec]
    answers: dict[tuple[str, Drive], AmplificationAnswer] = field(default_factory=dict)
    found: dict[tuple[str, Drive, str, str], Case] = field(default_factory=dict)

    def answer(self, workload: Workload, drive: Drive) -> AmplificationAnswer:
        """Return what is known of a workload on a drive, whatever its over-provisioning."""
        return self.answers[workload.name, drive]

    def drives(self) -> list[Drive]:
        """Return the drives of the figures, over-provisioning aside."""
        return list(dict.fromkeys(figure.drive for figure in self.figures))

    def traces(self, figure: SchemesSpec) -> tuple[Workload, ...]:
        """Return the traces of a figure: its own, or those of all figures."""
        return figure.own or self.setup.workloads

    def replayed(self) -> list[tuple[Workload, Drive]]:
        """Return each trace with each drive that it is written to, over-provisioning aside."""
        return [
            (workload, drive)
            for figures in _by_traces(self.figures)
            for workload in self.traces(figures[0])
            for drive in dict.fromkeys(figure.drive for figure in figures)
        ]

    def cases(self, figure: SchemesSpec, scheme: Scheme, op: str) -> list[Case]:
        """Return the cases of a figure's scheme, one per workload."""
        drive = _drive(figure, op)
        names = [workload.name for workload in self.traces(figure)]
        return [self.found[name, drive, scheme.separation, scheme.reclaim] for name in names]

    def count(self) -> int:
        """Return how many cases were run."""
        return len(self.found)

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run every case once; with `out` the results are kept in folders below it."""
        for figures in _by_traces(self.figures):
            for workload in self.traces(figures[0]):
                for (drive, reclaim), separations in _grouped(figures).items():
                    sizes = [str(value) for _, value in drive]
                    name = "-".join([workload.name, *sizes, reclaim])
                    name = name.replace("%", "").replace(" ", "-")
                    folder = None if out is None else Path(out) / name
                    own = {key: workload.table[key] for key in OWN if key in workload.table}
                    options = sized({**self.drive, **own, **dict(drive)})
                    answer = _measure(
                        workload, options, reclaim, separations, folder, threads, progress
                    ).answer
                    self.answers[workload.name, drive[1:]] = answer
                    for separation, case in zip(separations, answer.cases, strict=True):
                        self.found[workload.name, drive, separation, reclaim] = case

    def mean(self, figure: SchemesSpec, scheme: Scheme, op: str) -> float:
        """Return the mean over the workloads of a scheme's extra writes, (F-U)/U."""
        numbers = [case.extra_writes for case in self.cases(figure, scheme, op)]
        return sum(numbers) / len(numbers)


def load(setup: Setup) -> Amplified:
    """Return the figures of a paper, nothing run yet. Errors: `SpecError`."""
    drive = dict(specs.key(setup.folder / SETUP, setup.document, "drive"))
    if setup.quick:
        drive |= setup.document.get("quick_drive", {})
    found = [_figure(*one, drive, setup) for one in specs.figures(setup.folder)]
    # On given volumes the traces of a figure's own say nothing new.
    wanted = [one for one in found if not (one.shows == VOLUMES and setup.kind == GIVEN)]
    return Amplified(setup, drive, wanted)


def sized(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a drive with a share to keep free as so many superblocks.

    Errors: `SpecError` for a share of a drive whose size follows from its trace.
    """
    reserve = options.get("reserve")
    if not isinstance(reserve, str):
        return dict(options)
    try:
        capacity, superblock = (
            _native.parse_bytes(str(options[key])) for key in ("capacity", "superblock")
        )
    except SpecError as error:
        raise SpecError(f"`reserve`: found `{reserve}` of a drive of no size: {error}") from None
    op, share = (float(text.removesuffix("%")) / 100 for text in (options["op"], reserve))
    superblocks = math.floor(capacity * (1 + op)) // superblock
    return {**options, "reserve": math.ceil(share * superblocks)}


def _by_traces(figures: Sequence[SchemesSpec]) -> list[list[SchemesSpec]]:
    """Return the figures in groups of the same traces."""
    found: dict[tuple[str, ...], list[SchemesSpec]] = {}
    for figure in figures:
        found.setdefault(tuple(one.name for one in figure.own), []).append(figure)
    return list(found.values())


def _drive(figure: SchemesSpec, op: str) -> Drive:
    return (("op", op), *figure.drive)


def _grouped(figures: Sequence[SchemesSpec]) -> dict[tuple[Drive, str], list[str]]:
    """Return the separations to run for each drive and reclaim policy."""
    found: dict[tuple[Drive, str], list[str]] = {}
    for figure in figures:
        for op in figure.op:
            for scheme in figure.schemes:
                separations = found.setdefault((_drive(figure, op), scheme.reclaim), [])
                if scheme.separation not in separations:
                    separations.append(scheme.separation)
    return found


def _measure(
    workload: Workload,
    drive: dict[str, Any],
    reclaim: str,
    separations: list[str],
    folder: Path | None,
    threads: int,
    progress: Progress | None,
) -> Amplification:
    tenant = {"name": "trace", "trace": os.fspath(workload.path.resolve())}
    stack = {"name": workload.name, "cache": {"capacity": api.ANY_CAPACITY}, "tenant": [tenant]}
    writes, op = drive.pop("drive_writes", None), drive.pop("op")
    return api.wa(
        stack,
        separations,
        op=[op],
        reclaims=[reclaim],
        **drive,
        drive_writes=writes if workload.loop else None,
        loop=workload.loop,
        load=[] if workload.load is None else [workload.load],
        out=folder,
        threads=threads,
        progress=progress,
    )


def _figure(
    path: Path, document: dict[str, Any], drive: Mapping[str, Any], setup: Setup
) -> SchemesSpec:
    quick = setup.quick
    fields = specs.head(path, document, SHOWN)
    about = document["figure"]
    schemes = tuple(
        Scheme(
            str(specs.key(path, one, "title")),
            str(specs.key(path, one, "separation")),
            str(one.get("reclaim", RECLAIM)),
        )
        for one in specs.key(path, document, "scheme")
    )
    titles = [scheme.title for scheme in schemes]
    for key in ("base", "learned"):
        if about.get(key, titles[0]) not in titles:
            expected = ", ".join(titles)
            raise SpecError(f"{path}: `{key}`: found `{about[key]}`, expected one of {expected}")
    pairs = tuple((str(one), str(other)) for one, other in about.get("pairs", ()))
    for title in (title for pair in pairs for title in pair):
        specs.among(path, "pairs", title, titles)
    return SchemesSpec(
        **fields,
        base=about.get("base"),
        learned=about.get("learned"),
        op=tuple(drive["op"] if quick else about.get("op", drive["op"])),
        drive=tuple(sorted(document.get("quick_drive" if quick else "drive", {}).items())),
        schemes=schemes,
        pairs=pairs,
        own=() if quick else _own(path, document),
        about=about,
    )


def _own(path: Path, document: Mapping[str, Any]) -> tuple[Workload, ...]:
    """Return the traces that a figure names itself, relative to its file."""
    return tuple(
        Workload(
            str(specs.key(path, one, "name")),
            path.parent / str(specs.key(path, one, "path")),
            None,
            one,
        )
        for one in document.get("trace", ())
    )


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
# The row of the mean over the traces, and those of the traces that are lowest and highest.
AVERAGE, LEAST, MOST = "average", "least", "most"
# What a figure of volumes that stand for the paper's shows, and what its first table says.
VOLUMES = "volumes"
VOLUMES_CAPTION = "shares of the drive ever written and of rewrites that are short"


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
    for workload, drive in what.replayed():
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
            return [_classifier(what, figure, op), *_lost(what, figure, op)]
        case "accuracy":
            return [_accuracy(what, figure, op)]
        case "metadata":
            return [_metadata(what, figure, op), *_overheads(what, figure, op)]
        case "lifetimes":
            return [_lifetimes(what, figure, op), *_lifetimes_beside(what, figure, op)]
        case "ablation":
            tables = [_extra(what, figure, op), _averages(what, figure, op)]
            return [*tables, *_pairs(what, figure, op)]
        case "volumes":
            tables = [_published(what, figure, op), _extra(what, figure, op)]
            return [*tables, *_beside(what, figure, op), _averages(what, figure, op)]
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
    workloads = what.traces(figure)
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
        for name, of in ((AVERAGE, mean), (LEAST, min), (MOST, max)):
            rows.append([scheme.title, name, *_over(each, of), *nothing])
    if all(isinstance(figure.paper.get(key), float) for key, _ in MEASURES.values()):
        numbers = [f"{figure.paper[key]:.3f}" for key, _ in MEASURES.values()]
        rows.append(["paper", AVERAGE, *numbers, *[words.NOTHING] * len(SHARES), *nothing])
    headers = [*_measure_headers("scheme", "trace"), *(f"{key} T" for key in THRESHOLDS)]
    return plain(figure.heading, _at("predictions", op), headers, rows, 2, op)


def _thresholds(classifier: Classifier) -> list[str]:
    """Return the least, middle and most lifetime that was called short, in host page writes."""
    return [words.count(of(classifier.threshold)) for of in THRESHOLDS.values()]


def _averages(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    rows = [[scheme.title, *_over(each, mean)] for scheme, each in _judged(what, figure, op)]
    title = _at("predictions, average over the traces", op)
    headers = _measure_headers("scheme")
    return plain(figure.heading, title, headers, rows, 1, f"{op}, predictions")


def _lost(what: Amplified, figure: SchemesSpec, op: str) -> list[Table]:
    """Return how far accuracies are below that of the base; nothing where none is named."""
    judged = {scheme.title: each for scheme, each in _judged(what, figure, op)}
    base = judged.get(figure.base or "")
    if base is None:
        return []
    rows = []
    for title, each in judged.items():
        lost = lost_accuracy(each, base)
        if title != figure.base and lost:
            rows.append([title, _points(mean(lost)), _points(max(lost))])
    headers = ["scheme", f"below {figure.base}, average", "most on a trace"]
    caption = _at(f"accuracy beside {figure.base}", op)
    return [plain(figure.heading, caption, headers, rows, 1, f"{op}, beside")]


def lost_accuracy(
    own: Sequence[Classifier | None], base: Sequence[Classifier | None]
) -> list[float]:
    """Return by trace how far the accuracy of predictions is below that of others, as a share."""
    return [
        (other.accuracy or 0.0) - (one.accuracy or 0.0)
        for one, other in zip(own, base, strict=True)
        if one is not None and other is not None
    ]


def _points(share: float) -> str:
    return words.Number(f"{100 * share:+.1f} points", share)


def _pairs(what: Amplified, figure: SchemesSpec, op: str) -> list[Table]:
    """Return how far schemes are above or below others, by the means of their traces."""
    if not figure.pairs:
        return []
    by_title = {scheme.title: scheme for scheme in figure.schemes}
    rows = []
    for one, other in figure.pairs:
        own, base = (what.mean(figure, by_title[title], op) for title in (one, other))
        rows.append([one, other, words.change(own, base), words.change(1 + own, 1 + base)])
    headers = ["scheme", "beside", "(F-U)/U", "F/U"]
    title = _at("one scheme beside another, means of the traces", op)
    return [plain(figure.heading, title, headers, rows, 2, f"{op}, pairs")]


def _measure_headers(*names: str) -> list[str]:
    return [*names, *MEASURES, *SHARES]


def _over(each: Sequence[Classifier | None], made: Callable[[Sequence[float]], float]) -> list[str]:
    """Return each number of predictions, made from those of the traces."""
    known = [one for one in each if one is not None]
    return [words.fixed(made([of(one) or 0.0 for one in known]), 3) for of in NUMBERS]


def _accuracy(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    headers = ["scheme", "trace", "after the first part", "after one drive write", "at the end"]
    rows = []
    for scheme in figure.schemes:
        found = []
        for name, case in zip(_names(what, figure), what.cases(figure, scheme, op), strict=True):
            parts = amplification.accuracy_over_time(case)
            if parts:
                later = [part for part in parts if part.drive_writes >= 1] or parts[-1:]
                chosen = [parts[0], later[0], parts[-1]]
                found.append([part.cumulative_accuracy for part in chosen])
                rows.append([scheme.title, name, *_accuracies(found[-1])])
        if found:
            columns = [
                [one for one in each if one is not None] for each in zip(*found, strict=True)
            ]
            means = [mean(known) if known else None for known in columns]
            rows.append([scheme.title, AVERAGE, *_accuracies(means)])
    headers.append("end beside the first part")
    title = _at("accuracy of all predictions so far", op)
    return plain(figure.heading, title, headers, rows, 2, op)


def _accuracies(found: Sequence[float | None]) -> list[str]:
    """Return accuracies in the order of time, and what was gained from the first to the last."""
    first, last = found[0], found[-1]
    gained = words.NOTHING if first is None or last is None else _points(last - first)
    return [*(words.ratio(one) for one in found), gained]


def _metadata(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    misses = [f"misses, {name}" for name in _names(what, figure)]
    headers = ["scheme", "bytes per page", "of them in memory", "flash writes for it", *misses]
    headers += [f"misses, {AVERAGE}", f"misses, {LEAST}", f"misses, {MOST}"]
    rows = []
    for scheme in figure.schemes:
        cases = what.cases(figure, scheme, op)
        written = sum(c.meta_pages for c in cases) / sum(c.flash_pages for c in cases)
        sizes = (cases[0].metadata_bytes_per_page, cases[0].memory_bytes_per_page)
        shares = [amplification.miss_share(case) for case in cases]
        known = [one for one in shares if one is not None]
        over = [made(known) for made in (mean, min, max)] if known else [None] * 3
        row = [scheme.title, *(words.significant(one) for one in sizes), words.percent(written)]
        rows.append([*row, *(words.percent(one) for one in (*shares, *over))])
    return plain(figure.heading, _at("bytes, and look-ups that miss", op), headers, rows, 1, op)


def _overheads(what: Amplified, figure: SchemesSpec, op: str) -> list[Table]:
    """Return what a scheme takes on the paper's drive, by arithmetic; nothing where none is named.

    `[figure.overheads]` has the drive, its pages, and the sizes that the paper gives.
    """
    about = figure.about.get("overheads")
    if about is None:
        return []
    title = str(about["scheme"])
    scheme = next(one for one in figure.schemes if one.title == title)
    drive, page, tebibyte = (_native.parse_bytes(about[key]) for key in ("drive", "page", "per"))
    held = what.cases(figure, scheme, op)[0].memory_bytes_per_page
    pages = drive / page
    steps = pages * about["window"] * about["series"]
    rows = [
        [title, f"metadata in memory per {about['per']}", words.size(held * tebibyte / page)],
        [title, "table of moves", words.size(math.prod(about["states"]) * about["actions"])],
        [title, "last writes, in the host", words.size(pages * about["time"])],
        [title, "training set of a window, at most", words.size(steps * about["step"])],
        [title, "pages predicted per second", words.size(page * 1e6 / about["prediction_us"])],
    ]
    caption = f"bytes on a drive of {about['drive']} in pages of {about['page']}, by arithmetic"
    return [plain(figure.heading, caption, ["scheme", "what", "bytes"], rows, 2, "overheads")]


def _published(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    """Volumes that stand for the paper's: what is published of each, and what they have.

    Short are rewrites within the threshold that the figure's learned scheme found.
    """
    learned = next(one for one in figure.schemes if one.title == figure.learned)
    rows = []
    for workload, case in zip(what.traces(figure), what.cases(figure, learned, op), strict=True):
        answer = what.answer(workload, figure.drive)
        told = workload.table
        written = answer.working_pages / answer.logical_pages
        short = case.classifier.were_short if case.classifier else None
        found = [told.get("written"), written, told.get("short"), short]
        numbers = [words.percent(one) for one in found]
        rows.append([workload.name, *numbers, words.significant(answer.drive_writes)])
    headers = ["volume", "written, published", "written, here", "short, published", "short, here"]
    headers.append("drive writes")
    return plain(figure.heading, _at(VOLUMES_CAPTION, op), headers, rows, 1, f"{op}, volumes")


def _dram(what: Amplified, figure: SchemesSpec, scheme: Scheme, op: str) -> str:
    answer = what.answer(what.traces(figure)[0], figure.drive)
    return amplification.dram(answer, what.cases(figure, scheme, op)[0])


def _lifetimes(what: Amplified, figure: SchemesSpec, op: str) -> Table:
    """Figure 1 as numbers: how long pages live that a scheme places with the short-lived."""
    rows = []
    for name, scheme in product(_names(what, figure), figure.schemes):
        bins = _bins(what, figure, (name, scheme), op)
        total = sum(user for _, user in bins)
        rows.append([name, scheme.title, words.count(total), *_quantiles(bins, total)])
    headers = ["trace", "scheme", "pages of the host"]
    headers += [f"{share:.0%} live up to" for share in QUANTILES]
    title = _at("lifetimes of pages placed as short-lived, in page writes of the host", op)
    return plain(figure.heading, title, headers, rows, 2, op)


def _bins(
    what: Amplified, figure: SchemesSpec, case: tuple[str, Scheme], op: str
) -> list[tuple[int | None, int]]:
    """Return how many pages called short live up to which bounds, of one trace and scheme."""
    name, scheme = case
    found = what.cases(figure, scheme, op)[_names(what, figure).index(name)]
    streams = [one for one in found.streams if one.stream == SHORT]
    return [(most, user) for one in streams for most, user, _ in one.lifetimes or () if user]


def _lifetimes_beside(what: Amplified, figure: SchemesSpec, op: str) -> list[Table]:
    """How long nine of ten pages called short live at most, by the learned scheme and a rule.

    Nothing where the figure names neither; traces of which a scheme calls no page short are left
    out of the geometric mean.
    """
    if figure.base is None or figure.learned is None:
        return []
    titles = {scheme.title: scheme for scheme in figure.schemes}
    rows, quotients = [], []
    for name in _names(what, figure):
        ends = []
        for title in (figure.learned, figure.base):
            bins = _bins(what, figure, (name, titles[title]), op)
            ends.append(words.value_of(_quantiles(bins, sum(user for _, user in bins))[-1]))
        own, other = ends
        if own and other:
            quotients.append(own / other)
            rows.append([name, words.times(own, other)])
    if quotients:
        rows.append(["geometric mean", words.times(geometric_mean(quotients), 1.0)])
    headers = ["trace", f"{QUANTILES[-1]:.0%} live up to, {figure.learned} by {figure.base}"]
    title = _at("lifetimes of pages placed as short-lived, beside a rule", op)
    return [plain(figure.heading, title, headers, rows, 1, f"{op}, beside")]


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
        for workload, case in zip(what.traces(figure), what.cases(figure, scheme, op), strict=True)
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
        for workload, case in zip(what.traces(figure), what.cases(figure, scheme, op), strict=True)
    ]
    axis = "extra writes per host write, (F-U)/U"
    chart = grouped.bars(rows, "trace", "scheme", axis, value="extra")
    caption = "Pages programmed beyond those of the host, per page of the host; lower is better."
    return Figure(f"extra-writes-{name}", f"{figure.title}, {title}", caption, chart)
