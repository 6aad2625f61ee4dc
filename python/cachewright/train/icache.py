"""Models of icache: from a stack's replay to a file per tenant that says MBP and OAP.

For: `train_icache`. Must never know: how a replay is timed, how networks learn. Source: Li, Sun,
Qin, iCache (TCAD 2025), section IV-E: LSTM of one layer and 128 units, MSE, Adam; an MLP and a
random forest to compare with (table III). Windows overlap (a stride of a twentieth of an interval,
ours) so that short traces teach enough; windows of training, validation and test never do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright import _native, words
from cachewright._native import SpecError
from cachewright.documents import values
from cachewright.stack import Settings, SpecLike
from cachewright.train import checks, cutting
from cachewright.train.cutting import FEATURES, PARTS, Cutting, Split
from cachewright.train.demand import LEAST_GAIN, Reading, Segments, TenantSegments
from cachewright.train.judged import errors, report
from cachewright.train.lesson import Learned, Lesson, learn_forest, learn_network
from cachewright.train.model_file import FOREST, Normalisation
from cachewright.train.networks import LSTM, MLP, Examples, Fitting, Network
from cachewright.train.reports import (
    Errors,
    ModelReport,
    Naive,
    PartitionerReport,
    TenantReport,
    Windows,
)
from cachewright.train.store import PartitionerTrainings, add, file_name, float_name, update_name
from cachewright.types import PathLike

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

HEAD = "points"
HIDDEN = {LSTM: (128,), MLP: (128, 64)}
MODELS = (LSTM, MLP, FOREST)
GAINS = ("before", "largest", "whole")
WINDOWS_PER_INTERVAL = 20


@dataclass(frozen=True)
class ICacheTraining:
    """How models of icache are trained; lengths in steps."""

    model: str = LSTM
    granules: int = 10
    steps: int = 180
    """Steps of an interval."""

    window: int = 180
    """Steps in a window that a model reads."""

    stride: int | None = None
    """Steps from window to window; a twentieth of an interval when left out."""

    share: float = 0.6
    """Part of the replay that trains; the rest judges."""

    from_off: bool = False
    """Labels begin with the data cache switched off, not with one granule."""

    least_gain: float = LEAST_GAIN
    """L: the gain below which a granule is not worth having, as a share of `gain_of`."""

    gain_of: str = "before"
    """The response `before` the step, the `largest` gain of a step or the `whole` gain."""

    retrain_every: int = 0
    """Intervals after which each network is trained on, with all seen until then; 0 is never.

    Such an update begins with the weights and the normalisation of the model before it.
    """

    features: str = "1111"
    """Which of intensity, write ratio, request bytes and unique ratio the models see."""

    seeds: int = 1
    seed: int = 1
    """The first seed."""

    epochs: int = 60
    patience: int = 8
    batch: int = 64
    rate: float = 1e-3

    def check(self) -> None:
        """Check what no other part checks. Errors: `SpecError`."""
        if self.model not in MODELS:
            raise SpecError(f"`model`: found `{self.model}`, expected {', '.join(MODELS)}")
        if len(self.features) != len(FEATURES) or set(self.features) - {"0", "1"}:
            raise SpecError(
                f"`features`: found `{self.features}`, expected four of 0 and 1 (for "
                f"{', '.join(FEATURES)})"
            )
        if "1" not in self.features:
            raise SpecError("`features`: found `0000`, expected at least one feature")
        checks.part("share", self.share)
        if not 0 <= self.least_gain < 1:
            raise SpecError(f"`least_gain`: found {self.least_gain}, expected 0 to below 1")
        if self.gain_of not in GAINS:
            raise SpecError(f"`gain_of`: found `{self.gain_of}`, expected {', '.join(GAINS)}")
        checks.counts(
            granules=self.granules,
            steps=self.steps,
            window=self.window,
            seeds=self.seeds,
            epochs=self.epochs,
            patience=self.patience,
            batch=self.batch,
        )
        if self.retrain_every < 0:
            raise SpecError(f"`retrain_every`: found {self.retrain_every}, expected 0 or more")
        if self.retrain_every and self.model == FOREST:
            raise SpecError("`retrain_every`: found a forest, expected a network to train on")
        if self.stride is not None:
            checks.counts(stride=self.stride)

    def cutting(self) -> Cutting:
        """Return how a replay becomes windows."""
        stride = self.stride or max(self.steps // WINDOWS_PER_INTERVAL, 1)
        return Cutting(self.steps, self.window, stride, self.share)

    def reading(self) -> Reading:
        """Return how labels are read off responses."""
        return Reading(self.from_off, self.least_gain, self.gain_of)

    def switched_off(self) -> list[str]:
        """Return the features that the models do not see."""
        return [name for name, on in zip(FEATURES, self.features, strict=True) if on == "0"]


def train_icache(
    spec: SpecLike | Segments,
    out: PathLike | None = None,
    how: ICacheTraining | None = None,
    *,
    settings: Settings | None = None,
    begin: PathLike | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> PartitionerTrainings:
    """Train a model per tenant on the earlier part of a timed open-loop stack; judge on the rest.

    With `out` the files are written into that folder: `TENANT.safetensors` (and with several seeds
    `seed1/TENANT.safetensors` ...), networks in f32 beside, `training.json` and `models.toml`.
    `begin` is such a folder: networks go on from its weights. Errors: `SpecError`, `TraceError`,
    `RunError`.
    """
    how = how or ICacheTraining()
    how.check()
    checks.folder(out)
    found = cutting.replayed(spec, settings, how.granules, how.steps, threads, progress)
    files: dict[str, bytes] = {}
    tenants = []
    for tenant in found.tenants:
        course = _Course.of(tenant, found, how)
        models = []
        for seed in range(how.seed, how.seed + how.seeds):
            place = file_name(tenant.name, seed, how.seeds)
            note = (f"training {tenant.name}, seed {seed}", progress) if progress else None
            learned = course.learn(seed, _begin(begin, place, how), note)
            add(files, place, learned)
            updates = []
            every = _updates(tenant, found, how, seed, learned, note)
            for number, update in enumerate(every, 1):
                updates.append(update_name(place, number))
                add(files, updates[-1], update)
            models.append(course.judge(learned, seed, place, updates))
        tenants.append(course.report(models))
    report = PartitionerReport(
        scheme="icache",
        interval_ns=found.interval_ns,
        step_ns=found.step_ns,
        settings=asdict(how),
        tenants=tuple(tenants),
    )
    trainings = PartitionerTrainings(files, report)
    if out is not None:
        trainings.write(Path(out))
        trainings.write_tables(Path(out))
    return trainings


def judged_icache(content: bytes, found: Segments, how: ICacheTraining) -> Errors:
    """Return the errors of a model on the judged part of a workload that did not train it.

    `found` holds that workload alone, cut as `how` says. Errors: `SpecError` for more tenants.
    """
    if len(found.tenants) != 1:
        raise SpecError(f"found {len(found.tenants)} tenants, expected one that judges")
    test = _Course.of(found.tenants[0], found, how).test
    return errors(_native.Model(content).outputs(test.inputs), test.targets)


@dataclass(frozen=True)
class _Course:
    """One tenant's windows: those that train and those that judge."""

    tenant: TenantSegments
    how: ICacheTraining
    split: Split
    lesson: Lesson
    test: Examples
    last: NDArray[np.float32]
    """For each window that judges the label of the interval before."""

    @staticmethod
    def of(
        tenant: TenantSegments, found: Segments, how: ICacheTraining, border: int | None = None
    ) -> _Course:
        """Return the windows of a tenant; of an update, those before the interval `border`."""
        import numpy as np

        until = None if border is None else border * how.steps
        split = how.cutting().split(cutting.span(found), until)
        notes = _notes(tenant, found, how)
        notes |= {} if border is None else {"from_interval": str(border)}

        def label(starts: NDArray[np.int64]) -> NDArray[np.float32]:
            return cutting.labels(tenant, starts, how.steps, how.granules, how.reading())

        def examples(starts: NDArray[np.int64]) -> Examples:
            rows = cutting.inputs(tenant.features, starts, how.window)
            if how.model != LSTM:
                rows = cutting.pooled(rows)[:, None]
            return Examples(rows, label(starts))

        train = examples(split.train)
        used = np.array([on == "1" for on in how.features])
        if how.model == LSTM:
            names, rows = list(FEATURES), tenant.features[: split.learned_steps]
        else:
            names, rows = cutting.pooled_names(), train.inputs[:, 0]
            used = np.tile(used, PARTS)
        lesson = Lesson(
            names,
            train,
            examples(split.validation),
            Normalisation.of(rows),
            used,
            HEAD,
            notes,
        )
        before = np.maximum(split.test - how.steps, 0)
        return _Course(tenant, how, split, lesson, examples(split.test), label(before))

    def learn(self, seed: int, begin: bytes | None, note: tuple[str, Progress] | None) -> Learned:
        how = self.how
        if how.model == FOREST:
            return learn_forest(self.lesson, seed)
        network = Network(how.model, HIDDEN[how.model], HEAD)
        fitting = Fitting(how.epochs, how.patience, how.batch, how.rate, seed)
        return learn_network(self.lesson, network, fitting, begin, note)

    def judge(self, learned: Learned, seed: int, file: str, updates: list[str]) -> ModelReport:
        """Return errors on what was never seen, size and time of a model."""

        def judged(content: bytes, examples: Examples) -> Errors:
            return errors(_native.Model(content).outputs(examples.inputs), examples.targets)

        validation = self.lesson.validation
        found = report(learned, validation, self.test, judged, seed=seed, file=file)
        if not self.how.retrain_every:
            return found
        return ModelReport(**values(found), updates=tuple(updates))

    def report(self, models: list[ModelReport]) -> TenantReport:
        """Return what all seeds share, and the models."""
        import numpy as np

        targets = self.test.targets
        mean = np.tile(self.lesson.train.targets.mean(axis=0), (len(targets), 1))
        return TenantReport(
            name=self.tenant.name,
            windows=Windows(
                train=len(self.split.train),
                validation=len(self.split.validation),
                test=len(self.split.test),
            ),
            naive=Naive(last_label=errors(self.last, targets), mean_label=errors(mean, targets)),
            models=tuple(models),
        )


def _updates(
    tenant: TenantSegments,
    found: Segments,
    how: ICacheTraining,
    seed: int,
    learned: Learned,
    note: tuple[str, Progress] | None,
) -> Iterator[Learned]:
    """Give the models that take over at each border, each begun with the weights before it.

    An update is trained on windows whose labels end before its border, and on nothing later.
    """
    borders = how.cutting().borders(cutting.span(found), how.retrain_every)
    for number, border in enumerate(borders, 1):
        course = _Course.of(tenant, found, how, border)
        own = (f"{note[0]}, update {number}", note[1]) if note else None
        learned = course.learn(seed, learned.float_file, own)
        yield learned


def _notes(tenant: TenantSegments, found: Segments, how: ICacheTraining) -> dict[str, str]:
    notes = {
        "tenant": tenant.name,
        "granules": str(how.granules),
        "window_steps": str(how.window),
        "steps_per_interval": str(how.steps),
        "step_ns": str(found.step_ns),
        "interval_ns": str(found.interval_ns),
        "labels": f"{'off' if how.from_off else 'one granule'}, {how.least_gain} {how.gain_of}",
    }
    off = how.switched_off()
    return {**notes, "switched_off": ", ".join(off)} if off else notes


def _begin(folder: PathLike | None, place: str, how: ICacheTraining) -> bytes | None:
    """Return the f32 file to go on from."""
    if folder is None:
        return None
    if how.model == FOREST:
        raise SpecError("`begin`: found a folder, expected none for a forest (it is grown anew)")
    path = Path(folder) / float_name(place)
    try:
        return path.read_bytes()
    except OSError as error:
        raise SpecError(f"{path}: {words.reason(error)}; expected a model to go on from") from None
