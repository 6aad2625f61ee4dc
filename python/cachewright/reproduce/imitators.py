"""Caching models of workloads, each trained once and kept below a folder.

For: studies whose policies imitate an oracle. Must never know: figures, how anyone trains. What is
kept has a key of its inputs in its name: another trace, stack or way to train makes another file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native
from cachewright.train import (
    KindsTraining,
    RcRnnTraining,
    caching_lessons,
    train_kinds,
    train_rc_rnn,
)

if TYPE_CHECKING:
    from cachewright.train.rc_rnn import Lessons
    from cachewright.types import Progress

# Keys of the table that say something else than how a model learns.
OWN = ("size",)


@dataclass(frozen=True)
class Imitator:
    """A model: its file and the report of its training."""

    path: Path
    report: Mapping[str, Any]

    @property
    def model(self) -> Mapping[str, Any]:
        """What is said of the model itself."""
        found: Mapping[str, Any] = self.report["models"][0]
        return found

    def agreement(self, label: str, *, own: bool) -> float:
        """Return how often it says what the oracle does on the later part.

        `label` is `cached` or `duration`; `own` feeds back its own labels, not the oracle's.
        """
        return float(self.model["own" if own else "forced"][label])

    def majority(self, label: str) -> float:
        """Return how often the commonest label of the later part is right."""
        return float(self.report["majority"][label])


@dataclass(frozen=True)
class Imitators:
    """Where models are kept; `stack` makes the stack that a workload's model is trained on."""

    folder: Path
    stack: Callable[[str], dict[str, Any]]
    training: Mapping[str, Any]

    def of(
        self, workload: str, learns: Mapping[str, Any], progress: Progress | None = None
    ) -> Imitator:
        """Return the model of a workload, trained unless it is there.

        `learns` is put over the usual training.
        """
        keys = {key: value for key, value in self.training.items() if key not in OWN} | dict(learns)
        how = RcRnnTraining(**keys)
        stack = self.stack(workload)
        folder = self.folder / f"{workload}-{_key(stack, how)}"
        report = folder / f"{workload}.json"
        if not report.is_file():
            lessons = _lessons(stack, how, progress)
            how = replace(how, share=_before_warmup(stack, lessons))
            train_rc_rnn(lessons, workload, folder, how, threads=1, progress=progress)
        document = json.loads(report.read_text(encoding="utf-8"))
        return Imitator((folder / document["models"][0]["file"]).resolve(), document)

    def judge(self, traces: Mapping[str, Path], about: Mapping[str, Any]) -> Path:
        """Return the model that tells these traces apart, trained on as much of them."""
        share = float(self.training["share"])
        keys = {key: value for key, value in about.items() if key != "every"}
        how = KindsTraining(**keys, share=share)
        names = "-".join(traces)
        inputs = {
            name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in traces.items()
        }
        folder = self.folder / f"kinds-{names}-{hashed([_native.__version__, inputs, asdict(how)])}"
        path = folder / "kinds.safetensors"
        if not path.is_file():
            train_kinds(dict(traces), path, how)
        return path.resolve()


def _lessons(stack: dict[str, Any], how: RcRnnTraining, progress: Progress | None) -> Lessons:
    return caching_lessons(
        stack, features=how.features, oracle=how.oracle, threads=1, progress=progress
    )


def _before_warmup(stack: Mapping[str, Any], lessons: Lessons) -> float:
    """Return the share of the requests that arrive in the warm-up: no other one may train."""
    import numpy as np

    warmup = _native.parse_duration(str(stack["replay"]["warmup"]))
    return float(np.mean(lessons.time_ns < warmup))


def _key(stack: Mapping[str, Any], how: RcRnnTraining) -> str:
    """Return a hash of all that a model is made of."""
    traces = [
        hashlib.sha256(Path(one["trace"]).read_bytes()).hexdigest() for one in stack["tenant"]
    ]
    plain = {key: value for key, value in stack.items() if key != "tenant"}
    tenants = [{**one, "trace": trace} for one, trace in zip(stack["tenant"], traces, strict=True)]
    return hashed([_native.__version__, plain, tenants, asdict(how)])


def hashed(value: Any) -> str:
    """Return a short name that differs for different values."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
