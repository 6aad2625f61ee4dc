"""A stack as text and origin, and settings as the text that a command line would carry.

For: whatever runs a stack; a stack file alone needs nothing else of the package. Must never know:
traces, which keys a stack has (the experiment crate checks them). Units stay as the user wrote
them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cachewright._native import SpecError

if TYPE_CHECKING:
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
