"""Documents as classes: built from parsed JSON, and written back.

For: readers of answers that want attributes which a type checker knows. Must never know: any class
or key. A number in a document is refused where the class has an integer; an integer is accepted as
a number. A key that the class does not have is refused.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from cachewright._native import SpecError

T = TypeVar("T")
# Builds a value of one type; the text says where it stands.
_Build = Callable[[object, str], Any]

_WORDS: dict[type, str] = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def load(kind: type[T], value: object, where: str = "document") -> T:
    """Return parsed JSON as an object of a class of `cachewright.answers`.

    Errors: `SpecError`, which says where in the document, what was found and what was expected.
    """
    shape: Any = kind
    found: T = _builder(shape)(value, where)
    return found


def load_all(kind: type[T], value: object, where: str = "document") -> tuple[T, ...]:
    """Return a parsed JSON list as objects of one class. Errors: like `load`."""
    shape: Any = kind
    found: tuple[T, ...] = _items(_builder(shape))(value, where)
    return found


def dump(value: object) -> object:
    """Return what `load` or `load_all` built as JSON values; absent keys are absent again."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        keys = dataclasses.fields(value)
        pairs = ((key, getattr(value, key.name)) for key in keys)
        return {
            key.name: dump(held)
            for key, held in pairs
            if held is not None or not key.metadata.get("absent")
        }
    if isinstance(value, Mapping):
        return {name: dump(held) for name, held in value.items()}
    if isinstance(value, tuple | list):
        return [dump(held) for held in value]
    return value


def _refuse(where: str, value: object, expected: str) -> SpecError:
    kind = "null" if value is None else _WORDS.get(type(value), type(value).__name__)
    return SpecError(f"{where}: found {kind}, expected {expected}")


@cache
def _builder(kind: Any) -> _Build:
    """Return what builds values of a type as annotations write it."""
    if kind is Any:
        return lambda value, _: value
    if dataclasses.is_dataclass(kind):
        return _record(kind)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        return _nullable(_builder(next(part for part in parts if part is not types.NoneType)))
    if origin is tuple and parts[-1] is Ellipsis:
        return _items(_builder(parts[0]))
    if origin is tuple:
        return _row([_builder(part) for part in parts])
    if origin is dict:
        return _names(_builder(parts[1]))
    return _plain(kind)


def _plain(kind: type) -> _Build:
    accepted = (int, float) if kind is float else (kind,)

    def build(value: object, where: str) -> Any:
        if isinstance(value, accepted) and isinstance(value, bool) == (kind is bool):
            return value
        raise _refuse(where, value, _WORDS[kind])

    return build


def _nullable(inner: _Build) -> _Build:
    return lambda value, where: None if value is None else inner(value, where)


def _items(inner: _Build) -> _Build:
    def build(value: object, where: str) -> Any:
        if not isinstance(value, list):
            raise _refuse(where, value, "a list")
        return tuple(inner(held, f"{where}[{at}]") for at, held in enumerate(value))

    return build


def _row(parts: list[_Build]) -> _Build:
    def build(value: object, where: str) -> Any:
        if not isinstance(value, list):
            raise _refuse(where, value, "a list")
        if len(value) != len(parts):
            raise SpecError(f"{where}: found {len(value)} values, expected {len(parts)}")
        each = enumerate(zip(parts, value, strict=True))
        return tuple(part(held, f"{where}[{at}]") for at, (part, held) in each)

    return build


def _names(inner: _Build) -> _Build:
    def build(value: object, where: str) -> Any:
        if not isinstance(value, dict):
            raise _refuse(where, value, "an object")
        return {name: inner(held, f"{where}.{name}") for name, held in value.items()}

    return build


def _record(kind: Any) -> _Build:
    hints = typing.get_type_hints(kind)
    inner = {key.name: _builder(hints[key.name]) for key in dataclasses.fields(kind)}
    required = [key.name for key in dataclasses.fields(kind) if key.default is dataclasses.MISSING]

    def build(value: object, where: str) -> Any:
        if not isinstance(value, dict):
            raise _refuse(where, value, "an object")
        missing = [name for name in required if name not in value]
        if missing:
            raise SpecError(f"{where}: found no key `{missing[0]}`, expected one")
        unknown = [name for name in value if name not in inner]
        if unknown:
            text = f"{where}: found key `{unknown[0]}`, which `{kind.__name__}` does not have"
            raise SpecError(text)
        return kind(**{name: inner[name](held, f"{where}.{name}") for name, held in value.items()})

    return build
