"""Caching models of workloads, each trained once and kept below a folder.

For: studies whose policies imitate an oracle. Must never know: figures, how models are trained.
What is kept has a key of its inputs in its name: another trace, stack or way to train makes another
file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native, targets
from cachewright._native import SpecError
from cachewright.documents import load, table
from cachewright.train import (
    KindsTraining,
    RcRnnTraining,
    caching_lessons,
    train_kinds,
    train_rc_rnn,
)
from cachewright.train.control import trees
from cachewright.train.reports import Agreement, CachingModel, CachingReport, Majority

if TYPE_CHECKING:
    from cachewright.train.labelled import Lessons
    from cachewright.types import Progress

PERFECT, FORCED = "perfect.labels", "forced.labels"
CEILING = "ceiling.json"


@dataclass(frozen=True)
class Imitator:
    """A model: its file and the report of its training."""

    path: Path
    report: CachingReport

    @property
    def model(self) -> CachingModel:
        """What is said of the model itself."""
        return self.report.models[0]

    def agreement(self, *, own: bool) -> Agreement:
        """Return how often it says what the oracle does on the later part.

        `own` feeds back its own labels, not the oracle's.
        """
        return self.model.own if own else self.model.forced

    @property
    def majority(self) -> Majority:
        """How often the commonest label of the later part is right."""
        return self.report.majority

    @property
    def forced(self) -> Path:
        """The labels that it gives when it is told the oracle's of the request before."""
        return self.path.parent / FORCED


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What labels are worth: hit ratios on the later part, 0 to 1."""

    # Of an oracle's labels through the queues.
    perfect: float
    # Of the oracle itself.
    oracle: float
    # How often the commonest label is right, as a model's would be judged.
    cached: float
    duration: float


@dataclass(frozen=True)
class Ceiling:
    """An oracle's labels: a file of them and what they are worth."""

    path: Path
    worth: Worth


@dataclass(frozen=True)
class Imitators:
    """Where models are kept; `stack` makes the stack that a workload's model is trained on."""

    folder: Path
    stack: Callable[[str], dict[str, Any]]
    training: RcRnnTraining

    def of(
        self, workload: str, learns: Mapping[str, Any], progress: Progress | None = None
    ) -> Imitator:
        """Return the model of a workload, trained unless it is there.

        `learns` is put over the usual training.
        """
        how, stack = self._how(learns), self.stack(workload)
        folder = self.folder / f"{workload}-{_key(stack, how)}"
        report = folder / f"{workload}.json"
        if not report.is_file():
            try:
                lessons = _lessons(stack, how, progress)
                found = train_rc_rnn(lessons, workload, None, how, threads=1, progress=progress)
            except SpecError as error:
                # One of several traces is too short to train on: which one?
                name = Path(stack["tenant"][0]["trace"]).name
                raise SpecError(f"{workload}: {name}: {error}") from None
            found = found.with_control(trees(lessons, how))
            content = found.files[found.report.models[0].file]
            labels = _native.caching_labels(content, lessons.rows, False)
            folder.mkdir(parents=True, exist_ok=True)
            targets.write_whole(folder / FORCED, _native.caching_table(labels))
            found.write(folder, report.name)
        said = load(CachingReport, json.loads(report.read_text(encoding="utf-8")), str(report))
        return Imitator((folder / said.models[0].file).resolve(), said)

    def ceiling(
        self, workload: str, learns: Mapping[str, Any], progress: Progress | None = None
    ) -> Ceiling:
        """Return what the labels themselves are worth that such a model would imitate."""
        how, stack = self._how(learns), self.stack(workload)
        about = (how.oracle, how.labels, how.requeue_hits, "commonest")
        folder = self.folder / f"{workload}-labels-{hashed([_stack_key(stack), about])}"
        report = folder / CEILING
        if not report.is_file():
            # Labels of the warm-up know all, too: else the cache begins with the wrong blocks.
            cut, whole = _lessons(stack, how, progress), _lessons(stack, how, progress, whole=True)
            labels, count = whole.said(), len(whole.cached)
            accesses, hits = cut.oracle
            commonest = cut.part(cut.split, count).majority()
            found = Worth(
                perfect=whole.hit_ratio(labels, cut.split, count, how.requeue_hits) or 0.0,
                oracle=hits / max(accesses, 1),
                cached=commonest.cached,
                duration=commonest.duration,
            )
            folder.mkdir(parents=True, exist_ok=True)
            targets.write_whole(folder / PERFECT, _native.caching_table(labels))
            targets.write_whole(report, json.dumps(table(found)) + "\n")
        worth = load(Worth, json.loads(report.read_text(encoding="utf-8")), str(report))
        return Ceiling((folder / PERFECT).resolve(), worth)

    def _how(self, learns: Mapping[str, Any]) -> RcRnnTraining:
        return replace(self.training, **learns)

    def judge(self, traces: Mapping[str, Path], about: Mapping[str, Any]) -> Path:
        """Return the model that tells these traces apart, trained on as much of them."""
        keys = {key: value for key, value in about.items() if key != "every"}
        how = KindsTraining(**keys, share=self.training.share)
        names = "-".join(traces)
        inputs = {
            name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in traces.items()
        }
        folder = self.folder / f"kinds-{names}-{hashed([_native.__version__, inputs, asdict(how)])}"
        path = folder / "kinds.safetensors"
        if not path.is_file():
            train_kinds(dict(traces), path, how)
        return path.resolve()


def _lessons(
    stack: dict[str, Any],
    how: RcRnnTraining,
    progress: Progress | None,
    *,
    whole: bool = False,
) -> Lessons:
    """Return lessons whose training labels see nothing beyond the warm-up, or all see the whole."""
    until_ns = _native.parse_duration(str(stack["replay"]["warmup"]))
    return caching_lessons(
        stack,
        features=how.features,
        oracle=how.oracle,
        labels=how.labels,
        until_ns=None if whole else until_ns,
        threads=1,
        progress=progress,
    )


def _key(stack: Mapping[str, Any], how: RcRnnTraining) -> str:
    """Return a hash of all that a model is made of."""
    return hashed([_stack_key(stack), asdict(how)])


def _stack_key(stack: Mapping[str, Any]) -> str:
    """Return a hash of a stack and its traces."""
    traces = [
        hashlib.sha256(Path(one["trace"]).read_bytes()).hexdigest() for one in stack["tenant"]
    ]
    plain = {key: value for key, value in stack.items() if key != "tenant"}
    tenants = [{**one, "trace": trace} for one, trace in zip(stack["tenant"], traces, strict=True)]
    return hashed([_native.__version__, plain, tenants])


def hashed(value: Any) -> str:
    """Return a short name that differs for different values."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
