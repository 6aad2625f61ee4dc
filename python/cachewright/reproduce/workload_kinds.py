"""Papers on telling kinds of workloads apart: which models are trained, each once for all figures.

For: `WorkloadKinds`. Must never know: how a figure is drawn, how anything is learned or judged. A
scenario is some kinds; a model is of a characterizer, a scenario and settings of training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright._native import SpecError
from cachewright.reproduce import specs
from cachewright.reproduce.jobs import Job, each
from cachewright.reproduce.specs import FigureSpec, Setup, Workload
from cachewright.traces import Trace
from cachewright.train import KindsTraining, kinds
from cachewright.train.kinds import Volume
from cachewright.train.reports import KindsReport
from cachewright.train.store import KindsTrainings

if TYPE_CHECKING:
    from cachewright.types import PathLike, Progress

SHOWN = ("accuracy", "grid", "added", "elsewhere", "learning")
SYNTH = ".toml"
NS_PER_S = 1e9


@dataclass(frozen=True)
class Scenario:
    """Kinds to be told apart."""

    title: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Variant:
    """A change to how a model is trained, with its title."""

    title: str
    how: KindsTraining


@dataclass(frozen=True)
class KindsFigure(FigureSpec):
    """A figure with its own table of the spec."""

    about: Mapping[str, Any]
    variants: tuple[Variant, ...]

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
                yield from (Asked(self.scenarios[0], how) for how in row)
            return
        last = figure.shows in ("elsewhere", "learning")
        scenarios = self.scenarios[-1:] if last else self.scenarios
        for scenario in scenarios:
            yield from (Asked(scenario, self.method(by)) for by in figure.methods)
        for variant in figure.variants:
            yield Asked(self.scenarios[-1], variant.how)

    def _read(self, key: tuple[str, str, int], progress: Progress) -> list[Volume]:
        name, by, window = key
        workload = next(one for one in self.setup.workloads if one.name == name)
        synth = "synth" if workload.path.suffix == SYNTH else None
        kind = _kinds_of(workload)[0]
        trace = Trace(workload.path, format=synth)
        found = kinds.seen({kind: trace}, by, window, [kind], progress)
        return [replace(one, name=_volume_name(name, one.name)) for one in found]

    def _train(self, asked: Asked, progress: Progress) -> KindsTrainings:
        scenario, how = asked.scenario, asked.how
        learns, judges = [], []
        for workload in self.setup.workloads:
            if not _of_scenario(workload, scenario):
                continue
            for volume in self.seen[workload.name, how.by, how.window]:
                if not workload.table.get("judges"):
                    learns.append(
                        replace(volume, kind=scenario.kinds.index(workload.table["kind"]))
                    )
                else:
                    judges += parts(workload, volume, scenario)
        return kinds.train_on(learns, judges, scenario.kinds, how, progress)


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
    figures = [_figure(one, document, base) for one, document in specs.figures(setup.folder)]
    return WorkloadKinds(setup, scenarios, figures, base)


def _figure(path: Path, document: dict[str, Any], base: KindsTraining) -> KindsFigure:
    head = specs.head(path, document, SHOWN)
    variants = [
        Variant(str(specs.key(path, one, "title")), _changed(path, base, one))
        for one in document.get("variant", [])
    ]
    return KindsFigure(**head, about=document["figure"], variants=tuple(variants))


def _changed(path: Path, base: KindsTraining, table: Mapping[str, Any]) -> KindsTraining:
    changes = {key: value for key, value in table.items() if key not in ("title", "method")}
    for key in changes:
        specs.among(path, key, key, KindsTraining.__dataclass_fields__)
    if "without" in changes:
        changes["without"] = tuple(changes["without"])
    return replace(base, by=str(specs.key(path, table, "method")), **changes)
