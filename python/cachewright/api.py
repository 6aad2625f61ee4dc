"""The verbs of the package: check, run, compare, simulate, mrc, segments, plan, wa, info, lists.

For: calling the Rust rooms with Python values and giving `Result`, `Curves` and `Amplification`
back. Must never know: how anything is simulated, or which settings exist. Sizes and durations in
settings are text with a unit (`64MiB`, `10%wss`, `250us`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from cachewright import _native
from cachewright.answers import (
    AmplificationAnswer,
    CurvesAnswer,
    PlanAnswer,
    RunAnswer,
    TraceInfo,
)
from cachewright.documents import load as load_answer
from cachewright.policies import PREFIX, Finder, check_name
from cachewright.results import Amplification, Curves, Result
from cachewright.stack import (
    Settings,
    SpecLike,
    StackOrTrace,
    mapping,
    of_trace,
    pairs,
    stack_of,
    vary_pairs,
)
from cachewright.stack import load as load_stack
from cachewright.traces import TraceLike, TraceOptions, opened
from cachewright.types import PathLike

if TYPE_CHECKING:
    from cachewright.command_options import (
        CurveOptions,
        DriveOptions,
        SizeOptions,
        StepOptions,
    )
    from cachewright.policies import MakeCachePolicy, Policies
    from cachewright.train.demand import Segments
    from cachewright.train.window import Trainer
    from cachewright.types import Progress

ANY_CAPACITY = "100%wss"
DEFAULT_CAPACITY = "10%wss"


def check(spec: SpecLike, *, settings: Settings | None = None) -> dict[str, Any]:
    """Validate a stack and return its settings with every default.

    `spec` is the path of a stack file or the same as a mapping; `settings` changes keys by dotted
    name, as in `{"cache.capacity": "64MiB"}`. Errors: `SpecError` naming key, value found and what
    was expected.
    """
    stack = load_stack(spec)
    document: dict[str, Any] = json.loads(_native.check(stack.text, stack.origin, pairs(settings)))
    check_name(document["cache"]["policy"]["name"], stack.origin)
    return document


def run(
    spec: StackOrTrace,
    *,
    settings: Settings | None = None,
    policies: Policies | None = None,
    out: PathLike | None = None,
    threads: int = 0,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Replay the tenants of a stack through its cache and return what happened.

    `spec` and `settings` are as in `check`. `spec` may also be a trace (a path, a frame, a
    `Trace`): then its cache is 10%wss of lru unless `settings` say more. `policies` gives classes
    written in Python (see `CachePolicy`) the names by which stack and settings may call them; a
    class may also stand in place of a name in `settings` or a mapping. With `out` a folder with
    `result.json` and `series.parquet` is written; what it already holds of the same stack is not
    run again unless `fresh`. `threads` of 0 uses every core; the result does not depend on it.
    `progress(stage, done, total)` is called some times a second, and cancels by returning False.
    Errors: `SpecError`, `TraceError`, `RunError` (also when cancelled), `PolicyError` when a Python
    policy fails or breaks a rule.
    """
    return compare(
        spec,
        {},
        settings=settings,
        policies=policies,
        out=out,
        threads=threads,
        fresh=fresh,
        progress=progress,
    )


def compare(
    spec: StackOrTrace,
    vary: Mapping[str, Sequence[Any]] | None = None,
    *,
    policy: Any = None,
    capacity: Any = None,
    partition: Any = None,
    settings: Settings | None = None,
    policies: Policies | None = None,
    out: PathLike | None = None,
    threads: int = 0,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Run all combinations of some settings; everything else is as in `run`.

    `vary` gives the values of each dotted key, as in `{"policy": ["lru", "arc"], "capacity":
    ["32MiB", "64MiB"]}`; `policy`, `partition` and `capacity` are short for the keys of `[cache]`,
    and may be given as keywords, one value or a list: `compare(trace, policy=["lru", "arc"])`.
    A policy may be a class written in Python, or a name in `policies`.
    """
    given = {"policy": policy, "capacity": capacity, "partition": partition}
    lists = {key: value for key, value in given.items() if value is not None}
    tried = {**mapping("vary", vary, '{"policy": ["lru", "arc"]}')}
    if twice := [key for key in lists if key in tried]:
        raise _native.SpecError(
            f"`{twice[0]}`: found it in `vary` and as a keyword, expected one of them"
        )
    for key, value in lists.items():
        tried[key] = value if isinstance(value, list | tuple) else [value]
    finder = Finder(policies)
    stack = stack_of(finder.spec(spec), {"capacity": DEFAULT_CAPACITY})
    text = _native.run(
        stack.text,
        stack.origin,
        pairs({**finder.of_file(stack), **finder.settings(settings)}),
        vary_pairs(finder.vary(tried)),
        threads=natural("threads", threads),
        out=None if out is None else os.fspath(out),
        fresh=fresh,
        load=finder.load,
        progress=progress,
    )
    answer = load_answer(RunAnswer, json.loads(text))
    return Result(answer, None if out is None else Path(out))


def simulate(
    trace: TraceLike,
    policy: str | Mapping[str, Any] | MakeCachePolicy = "lru",
    capacity: str = DEFAULT_CAPACITY,
    *,
    cache: Settings | None = None,
    replay: Settings | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Replay one trace through one cache: a stack of one tenant without a file.

    `trace` is a path, a frame, or a `Trace` that also says how to read it. `policy` is a name, a
    class written in Python or `{"name": ..., setting: ...}`; `cache` and `replay` are further keys
    of those tables (`{"block": "8KiB", "write": "write-around"}`). Errors: as `run`.
    """
    table = {"capacity": capacity, "policy": policy, **(cache or {})}
    settings = {"cache.policy": table.pop("policy")}
    stack = of_trace(trace, TraceOptions(), table, replay)
    return run(stack, settings=settings, threads=threads, progress=progress)


def mrc(
    spec: StackOrTrace,
    policies: Sequence[str] = (),
    *,
    block: str = "4KiB",
    settings: Settings | None = None,
    out: PathLike | None = None,
    force: bool = False,
    threads: int = 0,
    progress: Progress | None = None,
    **options: Unpack[CurveOptions],
) -> Curves:
    """Return how the miss ratio falls with cache size, per tenant and for all together.

    `spec` is a stack, or a trace (a path, a frame, a `Trace`), cut into blocks of `block`.
    `policies` are names, or none for the stack's own (`lru` for a trace). All curves have one grid
    of sizes: `sizes` with units (`%wss` is of all tenants together), else `points` sizes up to the
    working set (0 leaves it to the method). `method` is `exact`, `shards` (LRU, sampling at
    `rate`), `shards-size` (LRU, at most `size` blocks sampled), `mini` (a scaled-down simulation of
    any policy), or `auto`: exact, unless `rate` or `salts` ask for samples or the workload is too
    large for policies other than LRU (docs/results.md has the bound). Sampled curves carry a
    confidence interval from `salts` samplings; when the scaled cache is too small they sample more
    (`small="escalate"`) or refuse (`"refuse"`). `windows` gives a curve per window of time instead
    of one for the whole trace; `verify` compares with that many exact simulations. `latency` also
    replays each tenant alone on the stack's devices at each size: how its response time falls.
    With `out` a folder with `mrc.json` and `mrc.parquet` is written; curves of another stack there
    are replaced only with `force`. `CurveOptions` lists all options with types and ranges. Errors:
    `SpecError`, `TraceError`, `RunError`.
    """
    # What is no list at all is refused with the nearest option.
    for policy in policies if isinstance(policies, list | tuple) else ():
        if not isinstance(policy, str) or policy.startswith(PREFIX):
            name = policy if isinstance(policy, str) else getattr(policy, "__name__", repr(policy))
            raise _native.SpecError(
                f"`policies`: found `{name}`, expected names of policies that are built in: curves "
                "run none that is written in Python; `compare` replays one at several capacities"
            )
    stack = stack_of(spec, {"capacity": ANY_CAPACITY, "block": block})
    folder = None if out is None else Path(out)
    text = _native.mrc(
        stack.text,
        stack.origin,
        pairs(settings),
        {"policies": policies, **options},
        threads=natural("threads", threads),
        out=None if folder is None else os.fspath(folder),
        force=force,
        progress=progress,
    )
    return Curves(load_answer(CurvesAnswer, json.loads(text)), folder)


def segments(
    spec: SpecLike,
    *,
    settings: Settings | None = None,
    threads: int = 0,
    progress: Progress | None = None,
    **options: Unpack[StepOptions],
) -> Segments:
    """Replay each tenant of a stack alone with 0 to `granules` granules of its cache.

    What models of demand are trained on: features by step (`steps` per `replay.interval`), sums of
    responses and hits by step and size, and distances of writes by interval. Each size is one
    replay of the whole traces in an open loop, so that an interval begins with the cache that
    those before have left; `replay.warmup` changes nothing. `StepOptions` lists the options with
    types and ranges. Errors: `SpecError` (also for a stack without devices or in a closed loop),
    `TraceError`, `RunError`.
    """
    from cachewright.train.demand import Segments

    stack = load_stack(spec)
    found = _native.segments(
        stack.text,
        stack.origin,
        pairs(settings),
        {**options},
        threads=natural("threads", threads),
        progress=progress,
    )
    return Segments.of(found)


def plan(
    spec: SpecLike,
    partitions: Sequence[str] | None = None,
    *,
    settings: Settings | None = None,
    out: PathLike | None = None,
    force: bool = False,
    threads: int = 0,
    progress: Progress | None = None,
    **options: Unpack[SizeOptions],
) -> PlanAnswer:
    """Return the smallest cache that meets the goals of a stack's tenants.

    At least one tenant has a goal; the others take part and get what the partitioner leaves them.
    `partitions` are names; without them every partitioner that keeps goals is tried, and `hull`,
    `equal` and `shared` beside them. The answer has `smallest_blocks` (each tenant with a goal
    alone in a cache just large enough, added up), `tenants` (goal, blocks needed alone, best hit
    ratio of any cache), `partitions` (for each the smallest cache under which the replay meets all
    goals, its quotas at the end, the hit ratios, and the sizes tried) and `best`, the partitioner
    that needs the smallest cache; `notes` says what of the stack is left out. What no size reaches
    is `None`. `precision` is the share by which an answer may be too large. With `out` a folder
    with `plan.json` is written; the plan of another stack there is replaced only with `force`.
    Errors: `SpecError`, `TraceError`, `RunError`.
    """
    stack = load_stack(spec)
    text = _native.plan(
        stack.text,
        stack.origin,
        pairs(settings),
        {"partitions": partitions, **options},
        threads=natural("threads", threads),
        out=None if out is None else os.fspath(out),
        force=force,
        progress=progress,
    )
    return load_answer(PlanAnswer, json.loads(text))


def wa(
    spec: StackOrTrace,
    separations: Sequence[str] = ("all",),
    *,
    trainer: str | Trainer = "native",
    settings: Settings | None = None,
    out: PathLike | None = None,
    force: bool = False,
    threads: int = 0,
    progress: Progress | None = None,
    **options: Unpack[DriveOptions],
) -> Amplification:
    """Return the write amplification of separations on a stack's or a trace's writes.

    `spec` is a stack, or a trace (a path, a frame, a `Trace`). Every combination
    of `op` (over-provisioning, with `%`), `separations` and `reclaims` (names, inline tables such
    as `{name = "fk", classes = 8}`, or `all`) is run on a drive of its own: as large as what is
    ever written unless `capacity` is given (`live`: as what is live at once, page numbers recycled
    after trims), with `reserve` superblocks kept free. What is left out of `op`, `superblock`,
    `page` and `reserve` is that of the stack's `[flash]` table, or 7%, 1MiB, 4KiB and 4. `load` is
    replayed first and not counted (`TENANT=PATH` for a stack of several tenants). The run ends
    after `drive_writes`, or with the trace; with `loop` the trace is repeated until then (10 if not
    given). Schemes that learn are trained at window borders by `trainer`: `native` (in Rust), `jax`
    or a callable (`cachewright.train`), which is called from the run's threads; or `model` names a
    model file that they use untrained. With `out` a folder with `wa.json` is written;
    the result of another stack there is replaced only with `force`. `DriveOptions` lists all
    options with types and ranges. Errors: `SpecError`, `TraceError`, `RunError`.
    """
    from cachewright.train.by_name import hand_out

    stack = stack_of(spec, {"capacity": ANY_CAPACITY})
    folder = None if out is None else Path(out)
    text = _native.wa(
        stack.text,
        stack.origin,
        pairs(settings),
        {"separations": separations, **options},
        trainer=hand_out(trainer),
        threads=natural("threads", threads),
        out=None if folder is None else os.fspath(folder),
        force=force,
        progress=progress,
    )
    return Amplification(load_answer(AmplificationAnswer, json.loads(text)), folder)


def info(trace: TraceLike, *, block: str = "4KiB", progress: Progress | None = None) -> TraceInfo:
    """Return what a trace holds: requests, sizes, rate, working set, re-use, per volume.

    `trace` is a path, a frame, or a `Trace` that also says how to read it. `block` is the unit of
    working set and re-use distances. Errors: `TraceError`, `SpecError`.
    """
    found = opened(trace)
    text = _native.info(
        found.path,
        found.how.format,
        found.how.on_bad_record,
        dict(found.how.options),
        block=block,
        volume=found.how.volume,
        progress=progress,
    )
    document = json.loads(text)
    document["path"] = found.name
    return load_answer(TraceInfo, document)


def natural(name: str, number: int) -> int:
    """Return a number of 0 or more. Errors: `SpecError`, which names the option."""
    if number < 0:
        raise _native.SpecError(f"`{name}`: found {number}, expected 0 or more")
    return number
