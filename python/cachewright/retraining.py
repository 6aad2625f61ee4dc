"""A model of a live server, trained on what the server recorded, and taken over by it.

For: `cachewright live train`, a process beside the server. Must never know: how a model is trained,
what a server does with it. The file appears whole under its name; a server that refuses it goes on
by the model before, and the file before is put back.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native, advising, targets, watching
from cachewright._native import RunError, SpecError
from cachewright.spec import TENANTS, Stack, is_stack_path
from cachewright.stack_file import plain
from cachewright.train import train_rc_rnn

if TYPE_CHECKING:
    from cachewright.train import RcRnnTraining
    from cachewright.train.reports import CachingReport
    from cachewright.types import PathLike, Progress

POLICY = "rc-rnn"
# Keys of the cache that a lesson is replayed by.
ALONE = ("block", "capacity", "policy", "write", "trim")


@dataclass(frozen=True)
class Retrained:
    """A model that was written, and whether a server has taken it over."""

    path: Path
    report: CachingReport
    recordings: tuple[str, ...]
    taken_over: bool


def retrain(
    target: PathLike,
    how: RcRnnTraining | None = None,
    *,
    last: str = advising.LAST,
    tenant: str | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Retrained:
    """Train the model of a server's policy on its last recordings, and let it take the model over.

    `target` and `last` are as in `advising.advise`. The policy is `rc-rnn`; the model is the file
    of `cache.workload` in `cache.models` of the server's stack. It learns from one tenant's
    requests: those of `tenant`, or of the only one. Without a server the file is written alone.
    Errors: `SpecError` for another policy, several tenants without `tenant`, nothing recorded, or a
    model that the server refuses; `RunError` when the server does not answer.
    """
    target = os.fspath(target)
    with advising.loaded(target, _native.parse_duration(last)) as load:
        tables = tomllib.loads(load.stack.text)
        path = _model_path(tables, load.stack)
        kind = _kind(tables)
        alone = _alone(tables, tenant)
        alone["cache"] = {key: value for key, value in alone["cache"].items() if key in ALONE}
        folder = Path(load.stack.origin).parent
        alone[TENANTS][0]["trace"] = os.fspath(folder / alone[TENANTS][0]["trace"])
        found = train_rc_rnn(alone, kind, None, how, threads=threads, progress=progress)
        (content, *_) = found.files.values()
        taken_over = _put(path, content, target)
        return Retrained(path, found.report, load.recordings, taken_over)


def _kind(tables: dict[str, Any]) -> str:
    """Return the kind of workload that runs. Errors: `SpecError` for another policy, no model."""
    cache = tables.get("cache", {})
    policy = cache.get("policy", "lru")
    name = policy["name"] if isinstance(policy, dict) else policy
    if name != POLICY:
        raise SpecError(f"`cache.policy`: found `{name}`, expected `{POLICY}`, which is trained")
    models = cache.get("models", {})
    if not models:
        raise SpecError("found no `cache.models`, expected the file of the model to train")
    return str(cache.get("workload", next(iter(models))))


def _model_path(tables: dict[str, Any], stack: Stack) -> Path:
    kind = _kind(tables)
    models = tables["cache"]["models"]
    if kind not in models:
        known = ", ".join(models)
        raise SpecError(f"`cache.workload`: found `{kind}`, expected one of {known}")
    return Path(stack.origin).parent / plain(models[kind])


def _alone(tables: dict[str, Any], tenant: str | None) -> dict[str, Any]:
    """Return tables with one tenant. Errors: `SpecError` for none of that name, or several."""
    tenants = tables[TENANTS]
    names = [str(one.get("name", f"tenant{place + 1}")) for place, one in enumerate(tenants)]
    if tenant is None and len(names) > 1:
        raise SpecError(f"found tenants {', '.join(names)}, expected one of them to learn from")
    if tenant is not None and tenant not in names:
        raise SpecError(f"found no tenant `{tenant}`, expected one of {', '.join(names)}")
    chosen = tenants[0 if tenant is None else names.index(tenant)]
    rest = {key: value for key, value in tables.items() if key not in (TENANTS, "serve")}
    return {**rest, TENANTS: [dict(chosen)]}


def _put(path: Path, content: bytes, target: str) -> bool:
    """Write a model, and let the server at `target` take it over; return whether one did."""
    before = path.read_bytes() if path.exists() else None
    targets.write_whole(path, content)
    try:
        watching.reload(target)
    except RunError:
        # A stack file alone: the next start takes the model.
        if is_stack_path(target):
            return False
        raise
    except SpecError as error:
        if is_stack_path(target) and "serve.monitor" in str(error):
            return False
        if before is not None:
            targets.write_whole(path, before)
        raise
    return True
