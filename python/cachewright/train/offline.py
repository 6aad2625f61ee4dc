"""Training away from the drive: the earlier part of a trace makes a model file.

For: `train_shiro` and `Trained`. Must never know: how anyone trains. The later part and other
traces only judge: no write that trained is counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native
from cachewright.spec import (
    PathLike,
    Settings,
    SpecLike,
    Stack,
    TraceOptions,
    is_stack_path,
    load,
    of_trace,
    pairs,
)
from cachewright.train import checks
from cachewright.train.by_name import NATIVE, hand_out
from cachewright.train.window import Trainer

if TYPE_CHECKING:
    from cachewright.types import Progress

ANY_CAPACITY = "100%wss"


@dataclass(frozen=True)
class Trained:
    """A model file and how well it does.

    `document` says what was trained; `measures` are accuracy and so on by name, the later part of
    the trace first.
    """

    model: bytes
    document: dict[str, Any]

    @property
    def threshold(self) -> int:
        """Lifetimes up to this, in page writes, are short."""
        return int(self.document["threshold"])

    @property
    def measures(self) -> list[tuple[str, dict[str, float] | None]]:
        """Names with predictions, accuracy, precision, recall, f1 and majority (None of none)."""
        later = (f"{self.document['name']}, later part", self.document["held_out"])
        return [later, *((one["name"], one["measures"]) for one in self.document["judged"])]


def train_shiro(
    spec: SpecLike,
    out: PathLike | None = None,
    *,
    share: float = 0.7,
    separation: str = "shiro",
    trainer: str | Trainer = NATIVE,
    judge: Sequence[SpecLike | tuple[PathLike, TraceOptions]] = (),
    page: str = "4KiB",
    settings: Settings | None = None,
    trace: TraceOptions | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train on the first `share` of a trace's page writes and judge on the rest.

    `spec` is a stack, or the path of a trace (then `trace` says how to read it). What the windows
    of that part teach, as on a drive as large as what the trace writes, is put together and learned
    to convergence; `separation` may be an inline table with settings (`{name = "shiro",
    window_share = 0.1}`). `trainer` is `native`, `jax` or a callable, which is called once. `judge`
    are other stacks or traces, judged whole. With `out` the model file is written. Errors:
    `SpecError`, `TraceError`, `RunError`.
    """
    checks.model_file(out, "")
    stack = _stack(spec, trace, page)
    others = [
        _stack(one[0], one[1], page) if isinstance(one, tuple) else _stack(one, trace, page)
        for one in judge
    ]
    model, text = _native.train(
        stack.text,
        stack.origin,
        pairs(settings),
        separation=separation,
        page=page,
        share=share,
        trainer=hand_out(trainer),
        judge=[(other.text, other.origin) for other in others],
        progress=progress,
    )
    if out is not None:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_bytes(model)
    return Trained(model, json.loads(text))


def _stack(spec: SpecLike, trace: TraceOptions | None, page: str) -> Stack:
    if isinstance(spec, Mapping) or is_stack_path(spec):
        return load(spec)
    return of_trace(spec, trace or TraceOptions(), {"capacity": ANY_CAPACITY, "block": page})
