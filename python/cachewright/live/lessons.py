"""What the schemes of a live server learn from its recordings.

For: `cachewright live train`. Must never know: servers, how models are written. A scheme is the
policy `rc-rnn` or one of the partitioners `icache` and `mlcache`. Each is trained by the trainer
that trains it offline, on a replay of the stack with the recordings as its traces. A partitioner
learns from response times: those of the stack's `[device]` tables, else those of
`replay.hit_time` and `replay.miss_time`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright._native import SpecError
from cachewright.stack import TENANTS, Stack, plain
from cachewright.train import (
    ICacheTraining,
    MLCacheTraining,
    RcRnnTraining,
    train_icache,
    train_mlcache,
    train_rc_rnn,
)
from cachewright.train.store import file_name

if TYPE_CHECKING:
    from cachewright.train.reports import CachingReport, PartitionerReport
    from cachewright.types import Progress

    Report = CachingReport | PartitionerReport
    How = RcRnnTraining | ICacheTraining | MLCacheTraining

RC_RNN, ICACHE, MLCACHE = "rc-rnn", "icache", "mlcache"
# Keys of the cache that a lesson is replayed by.
ALONE = ("block", "capacity", "policy", "write", "trim")
# What a policy that is trained itself needs to decide in a lesson of a partitioner.
MODELS = ("models", "workload")
TIMES = ("hit_time", "miss_time")
# Settings of `icache` by which its models must have been trained.
OF_ICACHE = {"granules": "granules", "steps_per_interval": "steps", "window_steps": "window"}


@dataclass(frozen=True)
class Recorded:
    """A stack whose tenants' traces are recordings, and how it is replayed."""

    tables: dict[str, Any]
    stack: Stack
    tenant: str | None
    threads: int
    progress: Progress | None

    @property
    def folder(self) -> Path:
        """Where files of the stack are looked for."""
        return Path(self.stack.origin).parent

    def cache(self, key: str) -> Any:
        """Return a key of `[cache]`; None if it is left out."""
        return self.tables.get("cache", {}).get(key)

    def names(self) -> list[str]:
        """Return the names of all tenants."""
        tenants = self.tables[TENANTS]
        return [str(one.get("name", f"tenant{place + 1}")) for place, one in enumerate(tenants)]

    def chosen(self) -> list[dict[str, Any]]:
        """Return the tenants that are learned from. Errors: `SpecError` for none of that name."""
        names = self.names()
        if self.tenant is not None and self.tenant not in names:
            raise SpecError(f"found no tenant `{self.tenant}`, expected one of {', '.join(names)}")
        named = zip(names, self.tables[TENANTS], strict=True)
        return [{**one, "name": name} for name, one in named if self.tenant in (None, name)]


@dataclass(frozen=True)
class Trained:
    """Models by the files that a server reads them from, and what is to be said of them."""

    files: dict[Path, bytes]
    report: Report


@dataclass(frozen=True)
class Scheme:
    """A scheme that is trained: its settings, and how it learns."""

    settings: Callable[..., How]
    learn: Callable[[Recorded, Any], Trained]


def chosen(tables: Mapping[str, Any], scheme: str | None) -> str:
    """Return the scheme of a stack that is trained.

    Errors: `SpecError` without one, for several without `scheme`, and for one that it has not.
    """
    cache = tables.get("cache", {})
    policy, partition = _name(cache, "policy", "lru"), _name(cache, "partition", "shared")
    there = [name for name in (policy, partition) if name in SCHEMES]
    if not there:
        found = f"`cache.policy`: found `{policy}`, and `cache.partition` `{partition}`"
        raise SpecError(f"{found}; expected one that is trained: {', '.join(SCHEMES)}")
    if scheme is None and len(there) > 1:
        raise SpecError(f"found {' and '.join(there)}, expected one of them to train")
    if scheme is not None and scheme not in there:
        raise SpecError(f"found no `{scheme}` in the stack, expected {' or '.join(there)}")
    return scheme or there[0]


def learned(scheme: str, recorded: Recorded, how: How | Mapping[str, Any] | None) -> Trained:
    """Train the models of a scheme; `how` is its settings, some of them by name, or None.

    Errors: `SpecError` for settings of another scheme, models without a file, and what the trainer
    refuses; `TraceError`.
    """
    entry = SCHEMES[scheme]
    if how is None or isinstance(how, Mapping):
        known = [one.name for one in fields(entry.settings)]  # type: ignore[arg-type]
        for key in how or {}:
            if key not in known:
                raise SpecError(f"`{key}`: found for `{scheme}`, expected {', '.join(known)}")
        how = entry.settings(**(how or {}))
    if not isinstance(how, entry.settings):  # type: ignore[arg-type]
        found = type(how).__name__
        raise SpecError(f"found settings of {found} for `{scheme}`, expected its own")
    return entry.learn(recorded, how)


def _rc_rnn(recorded: Recorded, how: RcRnnTraining) -> Trained:
    models = recorded.cache("models") or {}
    if not models:
        raise SpecError("found no `cache.models`, expected the file of the model to train")
    kind = str(recorded.cache("workload") or next(iter(models)))
    if kind not in models:
        known = ", ".join(models)
        raise SpecError(f"`cache.workload`: found `{kind}`, expected one of {known}")
    tenants = recorded.chosen()
    if len(tenants) > 1:
        names = ", ".join(recorded.names())
        raise SpecError(f"found tenants {names}, expected one of them to learn from")
    stack = _lesson(recorded, tenants, {})
    threads, progress = recorded.threads, recorded.progress
    found = train_rc_rnn(stack, kind, None, how, threads=threads, progress=progress)
    (content, *_) = found.files.values()
    return Trained({recorded.folder / plain(models[kind]): content}, found.report)


def _icache(recorded: Recorded, how: ICacheTraining) -> Trained:
    partition = recorded.cache("partition")
    given = partition if isinstance(partition, dict) else {}
    how = replace(how, **{OF_ICACHE[key]: given[key] for key in OF_ICACHE if key in given})
    tenants = recorded.chosen()
    places = {}
    for one in tenants:
        if not one.get("model"):
            expected = "expected the file of the model to train"
            raise SpecError(f"tenant `{one['name']}`: found no `model`, {expected}")
        places[one["name"]] = recorded.folder / plain(one["model"])
    stack = _lesson(recorded, tenants, _responses(recorded.tables))
    threads, progress = recorded.threads, recorded.progress
    found = train_icache(stack, None, how, threads=threads, progress=progress)
    files = {place: found.files[file_name(name, 1, 1)] for name, place in places.items()}
    return Trained(files, found.report)


def _mlcache(recorded: Recorded, how: MLCacheTraining) -> Trained:
    path = recorded.cache("model")
    if not path:
        raise SpecError("found no `cache.model`, expected the file of the model to train")
    if recorded.tenant is not None:
        raise SpecError(f"found tenant `{recorded.tenant}`, expected none: all have one model")
    stack = _lesson(recorded, recorded.chosen(), _responses(recorded.tables))
    threads, progress = recorded.threads, recorded.progress
    found = train_mlcache(stack, None, how, threads=threads, progress=progress)
    (content, *_) = found.files.values()
    return Trained({recorded.folder / plain(path): content}, found.report)


SCHEMES = {
    RC_RNN: Scheme(RcRnnTraining, _rc_rnn),
    ICACHE: Scheme(ICacheTraining, _icache),
    MLCACHE: Scheme(MLCacheTraining, _mlcache),
}


def _lesson(
    recorded: Recorded, tenants: list[dict[str, Any]], timed: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the stack of a lesson: some tenants, without a server, partition and its models.

    `timed` are tables that say what a request takes; without them it is replayed for its hits.
    """
    keys = (*ALONE, *MODELS) if timed else ALONE
    cache = {key: value for key, value in recorded.tables["cache"].items() if key in keys}
    kept = []
    for one in tenants:
        own = {key: value for key, value in one.items() if not key.startswith("model")}
        kept.append({**own, "trace": str(recorded.folder / one["trace"])})
    rest = {key: value for key, value in recorded.tables.items() if key not in (TENANTS, "serve")}
    return {**rest, **timed, "cache": cache, TENANTS: kept}


def _responses(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables that give each request of a replay a time: those of the stack if it has some.

    Errors: `SpecError` without devices and without times of hits and misses.
    """
    replay = dict(tables.get("replay", {}))
    times = [replay.pop(key, None) for key in TIMES]
    replay["loop"] = "open"
    if "device" in tables:
        return {"device": tables["device"], "replay": replay}
    if None in times:
        expected = (
            "expected `replay.hit_time` and `replay.miss_time` (`cachewright live calibrate`)"
        )
        raise SpecError(f"found nothing that says what requests take, {expected}")
    hit, miss = (
        {"model": "fixed-latency", "read": str(plain(time)), "write": str(plain(time))}
        for time in times
    )
    return {"device": {"cache": hit, "backing": miss}, "replay": replay}


def _name(cache: Mapping[str, Any], key: str, default: str) -> str:
    found = cache.get(key, default)
    return str(found["name"] if isinstance(found, dict) else found)
