"""What `run` and `compare` replay: a stack file or traces, and what is set or varied.

For: turning their options into a stack, settings and values to try. Must never know: how cases are
run. On a stack file `--policy`, `--capacity`, `--partition` and `--block` are short for `--set`
(`run`) or `--vary` (`compare`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cachewright._native import SpecError
from cachewright.cli import options, parsing
from cachewright.cli.replay import Job
from cachewright.stack import (
    ALL,
    USUAL_CAPACITIES,
    USUAL_CAPACITY,
    USUAL_POLICIES,
    SpecLike,
    expanded,
    is_recording,
    is_stack_path,
    of_traces,
    recording_notes,
    short,
)

CACHE_KEYS = ("policy", "capacity", "partition", "block")
# Policies that take most of the time of a comparison, and what they take.
PRICED = {"lrb": "learns as it goes: about 30 us per access, a hundred times what lru takes"}


def of_run(
    sources: Sequence[Path],
    cache: options.CacheArgs,
    trace: options.TraceArgs,
    set: list[str] | None,
) -> Job:
    """Return what `run` replays: one case. Errors: `SpecError`, also for several values."""
    settings = parsing.settings(set)
    for key, values in cache.values().items():
        if len(values) > 1 or values == [ALL]:
            raise SpecError(
                f"--{key}: found `{','.join(values)}`, expected one value; `compare` tries several"
            )
        settings[key] = values[0]
    stack = _stack(sources, trace)
    notes = _notes(sources, trace)
    if not isinstance(stack, Path) and not _gives("capacity", settings):
        notes.append(f"capacity {USUAL_CAPACITY}, a share of the working set; --capacity sets it")
    return Job(stack, settings, {}, notes, _nameable(sources, trace))


def of_compare(
    sources: Sequence[Path],
    cache: options.CacheArgs,
    trace: options.TraceArgs,
    set: list[str] | None,
    vary: list[str] | None,
) -> Job:
    """Return what `compare` replays: all combinations. Errors: `SpecError`, also without any."""
    settings, found = parsing.settings(set), parsing.vary(vary or [])
    for key, values in cache.values().items():
        same = next((other for other in found if short(other) == key), key)
        found[same] = [*found.get(same, []), *values]
    stack, notes = _stack(sources, trace), _notes(sources, trace)
    if isinstance(stack, Path):
        if not found:
            raise SpecError(
                "found nothing to compare, expected --policy, --capacity, --partition, --block or "
                "--vary KEY=V1,V2"
            )
    else:
        for key, chosen in (("policy", USUAL_POLICIES), ("capacity", USUAL_CAPACITIES)):
            if not _gives(key, settings) and not _gives(key, found):
                found[key] = list(chosen)
                notes.append(f"{key} {', '.join(chosen)}; --{key} chooses others")
    found, left_out = expanded(stack, found, settings)
    notes += [f"{key}=all leaves out {name}: {reason}" for key, name, reason in left_out]
    asked = next((values for key, values in cache.values().items() if key == "policy"), [])
    if asked == [ALL]:
        notes += [f"policy=all has {name}, which {price}" for name, price in PRICED.items()]
    return Job(stack, settings, found, notes, _nameable(sources, trace))


def of_volume(
    cache: options.CacheArgs, set: list[str] | None, vary: list[str] | None
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return what is varied on each volume of a dataset, and what is set. Errors: `SpecError`."""
    settings, found = parsing.settings(set), parsing.vary(vary or [])
    for key, values in cache.values().items():
        found[key] = [*found.get(key, []), *values]
    for key, chosen in (("policy", USUAL_POLICIES), ("capacity", USUAL_CAPACITIES)):
        if not _gives(key, settings) and not _gives(key, found):
            found[key] = list(chosen)
    return found, settings


def _nameable(sources: Sequence[Path], trace: options.TraceArgs) -> Sequence[Path]:
    """Return the sources if their names alone say how they are read; else none."""
    return () if trace.given() else sources


def _gives(key: str, keys: dict[str, str] | dict[str, list[str]]) -> bool:
    return any(short(other) == key for other in keys)


def _notes(sources: Sequence[Path], trace: options.TraceArgs) -> list[str]:
    if any(is_stack_path(path) for path in sources):
        return []
    return recording_notes(sources, trace.join)


def _stack(sources: Sequence[Path], trace: options.TraceArgs) -> SpecLike:
    """Return a stack file as it is, or a stack of the traces. Errors: `SpecError`."""
    stack = options.stack_alone(sources, trace)
    if stack is not None:
        return stack
    if is_recording(sources, trace.join):
        return of_traces([list(sources)], trace.options())
    return of_traces(sources, trace.options())
