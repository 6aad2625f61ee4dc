"""What other settings would have given the recorded load of a live server.

For: `cachewright advise`, and the same from Python. Must never know: how a case is replayed; all
numbers are those of `compare` and `plan` on the recording. Units: bytes, nanoseconds, ratios.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native, api, registries, words
from cachewright._native import RunError, SpecError
from cachewright.answers import (
    AdviseAnswer,
    AdviseCase,
    AdviseCauses,
    AdviseGoal,
    AdviseTenant,
    Case,
    LiveStatus,
    PlanAnswer,
    RunAnswer,
)
from cachewright.documents import load as load_answer
from cachewright.live import advice, estimating, recordings, watching
from cachewright.stack import Settings, Stack, is_stack_path, pairs, toml_text, toml_value
from cachewright.stack import load as load_stack
from cachewright.tables import ranking, summary

if TYPE_CHECKING:
    from cachewright.types import PathLike, Progress

LAST = "1h"
# What is tried beside what `auto` takes.
OTHER_POLICIES = ("lru", "s3-fifo", "arc")
OTHER_PARTITIONS = ("shared", "equal")
# As many tenants as a cache must have to be divided.
SEVERAL = 2
SIZES = (0.5, 1.0, 2.0)
GOALS = ("goal_hit_ratio", "goal_latency", "goal_response", "goal_p99")
# Keys of a tenant that say how another trace than the recording is read.
OF_OTHER_TRACES = ("history", "format", "options", "time_scale", "start", "stop", "sort")
BLOCKS = "blocks"
RECORDINGS, TRACES = "recordings", "traces"


@dataclass(frozen=True)
class Load:
    """A stack whose tenants' traces are what was recorded."""

    stack: Stack
    recordings: tuple[str, ...]
    notes: tuple[str, ...]


def advise(
    target: PathLike,
    *,
    last: str | None = None,
    settings: Settings | None = None,
    policies: Sequence[str] = (),
    partitions: Sequence[str] = (),
    capacities: Sequence[str] = (),
    threads: int = 0,
    progress: Progress | None = None,
) -> AdviseAnswer:
    """Return what other policies, partitioners and sizes would have given a recorded load.

    `target` is the address of a server's monitor or the server's stack file: the server finishes
    its recording under way, and the newest recordings that reach back `last` (`1h`) are replayed.
    Without a server it is a stack file whose folder of recordings (`serve.record`) or whose traces
    are replayed. All combinations of `policies`, `partitions` and `capacities` are tried, with
    those of the stack. A replay begins with an empty cache. A server that samples curves and
    records nothing answers by estimates, of `capacities` alone. Errors: `SpecError` where nothing
    is recorded, `RunError` when no server answers, `TraceError`.
    """
    target = os.fspath(target)
    if (status := _curves_alone(target)) is not None:
        asked = {"last": last, "set": settings, "policy": policies, "partition": partitions}
        estimating.refuse([name for name, value in asked.items() if value])
        return estimating.estimate(status, capacities)
    with loaded(target, _native.parse_duration(last or LAST)) as load:
        run = Runs(load.stack, settings, api.natural("threads", threads), progress)
        present = run.explained()
        vary = _varied(present, policies, partitions, capacities, run.resolved())
        answer = run.compared(vary)
        plan = run.planned(present) if summary.has_goals(present.cases) else None
        return _answer(load, present, answer, plan)


@contextmanager
def loaded(target: str, last_ns: int) -> Iterator[Load]:
    """Give the stack of `target` with what was recorded as its traces.

    Errors: `SpecError` where nothing is recorded, `RunError` when no server answers at an address.
    """
    path, folder = places(target)
    stack = load_stack(path)
    tables = _tables(stack)
    with tempfile.TemporaryDirectory(prefix="cachewright-") as scratch:
        if folder is None:
            _check_traces(tables, path)
            yield Load(Stack(toml_text(_replayed(tables)), stack.origin, stack.held), (), ())
            return
        part = Path(scratch) / "recorded.parquet"
        joined = recordings.joined(recordings.found(folder), last_ns, part)
        tables, notes = _recorded(tables, joined)
        tables, more = _without_goals(_replayed(tables))
        notes = (*notes, *more)
        files = tuple(os.fspath(one) for one in joined.recordings)
        yield Load(Stack(toml_text(tables), stack.origin), files, notes)


class Runs:
    """Replays of one stack."""

    def __init__(
        self, stack: Stack, settings: Settings | None, threads: int, progress: Progress | None
    ) -> None:
        """Keep how each of them is run."""
        self.stack, self.settings = stack, settings
        self.threads, self.progress = threads, progress

    def resolved(self) -> dict[str, Any]:
        """Return the stack with every default filled in."""
        text = _native.check(self.stack.text, self.stack.origin, pairs(self.settings))
        found: dict[str, Any] = json.loads(text)
        return found

    def compared(
        self, vary: Mapping[str, Sequence[Any]], usual: Mapping[str, Any] | None = None
    ) -> RunAnswer:
        """Return all combinations of some settings, as `compare` does.

        `usual` are settings that those given to the command replace.
        """
        return api.compare(
            self.stack,
            vary,
            settings={**(usual or {}), **dict(pairs(self.settings))},
            threads=self.threads,
            progress=self.progress,
        ).answer

    def explained(self) -> RunAnswer:
        """Return the cache as it is, with the causes of its misses where they can be found."""
        is_drive = self.resolved().get("machine", {}).get("system") == "ssd"
        return self.compared({}, {} if is_drive else {"replay.causes": "sampled"})

    def planned(self, present: RunAnswer) -> PlanAnswer:
        """Return what goals need, as `plan` does, under the partitioner of a case and `auto`'s."""
        own = summary.value(present.cases[0], summary.PARTITION).split("(")[0]
        names = dict.fromkeys([own, _auto_partition(SEVERAL, goals=True)["name"]])
        text = _native.plan(
            self.stack.text,
            self.stack.origin,
            pairs(self.settings),
            {"partitions": list(names)},
            threads=self.threads,
            out=None,
            force=False,
            progress=self.progress,
        )
        return load_answer(PlanAnswer, json.loads(text))


def _curves_alone(target: str) -> LiveStatus | None:
    """Return the status of a server that records nothing and samples curves; None for others."""
    if is_stack_path(target) and not _has_monitor(_tables(load_stack(target))):
        return None
    try:
        status = watching.status(target)
    except RunError:
        # No server runs, or the place is refused when its recordings are looked for.
        return None
    return status if status.recordings is None and estimating.has_curves(status) else None


def _has_monitor(tables: Mapping[str, Any]) -> bool:
    serve = tables.get("serve")
    return isinstance(serve, dict) and isinstance(serve.get("monitor"), str)


def places(target: str) -> tuple[Path, Path | None]:
    """Return the stack file of a target, and its folder of recordings if there is one.

    A server that runs finishes its recording under way first. Errors: `SpecError`, and `RunError`
    when no server answers at an address.
    """
    if is_stack_path(target):
        path = Path(target)
        tables = _tables(load_stack(path))
        serve = tables.get("serve")
        serve = serve if isinstance(serve, dict) else {}
        if _has_monitor(tables):
            try:
                return path, _finished(target)
            except RunError:
                # No server runs by this stack now; what it recorded before is there.
                pass
        record = serve.get("record")
        folder = path.parent / record if isinstance(record, str) else None
        return path, folder if folder is not None and folder.is_dir() else None
    status = watching.status(target)
    path = Path(status.stack)
    if not path.is_file():
        expected = "expected to find it from here; give its path instead"
        raise SpecError(f"found a server of the stack file `{path}`, {expected}")
    return path, _finished(target)


def _finished(target: str) -> Path | None:
    """Return the folder of a server's recordings, the one under way finished."""
    status = watching.status(target)
    if status.recordings is None:
        return None
    after = recordings.finish(target, status).recordings
    return None if after is None else Path(after.folder)


def _tables(stack: Stack) -> dict[str, Any]:
    try:
        return tomllib.loads(stack.text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{stack.origin}: {error}") from error


def _check_traces(tables: Mapping[str, Any], path: Path) -> None:
    """Refuse a stack without traces and without recordings."""
    tenants = [one for one in tables.get("tenant", ()) if isinstance(one, dict)]
    if not all(one.get("trace") for one in tenants):
        expected = "expected a server with `serve.record` or `serve.curves`, or traces"
        raise SpecError(f"{path}: found nothing that was recorded, {expected}")


def _replayed(tables: dict[str, Any]) -> dict[str, Any]:
    """Return tables without what only a server has: layouts on its devices, response times."""
    cache = dict(tables.get("cache", {}))
    if "device" not in tables:
        cache.pop("layout", None)
        if "serve" in tables and cache.get("policy") in ("auto", {"name": "auto"}):
            cache["policy"] = _auto_policy(responses=True)
        partition = cache.get("partition", "shared")
        name = partition.get("name") if isinstance(partition, dict) else partition
        if name in _priced() or name == "auto":
            tenants = tables.get("tenant", ())
            has_goals = any(key in one for one in tenants for key in GOALS)
            cache["partition"] = _auto_partition(len(tenants), has_goals)
    return {**tables, "cache": cache}


def _auto_policy(*, responses: bool) -> str:
    """Return the policy that `auto` takes for response times, or for misses."""
    policy, _ = _native.auto_schemes(SEVERAL, False, responses)
    return str(json.loads(policy))


def _auto_partition(tenants: int, goals: bool) -> dict[str, Any]:
    """Return the partitioner that `auto` takes of a replay without devices, as a table."""
    _, partition = _native.auto_schemes(tenants, goals, False)
    found = json.loads(partition)
    return found if isinstance(found, dict) else {"name": found}


def _priced() -> set[str]:
    """Return the names of partitioners that divide by response times."""
    return {one.name for one in registries.list("partitions") if "response times" in one.needs}


def _recorded(
    tables: dict[str, Any], joined: recordings.Joined
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return tables whose tenants have their volumes of a recording as traces, and notes.

    A tenant without accesses in the recordings takes no part, and a volume that the stack has no
    more is left out. Errors: `SpecError` where no tenant is left.
    """
    kept, notes, names = [], [], []
    for place, tenant in enumerate(tables.get("tenant", ())):
        name = str(tenant.get("name", f"tenant{place + 1}"))
        names.append(name)
        if name not in joined.volumes:
            found = f"{name}: found no reads or writes in the recordings"
            notes.append(f"{found}; it takes no part, and the others have its space")
            continue
        own = {key: value for key, value in tenant.items() if key not in OF_OTHER_TRACES}
        kept.append({**own, "name": name, "trace": os.fspath(joined.path), "volume": name})
    if not kept:
        raise SpecError(_nothing_left(names, joined))
    gone = [name for name in joined.volumes if name not in names]
    notes += [f"{name}: in the recordings, and no tenant of the stack; left out" for name in gone]
    return {**tables, "tenant": kept}, tuple(notes)


def _nothing_left(names: Sequence[str], joined: recordings.Joined) -> str:
    """Return why recordings say nothing of the tenants of a stack."""
    count = words.counted(len(joined.recordings), "recording")
    if not joined.volumes:
        return f"found {count} without reads and writes, expected some of {', '.join(names)}"
    found = f"found {count} with reads and writes of {', '.join(joined.volumes)}"
    return f"{found}, expected some of the tenants of the stack: {', '.join(names)}"


def _without_goals(tables: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return tables that can be replayed where the tenants with goals take no part, and notes."""
    tenants, cache = tables["tenant"], tables["cache"]
    partition = cache.get("partition", "shared")
    name = partition.get("name") if isinstance(partition, dict) else partition
    if name not in _keeping_goals() or any(key in one for one in tenants for key in GOALS):
        return tables, ()
    other = _auto_partition(len(tenants), goals=False)
    note = f"no tenant that takes part has a goal: `{other['name']}` in place of `{name}`"
    return {**tables, "cache": {**cache, "partition": other}}, (note,)


def _keeping_goals() -> set[str]:
    """Return the names of partitioners that need a goal."""
    return {one.name for one in registries.list("partitions") if "goal" in one.needs}


def _varied(
    present: RunAnswer,
    policies: Sequence[str],
    partitions: Sequence[str],
    capacities: Sequence[str],
    resolved: Mapping[str, Any],
) -> dict[str, list[str]]:
    """Return the values to try: those of the stack first, then those asked for or usual."""
    case, cache = present.cases[0], resolved["cache"]
    policy, partition = (
        _given(cache[key.removeprefix("cache.")], summary.value(case, key))
        for key in (summary.POLICY, summary.PARTITION)
    )
    tenants, blocks = len(case.tenants), case.capacity_blocks
    usual = [_auto_policy(responses=True), _auto_policy(responses=False), *OTHER_POLICIES]
    ways = []
    if tenants > 1:
        auto = _auto_partition(tenants, summary.has_goals(present.cases))
        ways = [_text(auto), *OTHER_PARTITIONS]
    sizes = [f"{max(1, round(blocks * size))} {BLOCKS}" for size in SIZES]
    others = [text for text in capacities if not _is_size(text, blocks * case.block_bytes)]
    return {
        summary.POLICY: _once(policy, policies or usual),
        summary.PARTITION: _once(partition, partitions or ways),
        summary.CAPACITY: list(
            dict.fromkeys([f"{blocks} {BLOCKS}", *(others if capacities else sizes)])
        ),
    }


def _is_size(text: str, size_bytes: int) -> bool:
    """Return whether a capacity is that many bytes, in whatever unit it is given."""
    try:
        return _native.parse_bytes(text) == size_bytes
    except SpecError:
        # A share of the working set, or no size at all: the comparison says which.
        return False


def _given(scheme: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return a resolved scheme with the settings alone that its label names.

    >>> _given({"name": "2q", "kin": 0.5, "kout": 0.5}, "2q(kin=0.5)")
    {'name': '2q', 'kin': 0.5}
    """
    named = re.findall(r"[(, ](\w+)=", label)
    return {key: value for key, value in scheme.items() if key == "name" or key in named}


def _text(scheme: Mapping[str, Any]) -> str:
    """Return a scheme as the value of a key: its name alone where it has no settings."""
    return str(scheme["name"]) if len(scheme) == 1 else toml_value(scheme)


def _once(own: Mapping[str, Any], others: Sequence[str]) -> list[str]:
    """Return the scheme of the stack and others, each once."""
    return list(dict.fromkeys([_text(own), *others]))


def _answer(
    load: Load, present: RunAnswer, answer: RunAnswer, plan: PlanAnswer | None
) -> AdviseAnswer:
    cases = [case for case in answer.cases if not summary.is_bound(case)]
    here = _case(present.cases[0])
    tried = [
        _case(case)
        for case in sorted(cases, key=partial(summary.preference, ranking.rank_of(answer)))
    ]
    goals = [] if plan is None else list(_goals(present.cases[0], plan))
    causes = [
        AdviseCauses(name=one.name, misses=one.misses, causes=one.causes)
        for one in present.cases[0].tenants
        if one.causes is not None and one.misses
    ]
    why = advice.of_misses(causes, [one.name for one in present.cases[0].tenants])
    return AdviseAnswer(
        cachewright=answer.cachewright,
        schema_version=answer.schema_version,
        name=answer.name,
        source=RECORDINGS if load.recordings else TRACES,
        recordings=load.recordings,
        requests=answer.workload.requests,
        accesses=present.cases[0].total.accesses,
        span_ns=answer.workload.span_ns,
        present=here,
        cases=tuple(tried),
        goals=tuple(goals),
        causes=tuple(causes),
        advice=(*advice.sentences(here, tried, goals, plan), *why),
        notes=(*load.notes, *_beside_hit_ratios(present), advice.EMPTY),
    )


def _beside_hit_ratios(present: RunAnswer) -> list[str]:
    """Return which goals have no part in the sizes advised, or are not judged at all."""
    if found := summary.goals_not_judged(present):
        return found
    return [
        f"{name}: the goal of {goal} is judged in each cache tried; no size is advised for it, "
        "since sizes are for hit ratios"
        for name, goal in summary.measured_goals(present).items()
    ]


def _case(case: Case) -> AdviseCase:
    tenants = [
        AdviseTenant(
            name=one.name,
            hit_ratio=one.hit_ratio,
            quota_bytes=one.quota_blocks * case.block_bytes,
            goal_met=one.goal_met,
        )
        for one in case.tenants
    ]
    return AdviseCase(
        policy=summary.value(case, summary.POLICY),
        partition=summary.value(case, summary.PARTITION),
        capacity_bytes=summary.capacity_bytes(case),
        hit_ratio=case.total.hit_ratio,
        goals_met=summary.goals_met(case),
        tenants=tuple(tenants),
    )


def _goals(case: Case, plan: PlanAnswer) -> Iterator[AdviseGoal]:
    """Give what each tenant with a goal needs beside what it has in a case."""
    is_shared = summary.value(case, summary.PARTITION) == advice.SHARED
    alone = {one.name: one for one in plan.tenants}
    for tenant in case.tenants:
        need = alone[tenant.name]
        if need.goal_hit_ratio is None:
            continue
        blocks = need.alone_blocks
        more = None if blocks is None or is_shared else blocks - tenant.quota_blocks
        yield AdviseGoal(
            name=tenant.name,
            goal_hit_ratio=need.goal_hit_ratio,
            hit_ratio=tenant.hit_ratio,
            needed_bytes=None if blocks is None else blocks * case.block_bytes,
            safe_bytes=None,
            more_bytes=None if more is None else more * case.block_bytes,
            best_hit_ratio=need.best_hit_ratio,
        )
