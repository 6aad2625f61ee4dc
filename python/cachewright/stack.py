"""What a user means by a stack: a file, a mapping, one trace or several; and the text of each.

Rust reads the text and checks keys and values. Units stay as the user wrote them.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from cachewright import _native
from cachewright._native import SpecError
from cachewright.traces import (
    Opened,
    Trace,
    TraceLike,
    TraceOptions,
    is_frame,
    is_trace,
    opened,
    opened_as,
    split_options,
)
from cachewright.types import PathLike

Settings: TypeAlias = Mapping[str, Any]

STACK_SUFFIX = ".toml"
# As in the experiment crate, which refuses longer texts.
MAX_STACK_BYTES = 4 << 20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Stack(NamedTuple):
    """A stack file's text and the path that its relative trace paths start from."""

    text: str
    origin: str
    held: tuple[object, ...] = ()
    """Traces that are readable while this value lives."""


def is_stack_path(path: PathLike) -> bool:
    """Return whether `path` names a stack file rather than a trace."""
    return Path(path).suffix == STACK_SUFFIX


def read(path: PathLike) -> Stack:
    """Return a stack file's text.

    Errors: `SpecError` when the file cannot be read, is no file or larger than a stack.
    """
    try:
        _check_file(Path(path))
        return Stack(Path(path).read_text(encoding="utf-8"), os.fspath(path))
    except OSError as error:
        from cachewright import words

        raise SpecError(
            f"{os.fspath(path)}: {words.reason(error)}; expected a stack file (TOML)"
        ) from None
    except UnicodeDecodeError as error:
        raise SpecError(
            f"{os.fspath(path)}: found a byte that is not UTF-8 at offset {error.start}, "
            "expected a stack file (TOML)"
        ) from None


def _check_file(path: Path) -> None:
    """Refuse what is not a file of a stack's size, before anything is read."""
    found = path.stat()
    kind = next((text for is_kind, text in _KINDS if is_kind(found.st_mode)), "")
    if kind:
        raise SpecError(f"{path}: found {kind}, expected a stack file (TOML)")
    if found.st_size > MAX_STACK_BYTES:
        from cachewright import words

        size, limit = words.size(found.st_size), words.size(MAX_STACK_BYTES)
        raise SpecError(f"{path}: found {size}, expected a stack file (TOML) of at most {limit}")


def mapping(keyword: str, value: Any, expected: str) -> Mapping[str, Any]:
    """Return the mapping that a keyword was given, an empty one for none.

    Errors: `SpecError` naming the keyword for anything else.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise SpecError(f"`{keyword}`: found {value!r}, expected a mapping such as {expected}")
    return value


def pairs(settings: Settings | None) -> list[tuple[str, str]]:
    """Return settings by dotted key as the text a command line would carry."""
    given = mapping("settings", settings, '{"cache.capacity": "64MiB"}')
    return [(key, plain(value)) for key, value in given.items()]


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


ALL = "all"
USUAL_POLICY = "lru"
USUAL_CAPACITY = "10%wss"
USUAL_POLICIES = ("lru", "arc", "lirs", "sieve", "s3-fifo", "belady")
"""What is compared when no policy is given: well-known ones and the bound."""
USUAL_CAPACITIES = ("0.1%wss", "1%wss", "10%wss", "40%wss")
"""The sizes compared when none is given, as shares of the working set."""

_CHOICES = ("policy", "partition")
_CACHE = "cache."
_NAMED = 3


def of_traces(
    traces: Sequence[PathLike | Sequence[PathLike]],
    options: TraceOptions,
    cache: Settings | None = None,
) -> dict[str, Any]:
    """Return a stack with one tenant per trace, opened as `options` and the trace itself say.

    A trace may be a list: the files of one recording.

    >>> stack = of_traces(["a/mail.csv.gz", "web.csv", "b/web.csv"], TraceOptions())
    >>> [tenant["name"] for tenant in stack["tenant"]]
    ['mail', 'web', 'web-2']
    >>> stack["cache"]
    {'policy': 'lru', 'capacity': '10%wss'}
    """
    own = [opened_as(_first(trace), options) for trace in traces]
    names = names_of([path for path, _ in own])
    shown = names[:_NAMED] if len(names) <= _NAMED + 1 else [*names[:_NAMED], "and-more"]
    tenants = [
        {"name": name, "trace": _files(trace), **how.tenant_keys()}
        for name, trace, (_, how) in zip(names, traces, own, strict=True)
    ]
    table = {"policy": USUAL_POLICY, "capacity": USUAL_CAPACITY, **(cache or {})}
    return {"name": "-".join(shown), "cache": table, "tenant": tenants}


def _first(trace: PathLike | Sequence[PathLike]) -> PathLike:
    return trace if isinstance(trace, str | os.PathLike) else trace[0]


def _files(trace: PathLike | Sequence[PathLike]) -> str | list[str]:
    if isinstance(trace, str | os.PathLike):
        return split_options(trace)[0]
    paths, own = zip(*(split_options(one) for one in trace), strict=True)
    if any(said != own[0] for said in own):
        raise SpecError(
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
            raise SpecError(f"`{short(key)}`: found `all`, of which nothing can run here")
        values: dict[Any, None] = {}
        for value in found[key]:
            values.update(dict.fromkeys(names if value == ALL else [value]))
        found[key] = list(values)
    return found, left_out
