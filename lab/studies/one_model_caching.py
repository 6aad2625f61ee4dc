"""Caching models: `rc-rnn` with one model, with a model per kind, and policies that learn online.

For: lab/studies/one_model.py. Must never know: how a policy decides. A value is hits per block
access over the whole capture that judges, without devices. Captures with too few requests for the
batches of the training are left out, and named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cachewright
from cachewright.train import RcRnnTraining, train_rc_rnn
from cachewright.train.labelled import Lessons, caching_lessons
from one_model_kinds import Kind, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

CAPACITY = "20%wss"
ONLINE = ("lru", "access-frequency", "cacheus", "duel-x")
BOUND = "benefit-oracle"
# On oltp a network of the published size does no better (docs/training.md).
HOW = RcRnnTraining(units=64, layers=1, epochs=20)
# A tenth more than the training asks for, of the fifth that says when to stop.
LEAST_REQUESTS = int(1.1 * 5 * HOW.window * HOW.batch)
TRAINS = 0.8


def stack(path: Path, models: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the stack of a capture."""
    asked = {"policy": "rc-rnn", "models": models} if models else {"policy": "lru"}
    return {
        "name": "one",
        "cache": {"capacity": CAPACITY, **asked},
        "tenant": [{"name": "one", "trace": str(path)}],
    }


def joined(parts: Sequence[Lessons], judges: Lessons) -> Lessons:
    """Return lessons that begin with those of all parts, and end with those that judge.

    The first 80 % of every part come before the last 20 %, which say when to stop.
    """
    import numpy as np

    cuts = [(part, int(TRAINS * len(part.cached))) for part in parts]
    order = [part.part(0, cut) for part, cut in cuts]
    order += [part.part(cut, len(part.cached)) for part, cut in cuts]
    split = sum(len(one.cached) for one in order)

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(one, name) for one in (*order, judges)])

    columns = {name: column(name) for name in ("rows", "cached", "duration", "time_ns")}
    return Lessons(judges.capacity_blocks, judges.names, split=split, **columns)


def lessons_of(kinds: Sequence[Kind]) -> dict[str, Lessons]:
    """Return the lessons of each kind's first capture that has enough requests."""
    found = {kind.name: caching_lessons(stack(kind.trains)) for kind in kinds}
    few = [name for name, one in found.items() if len(one.cached) < LEAST_REQUESTS]
    if few:
        print(f"caching: left out, too few requests: {', '.join(few)}", file=sys.stderr)
    return {name: one for name, one in found.items() if name not in few}


def hits(path: Path, policy: str, out: Path, models: dict[str, str] | None = None) -> float:
    """Return hits per access of a policy on a capture."""
    settings = {"cache.policy": policy}
    case = cachewright.run(stack(path, models), settings=settings, out=out).answer.cases[0]
    return case.total.hits / max(case.total.accesses, 1)


def outcomes(kinds: Sequence[Kind], out: Path) -> Iterator[Outcome]:
    """Yield what every policy gave on every kind."""
    lessons = lessons_of(kinds)
    for kind in (one for one in kinds if one.name in lessons):
        own = lessons[kind.name]
        others = [one for name, one in lessons.items() if name != kind.name]
        courses = {"one model of the other kinds": others, "a model of this kind": [own]}
        for name, parts in courses.items():
            folder = out / kind.name / name.replace(" ", "-")
            file = folder / "any.safetensors"
            if not file.is_file():
                train_rc_rnn(joined(parts, own), "any", folder, HOW)
            found = hits(kind.judges, "rc-rnn", folder / "run", {"any": str(file)})
            yield Outcome(f"`rc-rnn`, {name}", kind.name, found)
        for policy in (*ONLINE, BOUND):
            name = f"`{policy}`" + (" (bound)" if policy == BOUND else "")
            found = hits(kind.judges, policy, out / kind.name / policy)
            yield Outcome(name, kind.name, found)
        print(f"caching: {kind.name}", file=sys.stderr)
