"""Papers on what enters a cache before a disk: policies, some trained, on one workload each.

Replays and models are made once for all figures that show them. In the table `[caching]` of
`setup.toml` `stack` is the machine, `scheme` what is compared, `training` how models learn, `trace`
(`bundled`, `quick`) the workloads with their spans. Models are trained on the first `share` of a
trace, which also fills the cache; the rest is judged. Units: sizes in per cent of the working set;
hit ratios and shares are of block accesses after the part that trains; writes to the cache device
and replacements are per 100 requests; agreement is a share of requests. A scheme that sees ahead is
shown, but never called best.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import altair as alt

from cachewright import _native, api, words
from cachewright.answers import Case
from cachewright.report import charts, marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series, distinct
from cachewright.results import ALL
from cachewright.tables import best_index
from cachewright.tables.measures import GIVEN
from cachewright.train import RcRnnTraining
from cachewright.train.labelling import HEADS
from cachewright.train.model_file import GATES
from cachewright.train.networks import LSTM
from cachewright.train.reports import (
    Agreement,
    CachingModel,
    Control,
    Fed,
    FedHits,
    HitRatios,
    Majority,
)
from cachewright_lab.report import grouped
from cachewright_lab.report.tables import Table, plain
from cachewright_lab.reproduce import specs, volumes
from cachewright_lab.reproduce.imitators import Ceiling, Imitator, Imitators, Worth, hashed
from cachewright_lab.reproduce.jobs import Job, each
from cachewright_lab.reproduce.specs import SETUP, FigureSpec, Setup, Workload, among, merged

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
    "networks",
)
OF_MODELS = ("agreement", "in-sample", "learning")
"""What shows models, not replays."""

MODEL, PERFECT, FORCED = "model", "perfect", "forced"
"""Whose labels a trained scheme has: its model's, the oracle's, or those of a model that is told
the oracle's of the request before."""

STUDY = "caching"
SIZES = ("units", "layers")
TENANT = ("format", "options", "time_scale", "stop")
"""Keys of a trace that its tenant has in place of the usual ones."""

MODELS, RUNS = "models", "runs"
Pairs = tuple[tuple[str, Any], ...]
Toml = dict[str, Any]


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
        return self.shows not in (*OF_MODELS, "ceilings", "networks")


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
    about: Toml
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
        return round(found * float(self._tenant(name).get("time_scale", 1.0)))

    def change_ns(self, name: str) -> int | None:
        """Return when another program begins in a trace, as it is replayed; nothing if none."""
        at = self.workload(name).table.get("change")
        if at is None:
            return None
        return round(_native.parse_duration(at) * float(self._tenant(name).get("time_scale", 1.0)))

    def feedback(self, learns: Pairs) -> str:
        """Return what a model is told of the request before: labels, or none."""
        return replace(self.training, **dict(learns)).feedback

    def _tenant(self, name: str) -> Toml:
        """Return the keys of a workload's tenant: the usual ones, or its trace's own."""
        own = self.workload(name).table
        usual: Toml = self.about["stack"]["tenant"]
        return {**usual, **{key: own[key] for key in TENANT if key in own}}

    def _judge(self, teachers: Imitators) -> Path:
        """Return the model of a characterizer that tells the kinds of schemes apart."""
        names = {name for one in self.asked() if one.scheme.follows for name in one.scheme.kinds}
        paths = {name: self.workload(name).path for name in sorted(names)}
        return teachers.judge(paths, self.about["judge"])

    def _stack(self, name: str, size: float) -> Toml:
        """Return the stack of one workload: what trains is its warm-up."""
        stack = copy.deepcopy(self.about["stack"])
        keys = self._tenant(name)
        del stack["tenant"]
        trace = os.fspath(self.workload(name).path.resolve())
        stack["cache"]["capacity"] = f"{size:g}%wss"
        share = float(self.workload(name).table.get("warmup", self.training.share))
        warmup = round(self.span_ns(name) * share)
        windows = int(self.about.get("windows", 0))
        stack["replay"] |= {"warmup": f"{warmup}ns", "windows": windows}
        tenant = {"name": name, "trace": trace, **keys}
        return {"name": name, "seed": 1, **stack, "tenant": [tenant]}

    def _teaching(self, name: str) -> Toml:
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

    def _models(self, asked: Asked) -> Toml:
        """Return the keys of the models that a replay asks, and of what chooses among them."""
        scheme = asked.scheme
        names = scheme.kinds or (asked.workload,)
        models = {name: os.fspath(self._labels(name, scheme)) for name in names}
        found: Toml = {"models": models, "workload": names[0]}
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
    schemes = [one for one in schemes if setup.kind != GIVEN or one.title not in lacking]
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
    if setup.kind == GIVEN and not any(name in known for name in wanted):
        return None
    chosen = about.get("schemes", list(titles))
    if setup.kind != GIVEN:
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


EPOCHS = (1, 2, 4, 8, 16, 32)
"""Epochs that the table of a learning curve shows, besides the best."""

LABELS: tuple[tuple[str, Callable[[Agreement | Majority | Control], float]], ...] = (
    ("cached", lambda said: said.cached),
    ("duration", lambda said: said.duration),
)

Told = tuple[str, Callable[[Fed], Agreement], Callable[[FedHits], HitRatios]]
NO_FEEDBACK, AS_IT_RUNS = "none", "as it runs"

PAPER_INPUTS = 5
"""Values of a request that the paper's caching model sees (section 5.2.2)."""

FLOAT_BYTES = 4
MODELS_KEPT = 4
"""One model per kind of workload."""

MEMORY = 0.002 * 1e12
"""Bytes that a cache of 1 TB needs without models: 0.2 % of it (section 4.2)."""

TOLD: tuple[Told, ...] = (
    ("the oracle's labels", lambda fed: fed.forced, lambda hits: hits.forced),
    ("its own", lambda fed: fed.own, lambda hits: hits.own),
)
"""What a model is told of the request before, and what was found then."""

PARTS: tuple[tuple[str, Callable[[HitRatios], float | None]], ...] = (
    ("in-sample", lambda hits: hits.in_sample),
    ("later", lambda hits: hits.later),
)

WORTHS: tuple[tuple[str, Callable[[Worth], float]], ...] = (
    ("its labels", lambda worth: worth.perfect),
    ("the oracle itself", lambda worth: worth.oracle),
)

COUNTS: tuple[Callable[[CachingModel], int], ...] = (
    lambda model: model.best_epoch,
    lambda model: model.epochs,
    lambda model: model.updates,
)
"""The last columns of the table of a learning curve."""

CONTROL = (
    "cached, commonest",
    "network",
    "trees",
    "duration, commonest",
    "network",
    "trees",
    "hits, network",
    "trees",
    "perfect labels",
)
"""Columns of the table that sets boosted trees beside a network."""


def ceilings(what: Caching, figure: CachingFigure, title: str) -> list[Table]:
    """Return hit ratios of perfect labels, and as shares of their oracle's."""
    rows, shares = [], []
    for scheme in figure.schemes:
        found = [what.ceilings[name, scheme.learns].worth for name in figure.workloads]
        for label, of in WORTHS:
            rows.append([scheme.title, label, *_with_mean([of(one) for one in found])])
        quotients = [one.perfect / max(one.oracle, 1e-9) for one in found]
        means = [sum(of(one) for one in found) for _, of in WORTHS]
        cells = [words.ratio(value) for value in (*quotients, means[0] / max(means[1], 1e-9))]
        shares.append([scheme.title, *cells])
    headers = ["labels of", "", *figure.workloads, "mean"]
    hits = plain(title, "hit ratio on the later part, without devices", headers, rows, 2)
    headers = ["labels of", *figure.workloads, "mean"]
    caption = "hits of perfect labels by those of the oracle that they are of"
    return [hits, plain("", caption, headers, shares, 1, "share")]


def gains(what: Caching, figure: CachingFigure) -> Table:
    """Return by how much perfect labels are right more often than the commonest (equation 4)."""
    rows = []
    for scheme in figure.schemes:
        found = [what.ceilings[name, scheme.learns].worth for name in figure.workloads]
        each = [1.0 / max(one.cached * one.duration, 1e-9) for one in found]
        each.append(sum(each) / len(each))
        rows.append([scheme.title, *(words.change(one, 1.0, 0) for one in each)])
    headers = ["labels of", *figure.workloads, "mean"]
    title = "gain of perfect labels over the commonest, equation 4, less one"
    return plain("", title, headers, rows, 1, "gain")


def networks(what: Caching, figure: CachingFigure, title: str) -> list[Table]:
    """Return how large a model is that sees the paper's five values of a request; no training.

    `MEMORY` is what the paper says that a cache without it needs.
    """
    rows = []
    for scheme in figure.schemes:
        how = replace(what.training, **dict(scheme.learns))
        weights, products = sizes_of(how.units, how.layers, PAPER_INPUTS)
        f32 = FLOAT_BYTES * weights
        rows.append(
            [
                scheme.title,
                f"{how.layers} x {how.units}",
                words.count(weights),
                words.size(f32),
                words.size(weights),
                words.percent(MODELS_KEPT * f32 / MEMORY),
                words.count(products),
            ]
        )
    headers = ["model", "units", "weights", "in f32", "in int8", "four beside a cache of 1 TB"]
    headers.append("products per request")
    caption = "size of a caching model, and of one per kind beside the cache's own memory"
    return [plain(title, caption, headers, rows, 2, keys=1)]


def sizes_of(units: int, layers: int, inputs: int) -> tuple[int, int]:
    """Return the weights of an LSTM with both heads, and its products per request."""
    outputs = sum(HEADS.values())
    before = [inputs, *[units] * (layers - 1)]
    matrices = sum(GATES[LSTM] * units * (one + units) for one in before) + outputs * units
    # As PyTorch keeps them: two biases per gate.
    return matrices + layers * 2 * GATES[LSTM] * units + outputs, matrices


def _told(what: Caching, scheme: Scheme) -> Sequence[Told]:
    """Return what a scheme's model can be told: one that sees no labels is asked once."""
    if what.feedback(scheme.learns) == NO_FEEDBACK:
        return [(AS_IT_RUNS, fed, hits) for _, fed, hits in TOLD[1:]]
    return TOLD


def in_sample(what: Caching, figure: CachingFigure, title: str) -> list[Table]:
    """Return agreement and hits on what trained and later, told the oracle's labels or own ones."""
    agreement, hits = [], []
    for scheme in figure.schemes:
        models = [what.models[name, scheme.learns] for name in figure.workloads]
        for label, of in LABELS:
            for told, fed, _ in _told(what, scheme):
                values = [of(fed(one.model.in_sample)) for one in models]
                agreement.append([scheme.title, label, told, *_shares(values)])
            common = [of(one.report.majority_in_sample) for one in models]
            agreement.append([scheme.title, label, "the commonest", *_shares(common)])
        for part, ratio in PARTS:
            for told, _, fed_hits in _told(what, scheme):
                values = [ratio(fed_hits(one.model.hits)) or 0.0 for one in models]
                hits.append([scheme.title, part, told, *_with_mean(values)])
        perfect = [one.report.perfect or 0.0 for one in models]
        hits.append([scheme.title, "in-sample", "perfect labels", *_with_mean(perfect)])
    headers = ["scheme", "label", "told", *figure.workloads, "mean"]
    caption = "agreement with the oracle on the requests that trained"
    first = plain(title, caption, headers, agreement, 3)
    headers = ["scheme", "part", "told", *figure.workloads, "mean"]
    second = plain("", "hit ratio, without devices", headers, hits, 3, "hits")
    return [first, second]


def learning(what: Caching, figure: CachingFigure, title: str) -> list[Table | Figure]:
    """Return the hits of the part that says when to stop, epoch by epoch."""
    points: Rows = []
    rows, control = [], []
    for scheme in figure.schemes:
        for name in figure.workloads:
            model = what.models[name, scheme.learns].model
            scores = [one.score for one in model.curve]
            label = f"{scheme.title}, {name}"
            for at, score in enumerate(scores):
                if score is not None:
                    points.append({"model": label, "epoch": at + 1, "hits": score})
            shown = [scores[at - 1] if at <= len(scores) else None for at in EPOCHS]
            best = scores[model.best_epoch - 1] if model.best_epoch and scores else None
            cells = [words.NOTHING if one is None else words.ratio(one) for one in (*shown, best)]
            control.append(_control(scheme.title, name, what.models[name, scheme.learns]))
            counts = [words.count(of(model)) for of in COUNTS]
            rows.append([scheme.title, name, *cells, *counts])
    headers = ["scheme", "workload", *(f"epoch {at}" for at in EPOCHS), "best"]
    headers += ["best epoch", "epochs", "updates"]
    beside = "on the later part: the network, and boosted trees that see the same features"
    controls = plain("", beside, ["scheme", "workload", *CONTROL], control, 2, "control")
    caption = "hit ratio of the last fifth of what trains, own labels fed back, by epoch"
    series = Series("model", distinct(points, "model"), "model")
    tips = [Tip("model", "model"), Tip("epoch", "epoch"), Tip("hit ratio", "hits", "ratio")]
    x, y = alt.X("epoch:Q").title("epoch"), alt.Y("hits:Q").title("hit ratio")
    panel = marks.lines(points, series, x, y, tips, height=PANEL_HEIGHT + 40)
    chart = Figure(f"{figure.name}-curve", "Learning", caption, Plot([panel], [series]))
    return [plain(title, caption, headers, rows, 2), chart, controls]


def _control(title: str, name: str, found: Imitator) -> list[str]:
    """Return a row: how often each learner says what the oracle does, and what its labels hit.

    A model that was kept before there were trees has none.
    """
    trees, cells = found.report.control, []
    if trees is None:
        return [title, name, *[words.NOTHING] * len(CONTROL)]
    for _, of in LABELS:
        shares = (of(found.majority), of(found.agreement(own=True)), of(trees))
        cells += [words.percent(one) for one in shares]
    hits = (found.model.hits.own.later, trees.hits, found.report.perfect_later)
    return [title, name, *cells, *(words.ratio(one) for one in hits)]


def _with_mean(values: Sequence[float]) -> list[str]:
    return [words.ratio(one) for one in (*values, sum(values) / len(values))]


def _shares(values: Sequence[float]) -> list[str]:
    return [words.percent(one) for one in (*values, sum(values) / len(values))]


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
            return [*ceilings(what, figure, _title(figure)), gains(what, figure)]
        case "networks":
            return [*networks(what, figure, _title(figure))]
        case "in-sample":
            return [*in_sample(what, figure, _title(figure))]
        case "learning":
            return learning(what, figure, _title(figure))
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
    named = [(title, "", title) for title in figure.beside if title in values]
    rows = [
        [own, label, said, *_quotients(values[own], values[other])]
        for own in ours
        for label, said, other in [*named, (BEST_OF, best, best)]
        if own != other
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
    """Return how often models say what the oracle does, beside always saying the commonest.

    A model that sees no labels is told none.
    """
    rows = []
    for scheme in figure.schemes:
        for name in figure.workloads:
            model = what.models[name, scheme.learns]
            cells = [scheme.title, name]
            sees = what.feedback(scheme.learns) != NO_FEEDBACK
            for _, of in LABELS:
                cells.append(
                    words.percent(of(model.agreement(own=False))) if sees else words.NOTHING
                )
                said = (model.agreement(own=True), model.majority)
                cells += [words.percent(of(one)) for one in said]
            rows.append([*cells, _gain(model)])
        of_scheme = [row for row in rows if row[0] == scheme.title]
        rows.append([scheme.title, "mean", *_column_means(of_scheme)])
    each = ("told the oracle's labels", AS_IT_RUNS, "the commonest")
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
    return [*(words.NOTHING if one is None else words.percent(one) for one in shares), last]


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
    found: list[Table | Figure] = [
        _tenths(figure, workload, windows),
        Figure(name, f"{workload} over time", caption, chart),
    ]
    change_ns = what.change_ns(workload)
    return found if change_ns is None else [*found, _around(figure, workload, windows, change_ns)]


def _around(
    figure: CachingFigure,
    workload: str,
    windows: Mapping[str, Sequence[Window]],
    change_ns: int,
) -> Table:
    """Return mean hit ratios of the windows before and after a change, and quotients after it.

    Quotients are by each scheme that `beside` of the spec names.
    """
    parts = [
        {title: mean_hits(own, first, last) for title, own in windows.items()}
        for first, last in ((0, change_ns), (change_ns, None))
    ]
    rows = []
    for title in windows:
        cells = [words.NOTHING if one[title] is None else words.ratio(one[title]) for one in parts]
        own = parts[1][title]
        for other in figure.beside:
            base = parts[1][other]
            cells.append(words.NOTHING if own is None or not base else words.times(own, base))
        rows.append([title, *cells])
    headers = ["scheme", "before", "after", *(f"after, by {one}" for one in figure.beside)]
    title = f"{workload}: mean hit ratio of the windows before and after the change"
    return plain("", title, headers, rows, 1, "change")


def mean_hits(own: Sequence[Window], first_ns: int, last_ns: int | None) -> float | None:
    """Return the mean hit ratio of windows that end after `first_ns`, up to `last_ns`."""
    inside = [
        one.hit_ratio
        for one in own
        if first_ns < one.time_ns and (last_ns is None or one.time_ns <= last_ns)
    ]
    return sum(inside) / len(inside) if inside else None


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
