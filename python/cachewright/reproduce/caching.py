"""Papers on what enters a cache before a disk: policies, some trained, on one workload each.

For: which replays and models the figures need, each made once for all that show it. Must never
know: how a figure is drawn, how anything is measured. In the table `[caching]` of `setup.toml`
`stack` is the machine, `scheme` what is compared, `training` how models learn, `trace` (`bundled`,
`quick`) the workloads with their spans. Models are trained on the first `share` of a trace, which
also fills the cache; the rest is judged. Units: sizes in per cent of the working set.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from cachewright import _native, api
from cachewright.answers import Case
from cachewright.reproduce import specs, volumes
from cachewright.reproduce.imitators import Ceiling, Imitator, Imitators, hashed
from cachewright.reproduce.jobs import Job, each
from cachewright.reproduce.specs import SETUP, FigureSpec, Setup, Workload, among, merged
from cachewright.results import ALL
from cachewright.train import RcRnnTraining

if TYPE_CHECKING:
    from cachewright.results import Result
    from cachewright.types import PathLike, Progress

SHOWN = (
    "hits",
    "imitated",
    "replacements",
    "writes",
    "response",
    "sizes",
    "agreement",
    "over-time",
    "ceilings",
    "in-sample",
    "learning",
)
OF_MODELS = ("agreement", "in-sample", "learning")
"""What shows models, not replays."""

MODEL, PERFECT, FORCED = "model", "perfect", "forced"
"""Whose labels a trained scheme has: its model's, the oracle's, or those of a model that is told
the oracle's of the request before."""

STUDY = "caching"
SIZES = ("units", "layers")
MODELS, RUNS = "models", "runs"
Pairs = tuple[tuple[str, Any], ...]
Table = dict[str, Any]


@dataclass(frozen=True)
class Scheme:
    """A policy with what it and its machine need.

    `bound` says that it sees ahead, `own` that its change is told beside the others; `learns` is
    how its models learn where that differs, `kinds` the workloads whose models it has and begins
    with the first of (none: its own), `follows` that a characterizer says which is asked; `labels`
    says whose labels it has.
    """

    title: str
    policy: str
    trained: bool
    bound: bool
    own: bool
    machine: Pairs
    learns: Pairs
    kinds: tuple[str, ...]
    follows: bool
    labels: str = MODEL


@dataclass(frozen=True)
class CachingFigure(FigureSpec):
    """One figure: workloads under schemes, with caches of some sizes.

    `beside` names schemes that ours are set beside, the best of the others aside.
    """

    workloads: tuple[str, ...]
    schemes: tuple[Scheme, ...]
    sizes: tuple[float, ...]
    beside: tuple[str, ...]

    @property
    def replays(self) -> bool:
        """Whether workloads are replayed for it."""
        return self.shows not in (*OF_MODELS, "ceilings")


class Window(NamedTuple):
    """Accesses of a window of time: when it ends, and the share that hit."""

    time_ns: int
    hit_ratio: float


@dataclass(frozen=True)
class Asked:
    """One replay."""

    workload: str
    size: float
    scheme: Scheme


@dataclass
class Caching:
    """The figures of a paper with what was found for them."""

    setup: Setup
    figures: Sequence[CachingFigure]
    workloads: Sequence[Workload]
    about: Table
    training: RcRnnTraining
    """How models learn; `share` of a trace trains."""

    size: float
    """Of the cache, unless a figure says another."""

    cases: dict[Asked, Case] = field(default_factory=dict)
    windows: dict[Asked, list[Window]] = field(default_factory=dict)
    models: dict[tuple[str, Pairs], Imitator] = field(default_factory=dict)
    ceilings: dict[tuple[str, Pairs], Ceiling] = field(default_factory=dict)
    judge: Path | None = None

    def count(self) -> int:
        """Return how many replays were made."""
        return len(self.cases)

    def asked(self) -> list[Asked]:
        """Return every replay that a figure shows, each once."""
        found: dict[Asked, None] = {}
        for figure in self.figures:
            for workload in figure.workloads if figure.replays else ():
                for size in figure.sizes:
                    for scheme in figure.schemes:
                        found[Asked(workload, size, scheme)] = None
        return list(found)

    def taught(self, *, perfect: bool = False) -> list[tuple[str, Pairs]]:
        """Return every workload that a model is trained on, and how if not as usual.

        With `perfect` every workload whose oracle's own labels are asked for.
        """
        found: dict[tuple[str, Pairs], None] = {}
        for one in self.asked():
            for name in one.scheme.kinds or (one.workload,):
                if one.scheme.trained and (one.scheme.labels == PERFECT) == perfect:
                    found[name, one.scheme.learns] = None
        for figure in self.figures:
            if figure.shows == "ceilings" if perfect else figure.shows in OF_MODELS:
                for scheme in figure.schemes:
                    found |= {(name, scheme.learns): None for name in figure.workloads}
        return list(found)

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run all that the figures need; with `out` everything is kept below it."""
        with TemporaryDirectory() as nowhere:
            folder = Path(nowhere if out is None else out)
            teachers = Imitators(folder / MODELS, self._teaching, self.training)
            wanted = self.taught()
            lessons: list[Job[Imitator]] = [
                partial(teachers.of, name, dict(learns)) for name, learns in wanted
            ]
            found = each("training", lessons, threads, progress)
            self.models.update(zip(wanted, found, strict=True))
            tops = self.taught(perfect=True)
            asking: list[Job[Ceiling]] = [
                partial(teachers.ceiling, name, dict(learns)) for name, learns in tops
            ]
            ceilings = each("asking oracles", asking, threads, progress)
            self.ceilings.update(zip(tops, ceilings, strict=True))
            if any(one.scheme.follows for one in self.asked()):
                self.judge = self._judge(teachers)
            self._replay(folder / RUNS, threads, progress)

    def workload(self, name: str) -> Workload:
        """Return a workload by its name."""
        return next(one for one in self.workloads if one.name == name)

    def span_ns(self, name: str) -> int:
        """Return how long a trace takes as it is replayed."""
        workload = self.workload(name)
        known = workload.table.get("span")
        found = volumes.span_ns(workload.path) if known is None else _native.parse_duration(known)
        return round(found * float(self.about["stack"]["tenant"].get("time_scale", 1.0)))

    def _judge(self, teachers: Imitators) -> Path:
        """Return the model of a characterizer that tells the kinds of schemes apart."""
        names = {name for one in self.asked() if one.scheme.follows for name in one.scheme.kinds}
        paths = {name: self.workload(name).path for name in sorted(names)}
        return teachers.judge(paths, self.about["judge"])

    def _stack(self, name: str, size: float) -> Table:
        """Return the stack of one workload: what trains is its warm-up."""
        stack = copy.deepcopy(self.about["stack"])
        keys = stack.pop("tenant")
        trace = os.fspath(self.workload(name).path.resolve())
        stack["cache"]["capacity"] = f"{size:g}%wss"
        share = float(self.workload(name).table.get("warmup", self.training.share))
        warmup = round(self.span_ns(name) * share)
        windows = int(self.about.get("windows", 0))
        stack["replay"] |= {"warmup": f"{warmup}ns", "windows": windows}
        tenant = {"name": name, "trace": trace, **keys}
        return {"name": name, "seed": 1, **stack, "tenant": [tenant]}

    def _teaching(self, name: str) -> Table:
        """Return the stack that a workload's model is trained on: the usual size."""
        return self._stack(name, self.size)

    def _replay(self, folder: Path, threads: int, progress: Progress | None) -> None:
        """Replay what is asked for: those with the same machine together."""
        groups: dict[tuple[Any, ...], list[Asked]] = {}
        for one in self.asked():
            scheme = one.scheme
            asks = (scheme.trained, scheme.labels, scheme.follows)
            how = (asks, scheme.machine, scheme.learns, scheme.kinds)
            key = (one.workload, one.size, how)
            groups.setdefault(key, []).append(one)
        jobs: list[Job[list[Asked]]] = [
            partial(self._compare, group, folder / _folder(group[0], how))
            for (*_, how), group in groups.items()
        ]
        each("replaying", jobs, threads, progress)

    def _compare(self, group: Sequence[Asked], folder: Path, progress: Progress) -> list[Asked]:
        """Replay the schemes of one workload and size that share a machine."""
        one = group[0]
        stack = self._stack(one.workload, one.size)
        stack["machine"] = stack["machine"] | dict(one.scheme.machine)
        if one.scheme.trained:
            stack["cache"] |= self._models(one)
        result = api.compare(
            stack,
            {"policy": [asked.scheme.policy for asked in group]},
            out=folder,
            threads=1,
            progress=progress,
        )
        for asked, case in zip(group, result.answer.cases, strict=True):
            self.cases[asked] = case
            self.windows[asked] = _windows(result, case) if self.about.get("windows", 0) else []
        return list(group)

    def _models(self, asked: Asked) -> Table:
        """Return the keys of the models that a replay asks, and of what chooses among them."""
        scheme = asked.scheme
        names = scheme.kinds or (asked.workload,)
        models = {name: os.fspath(self._labels(name, scheme)) for name in names}
        found: Table = {"models": models, "workload": names[0]}
        if scheme.follows:
            about = self.about["judge"]
            found["characterize"] = {"name": about["by"], "model": os.fspath(self.judge or "")}
            found["characterize"]["every"] = about["every"]
        return found

    def _labels(self, name: str, scheme: Scheme) -> Path:
        """Return the file of a scheme that labels the requests of a workload."""
        if scheme.labels == PERFECT:
            return self.ceilings[name, scheme.learns].path
        model = self.models[name, scheme.learns]
        return model.forced if scheme.labels == FORCED else model.path


def _windows(result: Result, case: Case) -> list[Window]:
    """Return the windows of a case in which blocks were accessed."""
    own = result.series.filter(case=case.case, tenant=ALL).drop_nulls("hit_ratio")
    return [Window(*row) for row in own.select("time_ns", "hit_ratio").rows()]


def _folder(asked: Asked, how: tuple[Any, ...]) -> str:
    """Return the same name whichever figures are run."""
    kind = f"trained-{hashed(how)}" if asked.scheme.trained else "plain"
    return f"{asked.workload}-{asked.size:g}-{kind}"


def load(setup: Setup) -> Caching:
    """Return the figures of a paper, nothing run yet. Errors: `SpecError`."""
    path = setup.folder / SETUP
    document = specs.key(path, setup.document, STUDY)
    own = {} if setup.whole else setup.document.get(setup.key(STUDY), {})
    about = merged(document, own)
    workloads = specs.workloads(setup, document)
    for key in ("stack", "training", "scheme"):
        specs.key(path, about, key)
    known = {one.name for one in workloads}
    schemes = [_scheme(path, one, whole=setup.whole) for one in about["scheme"]]
    lacking = {one.title for one in schemes if not known.issuperset(one.kinds)}
    schemes = [one for one in schemes if setup.kind != specs.GIVEN or one.title not in lacking]
    learns = dict(about["training"])
    size = float(learns.pop("size"))
    for key in learns:
        among(path, "training", key, RcRnnTraining.__dataclass_fields__)
    found = [
        _figure(file, figure, setup, workloads, schemes, size)
        for file, figure in specs.figures(setup.folder, STUDY)
    ]
    figures = [one for one in found if one is not None]
    return Caching(setup, figures, workloads, about, RcRnnTraining(**learns), size)


def _scheme(path: Path, table: Mapping[str, Any], *, whole: bool) -> Scheme:
    """Return a scheme; networks are as small as all others where traces are not `whole`."""
    learns = {k: one for k, one in table.get("learns", {}).items() if whole or k not in SIZES}
    title, policy = (str(specs.key(path, table, key)) for key in ("title", "policy"))
    return Scheme(
        title,
        policy,
        bool(table.get("trained", False)),
        bool(table.get("bound", False)),
        bool(table.get("own", False)),
        tuple(sorted(table.get("machine", {}).items())),
        tuple(sorted(learns.items())),
        tuple(table.get("kinds", ())),
        bool(table.get("follows", False)),
        _labels_of(path, table),
    )


def _labels_of(path: Path, table: Mapping[str, Any]) -> str:
    found = str(table.get("labels", MODEL))
    among(path, "labels", found, {MODEL, PERFECT, FORCED})
    return found


def _figure(
    path: Path,
    document: dict[str, Any],
    setup: Setup,
    workloads: Sequence[Workload],
    schemes: Sequence[Scheme],
    size: float,
) -> CachingFigure | None:
    """Return a figure, or nothing where none of its workloads is given."""
    fields = specs.head(path, document, SHOWN)
    about = document["figure"]
    known = {one.name: None for one in workloads}
    titles = {one.title: one for one in schemes}
    wanted = about.get("workloads", list(known))
    if setup.kind == "trace":
        for name in wanted:
            among(path, "workloads", name, known)
    if setup.kind == specs.GIVEN and not any(name in known for name in wanted):
        return None
    chosen = about.get("schemes", list(titles))
    if setup.kind != specs.GIVEN:
        for title in chosen:
            among(path, "schemes", title, titles)
    beside = about.get("beside", [])
    for title in beside:
        among(path, "beside", title, about.get("schemes", list(titles)))
    names = tuple(name for name in wanted if name in known) or tuple(known)
    sizes = about.get("sizes", [size])
    return CachingFigure(
        **fields,
        workloads=names,
        schemes=tuple(titles[title] for title in chosen if title in titles),
        sizes=tuple(float(size) for size in sizes),
        beside=tuple(beside),
    )
