"""Papers on telling kinds of workloads apart: which models are trained, each once for all figures.

A scenario is some kinds; a model is of a characterizer, a scenario and settings of training.
Accuracy is of windows that never trained, the mean over kinds of each kind's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import words
from cachewright._native import SpecError
from cachewright.report.figure import Figure
from cachewright.traces import Trace
from cachewright.train import KindsTraining, kinds
from cachewright.train.kinds import RECURRENT, Volume
from cachewright.train.reports import Confusion, JudgedVolume, KindsReport
from cachewright.train.store import KindsTrainings
from cachewright_lab.report import grouped
from cachewright_lab.report.tables import Table, plain
from cachewright_lab.reproduce import specs
from cachewright_lab.reproduce.jobs import Job, each
from cachewright_lab.reproduce.specs import FigureSpec, Setup, Workload

if TYPE_CHECKING:
    from cachewright.types import PathLike, Progress

SHOWN = ("accuracy", "grid", "added", "elsewhere", "learning", "seeds")
SYNTH = ".toml"
NS_PER_S = 1e9


@dataclass(frozen=True)
class Scenario:
    """Kinds to be told apart; `also` names volumes that train, too, where else they only judge."""

    title: str
    kinds: tuple[str, ...]
    also: tuple[str, ...] = ()

    def taught_by(self, workload: Workload) -> bool:
        """Return whether a volume trains."""
        return not workload.table.get("judges") or workload.name in self.also


@dataclass(frozen=True)
class Variant:
    """A change to how a model is trained, with its title."""

    title: str
    how: KindsTraining


@dataclass(frozen=True)
class KindsFigure(FigureSpec):
    """A figure with its own table of the spec, and the scenarios that it shows."""

    about: Mapping[str, Any]
    variants: tuple[Variant, ...]
    scenarios: tuple[Scenario, ...]

    @property
    def methods(self) -> list[str]:
        """The characterizers compared, the first the paper's own."""
        return [str(name) for name in self.about.get("methods", [])]


@dataclass(frozen=True)
class Asked:
    """One model."""

    scenario: Scenario
    how: KindsTraining


@dataclass
class WorkloadKinds:
    """The figures of a paper with the reports of the models they need."""

    setup: Setup
    scenarios: Sequence[Scenario]
    figures: Sequence[KindsFigure]
    base: KindsTraining
    found: dict[Asked, KindsTrainings] = field(default_factory=dict)
    seen: dict[tuple[str, str, int], list[Volume]] = field(default_factory=dict)

    def count(self) -> int:
        """Return how many models were trained."""
        return len(self.found)

    def report(self, scenario: Scenario, how: KindsTraining) -> KindsReport:
        """Return what a model does."""
        return self.found[Asked(scenario, how)].report

    def method(self, by: str) -> KindsTraining:
        """Return how a method's model learns."""
        return replace(self.base, by=by)

    def grid(self, figure: KindsFigure) -> list[list[KindsTraining]]:
        """Return the trainings of a grid: a row per number of units, a column per window."""
        quick = "quick_" if self.setup.quick else ""
        base = self.method(str(figure.about["method"]))
        most = min(int(figure.about.get("most", base.most)), base.most)
        return [
            [
                replace(base, units=int(units), window=int(window), most=most)
                for window in figure.about[f"{quick}windows"]
            ]
            for units in figure.about[f"{quick}units"]
        ]

    def seeds(self, figure: KindsFigure) -> list[KindsTraining]:
        """Return how the first method's model learns from each seed of a figure."""
        base = self.method(figure.methods[0])
        return [replace(base, seed=base.seed + at) for at in range(int(figure.about["seeds"]))]

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Train every model of the figures once; with `out` they are kept below it."""
        asked = list(dict.fromkeys(one for figure in self.figures for one in self._of(figure)))
        keys = list(
            dict.fromkeys(
                (workload.name, one.how.by, one.how.window)
                for one in asked
                for workload in self.setup.workloads
                if _of_scenario(workload, one.scenario)
            )
        )
        reading: list[Job[list[Volume]]] = [partial(self._read, key) for key in keys]
        read = each("reading the traces", reading, threads, progress)
        self.seen = dict(zip(keys, read, strict=True))
        jobs: list[Job[KindsTrainings]] = [partial(self._train, one) for one in asked]
        trained = each("training models of kinds", jobs, threads, progress)
        self.found = dict(zip(asked, trained, strict=True))
        if out is not None:
            for number, (one, trainings) in enumerate(self.found.items()):
                trainings.write(Path(out) / "models" / f"{number}-{one.how.by}")

    def _of(self, figure: KindsFigure) -> Iterator[Asked]:
        """Give the models of a figure."""
        if figure.shows == "grid":
            for row in self.grid(figure):
                yield from (Asked(figure.scenarios[0], how) for how in row)
            return
        if figure.shows == "seeds":
            for scenario in figure.scenarios:
                yield from (Asked(scenario, how) for how in self.seeds(figure))
            return
        last = figure.shows in ("elsewhere", "learning")
        scenarios = figure.scenarios[-1:] if last else figure.scenarios
        for scenario in scenarios:
            yield from (Asked(scenario, self.method(by)) for by in figure.methods)
        for variant in figure.variants:
            yield Asked(figure.scenarios[-1], variant.how)

    def _read(self, key: tuple[str, str, int], progress: Progress) -> list[Volume]:
        name, by, window = key
        workload = next(one for one in self.setup.workloads if one.name == name)
        synth = "synth" if workload.path.suffix == SYNTH else None
        kind = _kinds_of(workload)[0]
        trace = Trace(workload.path, format=synth)
        found = kinds.seen({kind: trace}, by, window, [kind], progress)
        most = int(workload.table.get("windows", 0))
        return [replace(thinned(one, most), name=_volume_name(name, one.name)) for one in found]

    def _train(self, asked: Asked, progress: Progress) -> KindsTrainings:
        scenario, how = asked.scenario, asked.how
        learns, judges = [], []
        # Only the last scenario's answers for volumes that train nothing are shown.
        last = scenario.kinds == self.scenarios[-1].kinds
        for workload in self.setup.workloads:
            if not _of_scenario(workload, scenario):
                continue
            for volume in self.seen[workload.name, how.by, how.window]:
                if scenario.taught_by(workload):
                    learns.append(
                        replace(volume, kind=scenario.kinds.index(workload.table["kind"]))
                    )
                elif last:
                    judges += parts(workload, volume, scenario)
        return kinds.train_on(learns, judges, scenario.kinds, how, progress)


def thinned(volume: Volume, most: int) -> Volume:
    """Return a volume with `most` of its windows, spread evenly; 0 for all."""
    import numpy as np

    count = len(volume.windows)
    if not 0 < most < count:
        return volume
    chosen = np.arange(most) * count // most
    return replace(volume, windows=volume.windows[chosen], ends_ns=volume.ends_ns[chosen])


def _volume_name(workload: str, seen: str) -> str:
    """Return a volume's name: the workload's, and which volume where its trace has several."""
    _, several, volume = seen.partition("/")
    return f"{workload}/{volume}" if several else workload


def _kinds_of(workload: Workload) -> list[str]:
    phases = workload.table.get("phases_s")
    return [str(one["kind"]) for one in phases] if phases else [str(workload.table["kind"])]


def _of_scenario(workload: Workload, scenario: Scenario) -> bool:
    return all(kind in scenario.kinds for kind in _kinds_of(workload))


def parts(workload: Workload, volume: Volume, scenario: Scenario) -> list[Volume]:
    """Return a volume that only judges: one part per phase, without windows across its borders.

    Parts of one kind are told apart by number.
    """
    import numpy as np

    phases = workload.table.get("phases_s")
    if not phases:
        return [replace(volume, kind=scenario.kinds.index(workload.table["kind"]))]
    begins = [float(one["from"]) * NS_PER_S for one in phases]
    # A window belongs to a phase if the one before it ended there, too.
    starts = np.concatenate([[0], volume.ends_ns[:-1]]).astype(np.float64)
    ends = volume.ends_ns.astype(np.float64)
    found = []
    seen: list[str] = []
    for one, begin, end in zip(phases, begins, [*begins[1:], np.inf], strict=True):
        own = (starts >= begin) & (ends < end)
        kind = str(one["kind"])
        before = seen.count(kind)
        seen.append(kind)
        name = f"{volume.name}, {kind}" + (f" {before + 1}" if before else "")
        place = scenario.kinds.index(kind)
        found.append(Volume(place, name, volume.windows[own], volume.ends_ns[own]))
    return found


def load(setup: Setup) -> WorkloadKinds:
    """Return the figures of a paper. Errors: `SpecError` for a spec that is not complete."""
    path = setup.folder / specs.SETUP
    there = {kind for workload in setup.workloads for kind in _kinds_of(workload)}
    scenarios: list[Scenario] = []
    for one in specs.key(path, setup.document, "scenario"):
        own = tuple(kind for kind in specs.key(path, one, "kinds") if kind in there)
        # Fewer kinds than the scenario has: traces of the repository are fewer.
        if len(own) > 1 and own not in [scenario.kinds for scenario in scenarios]:
            scenarios.append(Scenario(str(one["title"]), own))
    if not scenarios:
        found = ", ".join(sorted(there))
        where = setup.traces or path
        raise SpecError(f"{where}: found traces of {found}, expected two kinds or more")
    table = specs.key(path, setup.document, "training")
    if setup.quick:
        table = {**table, **setup.document.get("quick_training", {})}
    base = KindsTraining(**table)
    figures = [
        _figure(one, document, base, scenarios, setup)
        for one, document in specs.figures(setup.folder)
    ]
    return WorkloadKinds(setup, scenarios, figures, base)


def _figure(
    path: Path,
    document: dict[str, Any],
    base: KindsTraining,
    scenarios: Sequence[Scenario],
    setup: Setup,
) -> KindsFigure:
    head = specs.head(path, document, SHOWN)
    also = tuple(str(name) for name in document["figure"].get("also", ()))
    if setup.kind == "trace":
        for name in also:
            specs.among(path, "also", name, {one.name for one in setup.workloads})
    own = tuple(replace(one, also=also) for one in scenarios)
    variants = [
        Variant(str(specs.key(path, one, "title")), _changed(path, base, one))
        for one in document.get("variant", [])
    ]
    about = document["figure"]
    return KindsFigure(**head, about=about, variants=tuple(variants), scenarios=own)


def _changed(path: Path, base: KindsTraining, table: Mapping[str, Any]) -> KindsTraining:
    changes = {key: value for key, value in table.items() if key not in ("title", "method")}
    for key in changes:
        specs.among(path, key, key, KindsTraining.__dataclass_fields__)
    if "without" in changes:
        changes["without"] = tuple(changes["without"])
    return replace(base, by=str(specs.key(path, table, "method")), **changes)


Of = Callable[[KindsReport], Confusion]
WHOLE = "whole"
"""The part that judges of a volume that trained nothing."""


ANY, LEAST = "any of them", "least of the earlier methods"
"""Last rows: of the methods other than the paper's own."""


def _windows(report: KindsReport) -> Confusion:
    """Return answers for windows one by one."""
    return report.windows_judged


def _tens(report: KindsReport) -> Confusion:
    """Return answers for ten windows together."""
    return report.of_ten


def notes(what: WorkloadKinds) -> list[str]:
    """Return what to know before the numbers."""
    counts = [
        f"{kind}: {counted.train} windows train, {counted.validation} say when to stop"
        for trainings in list(what.found.values())[:1]
        for kind, counted in trainings.report.windows.items()
    ]
    return [
        "rc-rnn reads a window request by request and does not see addresses, only distances from "
        "the request before; the other methods' windows are judged by their mean. Models are as "
        "they are stored, in int8.",
        *counts,
    ]


def shared(what: WorkloadKinds) -> list[Table]:
    """Return tables of all figures together: none."""
    return []


def shown(what: WorkloadKinds, figure: KindsFigure) -> list[Table | Figure]:
    """Return the tables of a figure in the order of the page."""
    match figure.shows:
        case "grid":
            return [_grid(what, figure)]
        case "added":
            ahead = _ahead(what, figure, _kept, first=1)
            return [_added(what, figure), _bars(what, figure, _kept), ahead]
        case "elsewhere":
            return [*_elsewhere(what, figure)]
        case "learning":
            return [_learning(what, figure)]
        case "seeds":
            return [_seeds(what, figure)]
    found: list[Table | Figure] = [_accuracy(what, figure), _bars(what, figure, _accuracies)]
    found += [_confusion(what, figure, by) for by in figure.methods[:1]]
    if RECURRENT in figure.methods[:1]:
        found.append(_ahead(what, figure, _accuracies))
    return [*found, _variants(what, figure)] if figure.variants else found


def _learning(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return accuracy on what trains and on what judges, after each iteration."""
    scenario = figure.scenarios[-1]
    report = what.report(scenario, what.method(figure.methods[0]))
    named = [(str(at), one) for at, one in enumerate(report.curve, 1)]
    if report.best_epoch:
        named.append(("kept", report.curve[report.best_epoch - 1]))
    rows = [[name, _right(one.labelling), _right(one.evaluation)] for name, one in named]
    headers = ["iteration", "labelling (windows that train)", "evaluation (later windows)"]
    return plain(figure.heading, f"accuracy while it learns, {scenario.title}", headers, rows, 1)


def _right(share: float | None) -> str:
    return words.NOTHING if share is None else words.percent(share)


def _accuracies(
    what: WorkloadKinds, figure: KindsFigure, by: str, of: Of = _windows
) -> list[float]:
    how = what.method(by)
    return [of(what.report(one, how)).accuracy or 0.0 for one in figure.scenarios]


def _seeds(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return a row per seed of the first method, their mean last."""
    rows, each = [], []
    for how in what.seeds(figure):
        found = [_windows(what.report(one, how)).accuracy or 0.0 for one in figure.scenarios]
        each.append(found)
        rows.append([how.by, f"seed {how.seed}", *map(_right, found)])
    means = [sum(column) / len(column) for column in zip(*each, strict=True)]
    rows.append([figure.methods[0], "mean", *map(_right, means)])
    headers = ["method", "seed", *(one.title for one in figure.scenarios)]
    return plain(figure.heading, "windows told right", headers, rows, 2)


def _ahead(
    what: WorkloadKinds,
    figure: KindsFigure,
    of: Callable[[WorkloadKinds, KindsFigure, str], list[float]],
    first: int = 0,
) -> Table:
    """Return by how much the first method is ahead of each other one, the greatest last.

    Shares of windows: 0.3 is 30 points. Scenarios begin with the one at `first`.
    """
    own, *others = (of(what, figure, by)[first:] for by in figure.methods)
    rows, each = [], []
    for by, values in zip(figure.methods[1:], others, strict=True):
        ahead = [one - other for one, other in zip(own, values, strict=True)]
        rows.append([by, *map(words.ratio, (*ahead, max(ahead)))])
        each.append([*ahead, max(ahead)])
    most = [max(column) for column in zip(*each, strict=True)]
    rows.append([ANY, *map(words.ratio, most)])
    columns = [*(one.title for one in figure.scenarios[first:]), "greatest"]
    title = f"share of windows by which {figure.methods[0]} is ahead of each method"
    return plain("", title, ["method", *columns], rows, 1, "ahead")


def _best(columns: Sequence[Sequence[float | None]]) -> list[set[int]]:
    """Return the places of the largest in each column."""
    found: list[set[int]] = []
    for column in columns:
        most = max((one for one in column if one is not None), default=None)
        found.append({place for place, one in enumerate(column) if one == most is not None})
    return found


def _accuracy(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return a row per method: each scenario's windows, then ten of them together."""
    columns = [
        [_accuracies(what, figure, by, of)[place] for by in figure.methods]
        for of in (_windows, _tens)
        for place in range(len(figure.scenarios))
    ]
    titles = [one.title for one in figure.scenarios]
    headers = ["method", *titles, *(f"{title}, ten together" for title in titles)]
    rows = [
        [by, *(_right(column[place]) for column in columns)]
        for place, by in enumerate(figure.methods)
    ]
    best = [set[int](), *_best(columns)]
    return Table(figure.heading, "windows told right", headers, rows, best)


def _bars(
    what: WorkloadKinds,
    figure: KindsFigure,
    of: Callable[[WorkloadKinds, KindsFigure, str], list[float]],
) -> Figure:
    """Return an accuracy of each method as bars, a group per scenario."""
    rows = [
        {"kinds": scenario.title, "method": by, "value": value}
        for by in figure.methods
        for scenario, value in zip(figure.scenarios, of(what, figure, by), strict=True)
    ]
    title = "windows told right (share)"
    caption = "Windows that never trained, of the volumes that trained."
    if figure.shows == "added":
        title = "accuracy by that with the fewest kinds"
        caption = "What is left of a method's accuracy when kinds are added."
    chart = grouped.bars(rows, "kinds", "method", title)
    return Figure(f"{figure.name}-bars", figure.title, caption, chart)


def _confusion(what: WorkloadKinds, figure: KindsFigure, by: str) -> Table:
    """Return what the last scenario's windows were taken for."""
    scenario = figure.scenarios[-1]
    table = _windows(what.report(scenario, what.method(by)))
    rows = [
        [kind, *(words.count(count) for count in counts), _right(right)]
        for kind, counts, right in zip(
            scenario.kinds, table.confusion, table.accuracy_per_kind, strict=True
        )
    ]
    headers = ["windows of", *(f"as {kind}" for kind in scenario.kinds), "right"]
    title = f"what windows were taken for by {by}, {scenario.title}"
    return plain("", title, headers, rows, 1, "confusion")


def _variants(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return what other networks and other features do on the last scenario."""
    scenario = figure.scenarios[-1]
    hows = [(by, what.method(by)) for by in figure.methods]
    hows += [(one.title, one.how) for one in figure.variants]
    reports = [(title, what.report(scenario, how)) for title, how in hows]
    others = [one.name for one in reports[0][1].judged if one.part == WHOLE]
    # What is judged whole is of another volume.
    rows = []
    for title, report in reports:
        judged = {one.name: one.accuracy for one in report.judged}
        own = [_right(one.accuracy) for one in (_windows(report), _tens(report), report.f32)]
        rows.append(
            [
                title,
                report.network,
                *own,
                *(_right(judged[name]) for name in others),
                words.size(report.bytes),
            ]
        )
    headers = ["model", "network", "windows", "ten together", "in f32", *others, "size"]
    title = f"features and networks, {scenario.title}"
    return plain("", title, headers, rows, 2, "variants", keys=1)


def _grid(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return a row per number of units, a column per window."""
    grid = what.grid(figure)
    scenario: Scenario = figure.scenarios[0]
    values = [[_windows(what.report(scenario, how)).accuracy for how in row] for row in grid]
    headers = ["units", *(f"{how.window} requests" for how in grid[0])]
    rows = [
        [str(row[0].units), *(_right(value) for value in found)]
        for row, found in zip(grid, values, strict=True)
    ]
    best = [set[int](), *_best(list(zip(*values, strict=True)))]
    return Table(figure.heading, f"windows told right, {scenario.title}", headers, rows, best)


def _kept(what: WorkloadKinds, figure: KindsFigure, by: str) -> list[float]:
    """Return each scenario's accuracy as a part of the first one's."""
    found = _accuracies(what, figure, by)
    return [one / found[0] if found[0] > 0 else 0.0 for one in found]


def _added(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return what each method keeps when kinds are added."""
    kept = [_kept(what, figure, by) for by in figure.methods]
    columns = list(zip(*kept, strict=True))[1:]
    headers = ["method", *(one.title for one in figure.scenarios[1:])]
    rows = [
        [by, *(_right(one) for one in found[1:])]
        for by, found in zip(figure.methods, kept, strict=True)
    ]
    earlier = [found[1:] for by, found in zip(figure.methods, kept, strict=True) if by != RECURRENT]
    least = [min(column) for column in zip(*earlier, strict=True)]
    rows.append([LEAST, *map(_right, least)])
    title = f"accuracy as a part of that with {figure.scenarios[0].title}"
    return Table(figure.heading, title, headers, rows, [set[int](), *_best(columns)])


def _elsewhere(what: WorkloadKinds, figure: KindsFigure) -> list[Table]:
    """Return a row per volume that trained nothing, its windows by each method."""
    scenario = figure.scenarios[-1]
    found: dict[str, list[JudgedVolume]] = {}
    for by in figure.methods:
        for one in what.report(scenario, what.method(by)).judged:
            if one.part == WHOLE:
                found.setdefault(one.name, []).append(one)
    if not found:
        return []
    rows = [
        [
            name,
            scenario.kinds[judged[0].kind],
            words.count(judged[0].windows),
            *(_right(one.accuracy) for one in judged),
            *(_right(one.accuracy_of_ten) for one in judged),
        ]
        for name, judged in found.items()
    ]
    together = [f"{by}, ten together" for by in figure.methods]
    headers = ["volume", "kind", "windows", *figure.methods, *together]
    title = f"windows told right, {scenario.title}"
    return [plain(figure.heading, title, headers, rows, 2, keys=1)]
