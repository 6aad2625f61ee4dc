"""The requests from which a caching model learns, and those on which it is judged.

For: `Course`: requests divided into what trains, what says when to stop and what judges; a network
learned from the first two, and judged on the last. Must never know: where requests come from, files
and folders, how an oracle decides. Labels that train see nothing beyond the part that trains. The
last fifth of that part says when to stop; the hits of the model's own labels there are kept for
every epoch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cachewright import _native
from cachewright._native import SpecError
from cachewright.train import labelling, networks
from cachewright.train.labelled import Lessons
from cachewright.train.labelling import FED_BACK, HEADS, Schedule, Steps
from cachewright.train.model_file import Normalisation, described, model_file
from cachewright.train.networks import LSTM, Weights
from cachewright.train.rc_rnn_training import KEEPS, RcRnnTraining
from cachewright.train.reports import (
    CachingModel,
    CachingReport,
    Elsewhere,
    Fed,
    FedHits,
    HitRatios,
    Requests,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

VALIDATION = 0.2
"""Part of what trains, at its end, that says when to stop."""

TEST_STEPS = 16
TIMED = 5000
"""Requests at most by which an answer is timed."""

RAMP = 10
"""Epochs over which a schedule goes from the oracle's labels to the model's own."""

CALIBRATION = 8, 1000
"""Sequences and steps from which int8 scales are taken: states grow beyond a window."""


@dataclass(frozen=True)
class _Learned:
    file: bytes
    float_file: bytes
    fitted: labelling.Fitted
    seconds: float


@dataclass(frozen=True)
class Course:
    """The requests that train, those that say when to stop, those that judge."""

    lessons: Lessons
    how: RcRnnTraining
    begin: int
    middle: int
    end: int
    normalisation: Normalisation

    @staticmethod
    def of(lessons: Lessons, how: RcRnnTraining) -> Course:
        """Divide the requests. Errors: `SpecError` where a part has too few."""
        end = lessons.split or int(len(lessons.cached) * how.share)
        middle = int(end * (1 - VALIDATION))
        least = how.window * how.batch
        # An oracle whose cache still fills lets in what it would not later.
        begin = lessons.filled if middle - lessons.filled >= max(least, middle // 2) else 0
        for what, found in (("training", middle), ("validation", end - middle)):
            if found < least:
                raise SpecError(
                    f"found {found} requests for {what}, expected at least {least}, a window of "
                    f"{how.window} in each of {how.batch} lanes; a longer trace, a shorter window "
                    "or a smaller batch help"
                )
        if end == len(lessons.cached):
            raise SpecError("found no requests to judge on, expected some; a smaller share helps")
        normalisation = _normalisation(lessons.names, lessons.rows[:middle])
        return Course(lessons, how, begin, middle, end, normalisation)

    def steps(self, first: int, last: int) -> Steps:
        """Return the requests from `first` up to `last` as a network learns them."""
        part = self.lessons.part(first, last)
        inputs = self.normalisation.apply(part.rows)
        if self.how.feedback == "none":
            inputs[:, -FED_BACK:] = 0
        return Steps(inputs, part.cached, part.duration)

    def learn(self, kind: str, seed: int, note: tuple[str, Progress] | None) -> _Learned:
        """Train one network. Errors: `RunError` when cancelled."""
        import numpy as np

        how, versions = self.how, networks.need()
        scheduled = how.feedback == "scheduled"
        schedule = Schedule(
            how.epochs,
            how.patience,
            how.updates,
            how.rate,
            how.balance,
            1.0 if scheduled else how.own,
            seed,
            RAMP if scheduled else 0,
            KEEPS[how.stop],
        )
        train, validation = self.steps(self.begin, self.middle), self.steps(self.middle, self.end)
        notes = {**self.notes(kind), "trained_by": versions, "seed": str(seed)}

        def hits(weights: Weights) -> float:
            said = _native.caching_labels(self.files(weights, notes)[0], rows, True)
            return float(
                self.lessons.hit_ratio(said, self.middle, self.end, how.requeue_hits) or 0.0
            )

        rows = np.ascontiguousarray(self.lessons.rows[: self.end])
        score = hits if self.lessons.blocks is not None else None
        start = time.process_time()
        fitted = labelling.fit(how.shape(), train, validation, schedule, note, score)
        seconds = time.process_time() - start
        file, float_file = self.files(fitted.weights, notes)
        return _Learned(file, float_file, fitted, seconds)

    def files(self, weights: Weights, notes: Mapping[str, str]) -> tuple[bytes, bytes]:
        """Return a network as files, in int8 and in f32."""
        import numpy as np

        raw, weights = self.lessons.rows, dict(weights)
        if self.how.feedback == "none":
            from_inputs = weights["weight_ih_l0"].copy()
            from_inputs[:, -FED_BACK:] = 0
            weights["weight_ih_l0"] = from_inputs
        float_file = model_file(
            weights,
            self.lessons.names,
            raw[:TEST_STEPS],
            labelling.says(weights, self.normalisation.apply(raw[:TEST_STEPS])),
            dict(notes),
            kind=LSTM,
            heads=list(HEADS),
            normalisation=self.normalisation,
        )
        count, length = CALIBRATION
        length = min(length, self.middle)
        starts = np.linspace(0, self.middle - length, count).astype(np.int64)
        sequences = np.stack([raw[first : first + length] for first in starts])
        return _native.Model(float_file).quantised(sequences), float_file

    def notes(self, kind: str) -> dict[str, str]:
        """Return what a model's file says of its training."""
        how = self.how
        return {
            "kind": kind,
            "oracle": how.oracle,
            "labels": how.labels,
            "capacity_blocks": str(self.lessons.capacity_blocks),
            "window": str(how.window),
        }

    def report(self, kind: str, models: Sequence[CachingModel]) -> CachingReport:
        """Return what all seeds share, and the models."""
        test = self.lessons.part(self.end, len(self.lessons.cached))
        perfect = self.hit_ratios(self.lessons.said())
        return CachingReport(
            scheme="rc-rnn",
            kind=kind,
            settings=asdict(self.how),
            capacity_blocks=self.lessons.capacity_blocks,
            requests=Requests(
                warm=self.begin,
                train=self.middle - self.begin,
                validation=self.end - self.middle,
                test=len(test.cached),
            ),
            test_begins_ns=int(test.time_ns[0]),
            oracle_caches=float(test.cached.mean()),
            majority=test.majority(),
            majority_in_sample=self.lessons.part(self.begin, self.middle).majority(),
            perfect=perfect.in_sample,
            perfect_later=perfect.later,
            models=tuple(models),
        )

    def hit_ratios(self, labels: NDArray[np.uint8]) -> HitRatios:
        """Return the hit ratios of labels on what trained and on what was never seen."""
        count = len(self.lessons.cached)
        return HitRatios(
            in_sample=self.lessons.hit_ratio(
                labels, self.begin, self.middle, self.how.requeue_hits
            ),
            later=self.lessons.hit_ratio(labels, self.end, count, self.how.requeue_hits),
        )

    def judge(
        self, learned: _Learned, others: Mapping[str, Lessons], seed: int, file: str
    ) -> CachingModel:
        """Return agreement with the oracle on what was never seen, size and time of a step."""
        import numpy as np

        test = self.lessons.part(self.end, len(self.lessons.cached))
        sample = self.lessons.part(self.begin, self.middle)
        every = np.ascontiguousarray(self.lessons.rows)

        def hits(own: bool) -> HitRatios:
            return self.hit_ratios(_native.caching_labels(learned.file, every, own))

        return CachingModel(
            seed=seed,
            file=file,
            bytes=len(learned.file),
            weight_bytes=described(learned.file).weight_bytes,
            epochs=learned.fitted.epochs,
            best_epoch=learned.fitted.best_epoch,
            updates=learned.fitted.updates,
            cpu_seconds=learned.seconds,
            forced=test.agreement(learned.file, own=False),
            own=test.agreement(learned.file, own=True),
            in_sample=Fed(
                forced=sample.agreement(learned.file, own=False),
                own=sample.agreement(learned.file, own=True),
            ),
            hits=FedHits(forced=hits(own=False), own=hits(own=True)),
            curve=tuple(learned.fitted.curve),
            own_f32=test.agreement(learned.float_file, own=True),
            others={
                name: Elsewhere(
                    majority=other.majority(), own=other.agreement(learned.file, own=True)
                )
                for name, other in others.items()
            },
            step_ns=_step_ns(learned.file, np.ascontiguousarray(test.rows[:TIMED])),
        )


def _step_ns(content: bytes, rows: NDArray[np.float32]) -> float:
    """Return the time of one answer."""
    start = time.perf_counter_ns()
    _native.caching_labels(content, rows, True)
    return (time.perf_counter_ns() - start) / len(rows)


def _normalisation(names: Sequence[str], rows: NDArray[np.float32]) -> Normalisation:
    """Return mean and deviation of what trains; an address is spread over 0 to 1.

    Labels fed back stay as they are; a feature that never moved is divided by its size.
    """
    import numpy as np

    mean = rows.mean(axis=0, dtype=np.float64)
    deviation = rows.std(axis=0, dtype=np.float64)
    for at, name in enumerate(names):
        if name == "address":
            mean[at], deviation[at] = rows[:, at].min(), np.ptp(rows[:, at])
    mean[-FED_BACK:], deviation[-FED_BACK:] = 0, 1
    size = np.maximum(np.abs(mean), 1.0)
    deviation = np.where(deviation > 1e-6 * size, deviation, size)
    return Normalisation(mean.astype(np.float32), deviation.astype(np.float32))
