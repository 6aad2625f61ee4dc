"""What a user means by a stack: a file, a mapping, or one trace; always as stack text and origin.

For: turning each of them into the TOML text that the experiment crate reads. Must never know: which
keys a stack has (the experiment crate checks them), but for the traces of its tenants, which may be
frames. Units stay as the user wrote them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

from cachewright._native import SpecError
from cachewright.source import (
    Opened,
    Trace,
    TraceLike,
    TraceOptions,
    is_frame,
    is_trace,
    opened,
)
from cachewright.stack_file import (
    STACK_SUFFIX,
    Settings,
    Stack,
    is_stack_path,
    pairs,
    plain,
    read,
    toml_text,
    toml_value,
    vary_pairs,
)
from cachewright.types import PathLike

__all__ = [
    "STACK_SUFFIX",
    "PathLike",
    "Settings",
    "Stack",
    "Trace",
    "TraceLike",
    "TraceOptions",
    "is_stack_path",
    "pairs",
    "plain",
    "toml_text",
    "toml_value",
    "vary_pairs",
]

SpecLike: TypeAlias = PathLike | Mapping[str, Any]
StackOrTrace: TypeAlias = "Stack | SpecLike | TraceLike"

TENANTS, TRACE = "tenant", "trace"
MAX_NAME_BYTES = 200
# The name of the row of all tenants.
ALL_TENANTS = "all"


def stack_of(spec: StackOrTrace, cache: Settings, replay: Settings | None = None) -> Stack:
    """Return a stack as it is, or one whose only tenant is a trace and whose cache is `cache`."""
    if isinstance(spec, Stack):
        return spec
    if isinstance(spec, Mapping):
        return load(spec)
    if isinstance(spec, str | os.PathLike) and is_stack_path(spec):
        return load(spec)
    return of_trace(spec, TraceOptions(), cache, replay)


def load(spec: SpecLike) -> Stack:
    """Return the text of a stack file or mapping.

    Relative trace paths start from the stack file's folder; those of a mapping from the current
    folder. In a mapping a tenant's trace may also be a `Trace` or a frame. Errors: `SpecError` when
    the file cannot be read, is no file or larger than a stack.
    """
    if isinstance(spec, Mapping):
        tables, held = _with_paths(spec)
        return Stack(toml_text(tables), "stack", held)
    if is_trace(spec):
        raise SpecError("found a trace, expected a stack: a file (TOML) or a mapping")
    return read(spec)


def of_trace(
    trace: TraceLike, options: TraceOptions, cache: Settings, replay: Settings | None = None
) -> Stack:
    """Return a stack with `trace` as its only tenant and `cache` as its `[cache]` table.

    `options` say how to read a path; a `Trace` says that itself.
    """
    found = opened(trace, options)
    name = _name_of(found.stem)
    tenant = {"name": name, TRACE: found.path, **found.how.tenant_keys()}
    tables: dict[str, Any] = {"name": name, "cache": dict(cache), TENANTS: [tenant]}
    if replay:
        tables["replay"] = dict(replay)
    return Stack(toml_text(tables), "stack", (found,))


def files_of(spec: StackOrTrace) -> list[Path]:
    """Return the files that a stack or a trace names: those that a command about it reads."""
    import tomllib

    path = spec.path if isinstance(spec, Trace) else spec
    if isinstance(path, str | os.PathLike) and (path is not spec or not is_stack_path(path)):
        return [Path(path)]
    if isinstance(path, list | tuple):
        return [Path(one) for one in path]
    if is_trace(spec):
        return []
    stack = stack_of(spec, {})
    try:
        tables = tomllib.loads(stack.text)
    except tomllib.TOMLDecodeError:
        tables = {}
    tenants = tables.get(TENANTS)
    tenants = [one for one in tenants if isinstance(one, dict)] if isinstance(tenants, list) else []
    named = [one.get(key) for one in tenants for key in (TRACE, "model")]
    updates = [one.get(key) for one in tenants for key in (TRACE, "model_updates")]
    named += [name for files in updates if isinstance(files, list) for name in files]
    folder = Path(stack.origin).parent
    own = [Path(path)] if isinstance(path, str | os.PathLike) else []
    return own + [folder / name for name in named if isinstance(name, str)]


def _with_paths(spec: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Opened, ...]]:
    """Return a stack's tables with every trace as a path, and what keeps those paths readable."""
    tenants = spec.get(TENANTS)
    if not isinstance(tenants, list | tuple):
        return dict(spec), ()
    tables, held = [], []
    for tenant in tenants:
        trace = tenant.get(TRACE) if isinstance(tenant, Mapping) else None
        if isinstance(trace, Trace) or is_frame(trace):
            found = opened(cast("TraceLike", trace))
            held.append(found)
            tables.append({**found.how.tenant_keys(), **tenant, TRACE: found.path})
        else:
            tables.append(tenant)
    return {**spec, TENANTS: tables}, tuple(held)


def _name_of(trace: PathLike) -> str:
    """Return a tenant's name for a trace: its file name up to the first dot, if that is a name."""
    stem = Path(trace).name.split(".")[0]
    plain = "".join(c if c.isprintable() and c != "\\" else "_" for c in stem).strip()
    plain = plain.encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    return plain if plain and plain != ALL_TENANTS else "trace"
