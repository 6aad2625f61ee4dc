"""Training away from the drive: the earlier part of a trace makes a model file.

For: `train_shiro` and `Trained`. Must never know: how anyone trains. The later part and other
traces only judge: no write that trained is counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cachewright import _native, targets
from cachewright.answers import Prediction, TrainAnswer
from cachewright.documents import load, table
from cachewright.stack import Settings, Stack, StackOrTrace, pairs, stack_of
from cachewright.train import checks
from cachewright.train.by_name import NATIVE, hand_out
from cachewright.train.window import Trainer
from cachewright.types import PathLike

if TYPE_CHECKING:
    from cachewright.types import Progress

ANY_CAPACITY = "100%wss"


@dataclass(frozen=True)
class Trained:
    """A model file and how well it does.

    `answer` says what was trained, by attributes (docs/result.md); `measures` are accuracy and so
    on by name, the later part of the trace first.
    """

    model: bytes
    answer: TrainAnswer

    @cached_property
    def document(self) -> dict[str, Any]:
        """What was trained as JSON values."""
        return table(self.answer)

    @property
    def threshold(self) -> int:
        """Lifetimes up to this, in page writes, are short."""
        return self.answer.threshold

    @property
    def measures(self) -> list[tuple[str, Prediction | None]]:
        """Names with predictions, accuracy, precision, recall, f1 and majority (None of none)."""
        later = (f"{self.answer.name}, later part", self.answer.held_out)
        return [later, *((one.name, one.measures) for one in self.answer.judged)]


def train_shiro(
    spec: StackOrTrace,
    out: PathLike | None = None,
    *,
    share: float = 0.7,
    separation: str = "shiro",
    trainer: str | Trainer = NATIVE,
    judge: Sequence[StackOrTrace] = (),
    page: str = "4KiB",
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train on the first `share` of a trace's page writes and judge on the rest.

    `spec` is a stack, or a trace (a path, a frame, a `Trace`). What the windows
    of that part teach, as on a drive as large as what the trace writes, is put together and learned
    to convergence; `separation` may be an inline table with settings (`{name = "shiro",
    window_share = 0.1}`). `trainer` is `native`, `jax` or a callable, which is called once. `judge`
    are other stacks or traces, judged whole. With `out` the model file is written. Errors:
    `SpecError`, `TraceError`, `RunError`.
    """
    checks.model_file(out, "")
    stack = _stack(spec, page)
    others = [_stack(one, page) for one in judge]
    model, text = _native.train(
        stack.text,
        stack.origin,
        pairs(settings),
        {"separation": separation, "page": page, "share": f"{100 * share:.12g}%"},
        trainer=hand_out(trainer),
        judge=[(other.text, other.origin) for other in others],
        progress=progress,
    )
    if out is not None:
        targets.write_whole(out, model)
    return Trained(model, load(TrainAnswer, json.loads(text)))


def _stack(spec: StackOrTrace, page: str) -> Stack:
    return stack_of(spec, {"capacity": ANY_CAPACITY, "block": page})
