"""Caching models of RC-RNN: from a stack's requests and an oracle's labels to a file per kind.

For: `train_rc_rnn`. Must never know: how an oracle decides, how networks learn. Source: Ebrahimi et
al., RC-RNN (IEEE TETC), section 5.2.2: LSTM of three layers of 256 units, windows of 100 requests,
batches of 32, RMSprop, labels of the request before taken from the oracle. Features of a request
and labels come from the code that runs the model (`_native.caching_lessons`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright.stack import Settings, SpecLike
from cachewright.train import checks
from cachewright.train.caching_course import Course
from cachewright.train.labelled import Lessons, caching_lessons
from cachewright.train.rc_rnn_training import RcRnnTraining
from cachewright.train.store import CachingTrainings, file_name, float_name, report_name
from cachewright.types import PathLike

if TYPE_CHECKING:
    from cachewright.types import Progress


def train_rc_rnn(
    spec: SpecLike | Lessons,
    kind: str,
    out: PathLike | None = None,
    how: RcRnnTraining | None = None,
    *,
    judge: Mapping[str, SpecLike | Lessons] | None = None,
    settings: Settings | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> CachingTrainings:
    """Train the caching model of a kind of workload on the earlier requests; judge on the rest.

    `judge` are other stacks by name to judge on as well, whole. With `out` the files are written
    into that folder: `KIND.safetensors` (with several seeds `seed1/KIND.safetensors` ...), the
    network in f32 beside, `KIND.json`. Errors: `SpecError`, `TraceError`, `RunError`.
    """
    how = how or RcRnnTraining()
    how.check()
    checks.folder(out)

    def lessons(one: SpecLike | Lessons) -> Lessons:
        if isinstance(one, Lessons):
            return one
        return caching_lessons(
            one,
            features=how.features,
            oracle=how.oracle,
            labels=how.labels,
            share=how.share,
            settings=settings,
            threads=threads,
            progress=progress,
        )

    course = Course.of(lessons(spec), how)
    others = {name: lessons(other) for name, other in (judge or {}).items()}
    files: dict[str, bytes] = {}
    models = []
    for seed in range(how.seed, how.seed + how.seeds):
        place = file_name(kind, seed, how.seeds)
        note = (f"training {kind}, seed {seed}", progress) if progress else None
        learned = course.learn(kind, seed, note)
        files[place], files[float_name(place)] = learned.file, learned.float_file
        models.append(course.judge(learned, others, seed, place))
    trainings = CachingTrainings(files, course.report(kind, models))
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        trainings.write(Path(out), report_name(kind))
    return trainings
