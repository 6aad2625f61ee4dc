"""What a user means by a stack: a file, a mapping, or one trace; always as stack text and origin.

For: turning each of them into the TOML text that the experiment crate reads. Must never know: which
keys a stack has (the experiment crate checks them), but for the traces of its tenants, which may be
frames. Units stay as the user wrote them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from cachewright import words
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
from cachewright.types import PathLike

__all__ = ["PathLike", "Trace", "TraceLike", "TraceOptions"]

SpecLike: TypeAlias = PathLike | Mapping[str, Any]
StackOrTrace: TypeAlias = "SpecLike | TraceLike"
Settings: TypeAlias = Mapping[str, Any]

STACK_SUFFIX = ".toml"
TENANTS, TRACE = "tenant", "trace"
# As in the experiment room, which refuses longer texts.
MAX_STACK_BYTES = 4 << 20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
MAX_NAME_BYTES = 200
# The name of the row of all tenants.
ALL_TENANTS = "all"


class Stack(NamedTuple):
    """A stack file's text and the path that its relative trace paths start from."""

    text: str
    origin: str
    held: tuple[Opened, ...] = ()
    """Traces that are readable while this value lives."""


def is_stack_path(path: PathLike) -> bool:
    """Return whether `path` names a stack file rather than a trace."""
    return Path(path).suffix == STACK_SUFFIX


def stack_of(spec: StackOrTrace, cache: Settings, replay: Settings | None = None) -> Stack:
    """Return a stack as it is, or one whose only tenant is a trace and whose cache is `cache`."""
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
    try:
        _check_file(Path(spec))
        return Stack(Path(spec).read_text(encoding="utf-8"), os.fspath(spec))
    except OSError as error:
        raise SpecError(
            f"{os.fspath(spec)}: {words.reason(error)}; expected a stack file (TOML)"
        ) from None
    except UnicodeDecodeError as error:
        raise SpecError(
            f"{os.fspath(spec)}: found a byte that is not UTF-8 at offset {error.start}, "
            "expected a stack file (TOML)"
        ) from None


def _check_file(path: Path) -> None:
    """Refuse what is not a file of a stack's size, before anything is read."""
    found = path.stat()
    kind = next((text for is_kind, text in _KINDS if is_kind(found.st_mode)), "")
    if kind:
        raise SpecError(f"{path}: found {kind}, expected a stack file (TOML)")
    if found.st_size > MAX_STACK_BYTES:
        size, limit = words.size(found.st_size), words.size(MAX_STACK_BYTES)
        raise SpecError(f"{path}: found {size}, expected a stack file (TOML) of at most {limit}")


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
    updates = [one.get("model_updates") for one in tenants]
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


def pairs(settings: Settings | None) -> list[tuple[str, str]]:
    """Return settings by dotted key as the text a command line would carry."""
    return [(key, plain(value)) for key, value in (settings or {}).items()]


def vary_pairs(vary: Mapping[str, Sequence[Any]]) -> list[tuple[str, list[str]]]:
    """Return the values to try for each dotted key, as text."""
    for key, values in vary.items():
        if isinstance(values, str) or len(values) == 0:
            raise SpecError(f"`{key}`: found {values!r}, expected a list of at least one value")
    return [(key, [plain(value) for value in values]) for key, values in vary.items()]


def plain(value: Any) -> str:
    """Return a value as command-line text: strings bare, everything else as TOML."""
    return value if isinstance(value, str) else toml_value(value)


def toml_text(tables: Mapping[str, Any]) -> str:
    """Return `tables` as a TOML document of one line per top-level key."""
    return "".join(f"{_key(key)} = {toml_value(item)}\n" for key, item in tables.items())


def toml_value(value: Any) -> str:
    """Return one value as TOML. Errors: `SpecError` for a kind that TOML does not have."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str() | os.PathLike():
            return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            inner = ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items())
            return f"{{{inner}}}"
        case list() | tuple():
            return f"[{', '.join(toml_value(item) for item in value)}]"
    raise SpecError(
        f"found a value of type {type(value).__name__}, expected text, a number, true or false, "
        "a list or a mapping"
    )


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else json.dumps(key, ensure_ascii=False)
