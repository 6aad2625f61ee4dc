"""Traces without a stack file as a stack, and what `all` stands for.

For: `run` and `compare` on traces as they are: one tenant per trace, and cache sizes chosen as
shares of the working set. Must never know: formats, or how cases are run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cachewright import _native, source
from cachewright.spec import PathLike, Settings, SpecLike, TraceOptions, load, pairs, vary_pairs

ALL = "all"
POLICY = "lru"
CAPACITY = "10%wss"
POLICIES = ("lru", "arc", "lirs", "sieve", "s3-fifo", "belady")
"""What is compared when no policy is given: well-known ones and the bound."""
CAPACITIES = ("0.1%wss", "1%wss", "10%wss", "40%wss")
"""The sizes compared when none is given, as shares of the working set."""

_CHOICES = ("policy", "partition")
_CACHE = "cache."
_NAMED = 3


def stack_of(
    traces: Sequence[PathLike | Sequence[PathLike]],
    options: TraceOptions,
    cache: Settings | None = None,
) -> dict[str, Any]:
    """Return a stack with one tenant per trace, opened as `options` and the trace itself say.

    A trace may be a list: the files of one recording.

    >>> stack = stack_of(["a/mail.csv.gz", "web.csv", "b/web.csv"], TraceOptions())
    >>> [tenant["name"] for tenant in stack["tenant"]]
    ['mail', 'web', 'web-2']
    >>> stack["cache"]
    {'policy': 'lru', 'capacity': '10%wss'}
    """
    own = [source.opened_as(_first(trace), options) for trace in traces]
    names = names_of([path for path, _ in own])
    shown = names[:_NAMED] if len(names) <= _NAMED + 1 else [*names[:_NAMED], "and-more"]
    tenants = [
        {"name": name, "trace": _files(trace), **how.tenant_keys()}
        for name, trace, (_, how) in zip(names, traces, own, strict=True)
    ]
    table = {"policy": POLICY, "capacity": CAPACITY, **(cache or {})}
    return {"name": "-".join(shown), "cache": table, "tenant": tenants}


def _first(trace: PathLike | Sequence[PathLike]) -> PathLike:
    return trace if isinstance(trace, str | os.PathLike) else trace[0]


def _files(trace: PathLike | Sequence[PathLike]) -> str | list[str]:
    if isinstance(trace, str | os.PathLike):
        return source.split_options(trace)[0]
    paths, own = zip(*(source.split_options(one) for one in trace), strict=True)
    if any(said != own[0] for said in own):
        raise _native.SpecError(
            "found files of one recording that are opened in different ways, expected the same "
            "options behind each; --no-join makes them traces"
        )
    return list(paths)


def names_of(traces: Sequence[PathLike]) -> list[str]:
    """Return a name of its own for each trace: its file name up to the first dot."""
    found: list[str] = []
    for trace in traces:
        stem = Path(trace).name.split(".")[0] or "trace"
        # `all` names the sum of the tenants in tables.
        name, number = stem, 1
        while name in found or name == ALL:
            number += 1
            name = f"{stem}-{number}"
        found.append(name)
    return found


def alike(paths: Sequence[PathLike]) -> list[PathLike]:
    """Return files of one folder whose names differ only in numbers: the first ones that do.

    >>> alike(["x.blktrace.0", "x.blktrace.1", "web.csv"]), alike(["a/h0.csv", "b/h1.csv"])
    (['x.blktrace.0', 'x.blktrace.1'], [])
    """
    groups: dict[str, list[PathLike]] = {}
    for path in paths:
        folder, name = os.path.split(os.fspath(path))
        plain = re.sub(r"[0-9]+", "0", name)
        if plain != name or re.search(r"[0-9]", name):
            groups.setdefault(os.path.join(folder, plain), []).append(path)
    return next((group for group in groups.values() if len(group) > 1), [])


def is_recording(paths: Sequence[PathLike], join: bool | None) -> bool:
    """Return whether files are one recording: as said, else those alike but for a last number.

    >>> is_recording(["x.blktrace.0", "x.blktrace.1"], None), is_recording(["v1.csv"], True)
    (True, True)
    >>> is_recording(["v1.csv", "v2.csv"], None)
    False
    """
    if join is not None:
        return join
    last = [re.fullmatch(r"(.*\.)[0-9]+", os.fspath(path)) for path in paths]
    return len(paths) > 1 and len({one and one[1] for one in last}) == 1 and None not in last


def recording_notes(paths: Sequence[PathLike], join: bool | None) -> list[str]:
    """Return what is said of files that may be parts of one recording, unless that was said."""
    found = [Path(path).name for path in alike(paths)]
    if join is not None or not found:
        return []
    named = f"{found[0]} and {found[1]}" if len(found) == 2 else f"{found[0]} to {found[-1]}"
    if is_recording(paths, join):
        return [f"{named} are read as one recording, by one clock; --no-join makes them traces"]
    return [
        f"{named} differ only in a number and are traces of their own, each from its own start; "
        "--join reads the files of one recording as one"
    ]


def short(key: str) -> str:
    """Return a key of `[cache]` without its table, as options spell it.

    >>> short("cache.policy"), short("replay.loop")
    ('policy', 'replay.loop')
    """
    return key.removeprefix(_CACHE)


def expanded(
    spec: SpecLike, vary: Mapping[str, Sequence[Any]], settings: Settings | None
) -> tuple[dict[str, list[Any]], list[tuple[str, str, str]]]:
    """Replace `all` among the values of policies and partitions by all that can run.

    Returns the values, and of each entry left out: key, name and reason. Errors: `SpecError` when
    the stack is wrong by itself, or when nothing is left.
    """
    found: dict[str, list[Any]] = {key: list(values) for key, values in vary.items()}
    left_out: list[tuple[str, str, str]] = []
    for key in [key for key, values in found.items() if ALL in values and short(key) in _CHOICES]:
        others = {
            other: [value for value in values if value != ALL]
            for other, values in found.items()
            if other != key
        }
        stack = load(spec)
        known = {other: values for other, values in others.items() if values}
        choices = _native.choices(
            stack.text, stack.origin, pairs(settings), vary_pairs(known), short(key)
        )
        left_out += [(short(key), name, reason) for name, reason in choices if reason is not None]
        names = [name for name, reason in choices if reason is None]
        if not names:
            raise _native.SpecError(f"`{short(key)}`: found `all`, of which nothing can run here")
        values: dict[Any, None] = {}
        for value in found[key]:
            values.update(dict.fromkeys(names if value == ALL else [value]))
        found[key] = list(values)
    return found, left_out
