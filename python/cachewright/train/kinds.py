"""Models of characterizers: which kind of workload a window of requests is of.

For: `train_kinds`. Must never know: what a characterizer sees of a request, how networks learn.
Source: Ebrahimi et al., RC-RNN, sections 3.2 and 5.2.1: one LSTM layer of 50 units over windows of
100 requests, softmax. How the methods it compares with feed a network is not given: here the mean
of what they see in a window (a histogram) goes to a dense layer of as many units; `network` may ask
for the other. The first part of each volume trains, the end of that part says when to stop, and the
rest judges; windows never overlap. Adam unless asked for RMSprop (the paper's, section 5.1), cross
entropy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cachewright import _native, words
from cachewright._native import SpecError
from cachewright.documents import values
from cachewright.traces import TraceLike, opened
from cachewright.train import checks, confusion
from cachewright.train.judged import inference_ns
from cachewright.train.lesson import Learned, Lesson, learn_network
from cachewright.train.model_file import Normalisation, described
from cachewright.train.networks import (
    ADAM,
    LSTM,
    MLP,
    RMSPROP,
    SHARES,
    Examples,
    Fitting,
    Network,
)
from cachewright.train.reports import JudgedVolume, KindsReport, KindWindows, WatchedAccuracy
from cachewright.train.store import FLOAT_SUFFIX, SUFFIX, KindsTrainings, add
from cachewright.types import PathLike

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

HEAD = "kind"
RECURRENT = "rc-rnn"
"""The characterizer whose windows are read request by request unless another network is asked."""

ADDRESS = "address"

WATCHED = 200
"""Windows of a volume at most by which the curve of evaluation is drawn."""

VALIDATION = 0.2
"""Part of what trains, at its end, that says when to stop."""

Traces = Mapping[str, "TraceLike | Sequence[TraceLike]"]


@dataclass(frozen=True)
class KindsTraining:
    """How a model of a characterizer is trained."""

    by: str = RECURRENT
    """The characterizer."""

    network: str | None = None
    """lstm reads a window request by request, mlp sees its mean; lstm for rc-rnn, else mlp."""

    units: int = 50
    window: int = 100
    """Requests of a window."""

    without: tuple[str, ...] = (ADDRESS,)
    """Features that the model does not see, where the characterizer has them."""

    share: float = 0.7
    """The part of each volume's requests that trains; the rest judges."""

    most: int = 1500
    """Windows of a kind that train, at most: as many as that spread over its volumes."""

    seed: int = 1
    epochs: int = 60
    patience: int = 8
    batch: int = 64
    optimiser: str = ADAM
    """adam, or rmsprop (the paper's, at a rate of 0.001)."""

    rate: float = 3e-3

    def check(self) -> None:
        """Check what no other part checks. Errors: `SpecError`."""
        if self.network not in (None, LSTM, MLP):
            raise SpecError(f"`network`: found `{self.network}`, expected {LSTM} or {MLP}")
        if self.optimiser not in (ADAM, RMSPROP):
            raise SpecError(f"`optimiser`: found `{self.optimiser}`, expected {ADAM} or {RMSPROP}")
        checks.part("share", self.share)
        checks.counts(
            units=self.units,
            window=self.window,
            most=self.most,
            epochs=self.epochs,
            patience=self.patience,
            batch=self.batch,
        )

    def kind_of_network(self) -> str:
        """Return lstm or mlp."""
        return self.network or (LSTM if self.by == RECURRENT else MLP)

    def used(self, names: Sequence[str]) -> list[bool]:
        """Return per feature whether the model sees it. Errors: `SpecError` for an unknown one."""
        for name in self.without:
            if name not in names and name != ADDRESS:
                expected = ", ".join(names)
                raise SpecError(f"`without`: found `{name}`, expected one of {expected}")
        used = [name not in self.without for name in names]
        if not any(used):
            raise SpecError("`without`: found every feature, expected one to be left")
        return used


@dataclass(frozen=True)
class Volume:
    """What a characterizer sees of one volume, in windows [window, request, feature]."""

    kind: int
    name: str
    windows: NDArray[np.float32]
    ends_ns: NDArray[np.uint64]
    """When the last request of each window came."""


def seen(
    traces: Traces,
    by: str,
    window: int,
    kinds: Sequence[str],
    progress: Progress | None = None,
) -> list[Volume]:
    """Return the windows of every volume that has at least one.

    Errors: `SpecError` for a kind that is not among `kinds`, a trace without a window.
    """
    found = []
    for kind, named in traces.items():
        if kind not in kinds:
            raise SpecError(f"found kind `{kind}`, expected one of {', '.join(kinds)}")
        for trace in named if isinstance(named, list | tuple) else [named]:
            source = opened(cast("TraceLike", trace))
            volumes = _native.characterizer_rows(
                source.path,
                source.how.format,
                source.how.on_bad_record,
                dict(source.how.options),
                volume=source.how.volume,
                by=by,
                progress=progress,
            )
            name = Path(source.name).name
            own = []
            for volume, time_ns, rows in volumes:
                count = len(rows) // window
                if count:
                    cut = rows[: count * window].reshape(count, window, rows.shape[1])
                    ends = time_ns[window - 1 : count * window : window]
                    label = f"{name}/{volume}" if len(volumes) > 1 else name
                    own.append(Volume(kinds.index(kind), label, cut, ends))
            if not own:
                raise SpecError(
                    f"{source.name}: found no volume of {window} reads and writes, expected one"
                )
            found += own
    return found


def train_kinds(
    traces: Traces,
    out: PathLike | None = None,
    how: KindsTraining | None = None,
    *,
    judge: Traces | None = None,
    progress: Progress | None = None,
) -> KindsTrainings:
    """Train a model that tells the kinds of these traces apart; judge it on their later parts.

    `traces` are traces by kind, `judge` others that only judge, whole. With `out` the model file is
    written, the one in f32 and a report beside it. Errors: `SpecError`, `TraceError`, `RunError`.
    """
    how = how or KindsTraining()
    kinds = list(traces)
    _check_kinds(kinds)
    how.check()
    checks.model_file(out)
    volumes = seen(traces, how.by, how.window, kinds, progress)
    others = seen(judge or {}, how.by, how.window, kinds, progress)
    trained = train_on(volumes, others, kinds, how, progress)
    if out is not None:
        path = Path(out)
        path.parent.mkdir(parents=True, exist_ok=True)
        (place,) = (name for name in trained.files if not name.endswith(FLOAT_SUFFIX))
        files = {
            name.replace(place.removesuffix(SUFFIX), path.stem): content
            for name, content in trained.files.items()
        }
        report = KindsReport(**values(trained.report), file=path.name)
        trained = KindsTrainings(files, report)
        trained.write(path.parent, f"{path.stem}.json")
    return trained


def train_on(
    volumes: Sequence[Volume],
    others: Sequence[Volume],
    kinds: Sequence[str],
    how: KindsTraining,
    progress: Progress | None = None,
) -> KindsTrainings:
    """Train and judge on windows that are there already."""
    names = _native.characterizer_features(how.by)
    course = _Course.of(volumes, kinds, names, how)
    network = Network(how.kind_of_network(), (how.units,), HEAD, SHARES)
    fitting = Fitting(how.epochs, how.patience, how.batch, how.rate, how.seed, how.optimiser)
    note = (f"training {how.by}", progress) if progress else None
    learned = learn_network(course.lesson, network, fitting, None, note)
    judged = [
        course.judge(learned, volume, volume.windows[begin:], "later part")
        for volume, begin in zip(volumes, course.begins, strict=True)
    ]
    judged += [course.judge(learned, volume, volume.windows, "whole") for volume in others]
    later, count = judged[: len(volumes)], len(kinds)
    report = KindsReport(
        scheme=how.by,
        network=network.kind,
        kinds=tuple(kinds),
        settings={**asdict(how), "without": list(how.without)},
        windows=course.counts(),
        bytes=len(learned.file),
        epochs=learned.epochs,
        best_epoch=learned.best_epoch,
        curve=tuple(
            WatchedAccuracy(labelling=taught, evaluation=unseen) for taught, unseen in learned.curve
        ),
        inference_ns=inference_ns(learned.file, course.lesson.validation.inputs),
        judged=tuple(judged),
        windows_judged=confusion.summary([(one.kind, one.answers) for one in later], count),
        f32=confusion.summary([(one.kind, one.answers_f32) for one in later], count),
        of_ten=confusion.summary([(one.kind, one.answers_of_ten) for one in later], count),
    )
    files: dict[str, bytes] = {}
    add(files, f"{how.by}{SUFFIX}", learned)
    return KindsTrainings(files, report)


def answers(content: bytes, windows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a model's probabilities per window of rows, computed as they are when it runs."""
    import numpy as np

    model = _native.Model(content)
    rows = windows if described(content).kind == LSTM else _means(windows)
    outputs = model.outputs(np.ascontiguousarray(rows)).astype(np.float64)
    raised = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float32)


@dataclass(frozen=True)
class _Course:
    """The windows of all volumes: what they teach, and from where on they judge."""

    kinds: Sequence[str]
    lesson: Lesson
    begins: Sequence[int]
    """Per volume: its first window that judges."""

    learned_windows: Sequence[tuple[int, int]]
    """Per volume: windows that train and validate."""

    volumes: Sequence[Volume]

    @staticmethod
    def of(
        volumes: Sequence[Volume], kinds: Sequence[str], names: Sequence[str], how: KindsTraining
    ) -> _Course:
        import numpy as np

        begins, chosen = [], []
        for volume in volumes:
            end = int(len(volume.windows) * how.share)
            middle = int(end * (1 - VALIDATION))
            if min(middle, end - middle, len(volume.windows) - end) < 1:
                raise SpecError(
                    f"{volume.name}: found {len(volume.windows)} windows of {how.window} requests, "
                    "expected enough to train, to stop by and to judge"
                )
            of_kind = sum(one.kind == volume.kind for one in volumes)
            most = max(how.most // of_kind, 1)
            train = _spread(0, middle, most)
            validation = _spread(middle, end, max(int(most * VALIDATION), 1))
            begins.append(end)
            chosen.append((train, validation))
        dense = how.kind_of_network() == MLP

        def examples(part: Sequence[NDArray[np.int64]]) -> Examples:
            rows = np.concatenate(
                [one.windows[places] for one, places in zip(volumes, part, strict=True)]
            )
            targets = np.concatenate(
                [
                    np.tile(np.eye(len(kinds), dtype=np.float32)[one.kind], (len(places), 1))
                    for one, places in zip(volumes, part, strict=True)
                ]
            )
            return Examples(_means(rows) if dense else rows, targets)

        later = [
            _spread(end, len(volume.windows), WATCHED)
            for volume, end in zip(volumes, begins, strict=True)
        ]
        taught = examples([train for train, _ in chosen])
        used = np.array(how.used(names))
        off = [name for name, on in zip(names, used, strict=True) if not on]
        notes = {
            "characterizer": how.by,
            "kinds": ",".join(kinds),
            "window": str(how.window),
            "traces": ", ".join(volume.name for volume in volumes),
        }
        if off:
            notes["switched_off"] = ", ".join(off)
        rows = taught.inputs.reshape(-1, taught.inputs.shape[2])
        normalisation = Normalisation.of(rows)
        stopping = examples([validation for _, validation in chosen])
        watched = (taught, examples(later))
        lesson = Lesson(names, taught, stopping, normalisation, used, HEAD, notes, watched)
        sizes = [(len(train), len(validation)) for train, validation in chosen]
        return _Course(kinds, lesson, begins, sizes, volumes)

    def judge(
        self, learned: Learned, volume: Volume, windows: NDArray[np.float32], part: str
    ) -> JudgedVolume:
        """Return how often each kind was answered for windows of a volume."""
        shares = answers(learned.file, windows)
        plain = answers(learned.float_file or learned.file, windows)
        count = len(self.kinds)
        tens = confusion.counts(confusion.majorities(shares), count)
        found = confusion.counts(shares.argmax(axis=1), count)
        return JudgedVolume(
            name=volume.name,
            part=part,
            kind=volume.kind,
            windows=len(windows),
            answers=tuple(found),
            answers_f32=tuple(confusion.counts(plain.argmax(axis=1), count)),
            answers_of_ten=tuple(tens),
            accuracy=confusion.row(volume.kind, found),
            accuracy_of_ten=confusion.row(volume.kind, tens),
        )

    def counts(self) -> dict[str, KindWindows]:
        """Return windows that train and validate, per kind."""
        found = {}
        for number, kind in enumerate(self.kinds):
            own = [
                sizes
                for volume, sizes in zip(self.volumes, self.learned_windows, strict=True)
                if volume.kind == number
            ]
            found[kind] = KindWindows(
                train=sum(train for train, _ in own),
                validation=sum(validation for _, validation in own),
            )
        return found


def _means(windows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean row of each window, as a window of one."""
    import numpy as np

    means = windows.mean(axis=1, dtype=np.float64, keepdims=True)
    return np.asarray(means, dtype=np.float32)


def _spread(first: int, end: int, most: int) -> NDArray[np.int64]:
    """Return places from first to end, evenly spread where there are more than `most`."""
    import numpy as np

    if end - first <= most:
        return np.arange(first, end)
    return first + np.arange(most) * (end - first) // most


def _check_kinds(kinds: Sequence[str]) -> None:
    if len(kinds) < 2:
        found = words.counted(len(kinds), "kind")
        raise SpecError(f"found {found}, expected at least 2 to tell apart")
    for kind in kinds:
        if not kind.strip() or "," in kind:
            raise SpecError(f"found kind `{kind}`, expected a name without commas")
