"""What a user means by a stack: a file, a mapping, or one trace; always as stack text and origin.

For: turning each of them into the TOML text that the experiment room reads. Must never know: which
keys a stack has (the experiment room checks them). Units stay as the user wrote them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from cachewright import words
from cachewright._native import SpecError

PathLike: TypeAlias = str | os.PathLike[str]
SpecLike: TypeAlias = PathLike | Mapping[str, Any]
Settings: TypeAlias = Mapping[str, Any]

STACK_SUFFIX = ".toml"


class Stack(NamedTuple):
    """A stack file's text and the path that its relative trace paths start from."""

    text: str
    origin: str


@dataclass(frozen=True)
class TraceOptions:
    """How to open a trace; the defaults recognise the format and fail on a malformed record."""

    format: str | None = None
    on_bad_record: str = "fail"
    options: Mapping[str, str] = field(default_factory=dict)
    volume: str | None = None

    def tenant_keys(self) -> dict[str, Any]:
        """Return the keys of a `[[tenant]]` table that say the same."""
        keys: dict[str, Any] = {"on_bad_record": self.on_bad_record}
        if self.format is not None:
            keys["format"] = self.format
        if self.volume is not None:
            keys["volume"] = self.volume
        if self.options:
            keys["options"] = dict(self.options)
        return keys


def is_stack_path(path: PathLike) -> bool:
    """Return whether `path` names a stack file rather than a trace."""
    return Path(path).suffix == STACK_SUFFIX


def load(spec: SpecLike) -> Stack:
    """Return the text of a stack file or mapping.

    Relative trace paths start from the stack file's folder; those of a mapping from the current
    folder. Errors: `SpecError` when the file cannot be read.
    """
    if isinstance(spec, Mapping):
        return Stack(toml_text(spec), "stack")
    try:
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


def of_trace(
    trace: PathLike, options: TraceOptions, cache: Settings, replay: Settings | None = None
) -> Stack:
    """Return a stack with `trace` as its only tenant and `cache` as its `[cache]` table."""
    name = Path(trace).name.split(".")[0] or "trace"
    tenant = {"name": name, "trace": os.fspath(trace), **options.tenant_keys()}
    tables: dict[str, Any] = {"name": name, "cache": dict(cache), "tenant": [tenant]}
    if replay:
        tables["replay"] = dict(replay)
    return Stack(toml_text(tables), "stack")


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
