"""Documents as records: built from parsed JSON, and written back.

For: readers of answers that want attributes which a type checker knows. Must never know: any class
or key. A number in a document is refused where the class has an integer; an integer is accepted as
a number. A key that the class does not have is refused. The place of a value that is refused is
put together only then.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from cachewright._native import SpecError
from cachewright.record import Record, fields_of, values

T = TypeVar("T")
# Builds a value of one type, or raises `_Refused`.
_Build = Callable[[Any], Any]

_WORDS: dict[type, str] = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


class _Refused(Exception):
    """A value that does not fit: its place below the value that is built, and why."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(why)
        self.place, self.why = place, why

    def below(self, place: str) -> _Refused:
        return _Refused(place + self.place, self.why)


def load(kind: type[T], value: object, where: str = "document") -> T:
    """Return parsed JSON as a record of a class of `cachewright.answers`.

    Errors: `SpecError`, which says where in the document, what was found and what was expected.
    """
    found: T = _built(_builder(typing.cast(Any, kind)), value, where)
    return found


def load_all(kind: type[T], value: object, where: str = "document") -> tuple[T, ...]:
    """Return a parsed JSON list as records of one class. Errors: like `load`."""
    found: tuple[T, ...] = _built(_items(_builder(typing.cast(Any, kind))), value, where)
    return found


def dump(value: object) -> object:
    """Return what `load` or `load_all` built as JSON values; absent keys are absent again."""
    if isinstance(value, Record):
        return table(value)
    if isinstance(value, Mapping):
        return {name: dump(held) for name, held in value.items()}
    if isinstance(value, tuple | list):
        return [dump(held) for held in value]
    return value


def table(record: Record) -> dict[str, Any]:
    """Return a record as JSON values by field."""
    return {name: dump(held) for name, held in values(record).items()}


def _built(build: _Build, value: object, where: str) -> Any:
    try:
        return build(value)
    except _Refused as refused:
        raise SpecError(f"{where}{refused.place}: {refused.why}") from None


def _other(value: object, expected: str) -> _Refused:
    kind = "null" if value is None else _WORDS.get(type(value), type(value).__name__)
    return _Refused("", f"found {kind}, expected {expected}")


def _first_refused(pairs: Iterable[tuple[str, _Build, object]]) -> _Refused:
    """Return why the first value that does not fit is refused, with its place."""
    for place, build, value in pairs:
        try:
            build(value)
        except _Refused as refused:
            return refused.below(place)
    raise AssertionError("a value that was refused is accepted")


@cache
def _builder(kind: Any) -> _Build:
    """Return what builds values of a type as annotations write it."""
    if kind is Any:
        return lambda value: value
    if isinstance(kind, type) and issubclass(kind, Record):
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

    def build(value: Any) -> Any:
        if type(value) in accepted:
            return value
        raise _other(value, _WORDS[kind])

    return build


def _nullable(inner: _Build) -> _Build:
    return lambda value: None if value is None else inner(value)


def _items(inner: _Build) -> _Build:
    def build(value: Any) -> Any:
        if not isinstance(value, list):
            raise _other(value, "a list")
        try:
            return tuple(map(inner, value))
        except _Refused:
            pairs = ((f"[{at}]", inner, held) for at, held in enumerate(value))
            raise _first_refused(pairs) from None

    return build


def _row(parts: list[_Build]) -> _Build:
    def build(value: Any) -> Any:
        if not isinstance(value, list):
            raise _other(value, "a list")
        if len(value) != len(parts):
            raise _Refused("", f"found {len(value)} values, expected {len(parts)}")
        try:
            return tuple(part(held) for part, held in zip(parts, value, strict=True))
        except _Refused:
            each = enumerate(zip(parts, value, strict=True))
            raise _first_refused((f"[{at}]", part, held) for at, (part, held) in each) from None

    return build


def _names(inner: _Build) -> _Build:
    def build(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _other(value, "an object")
        try:
            return {name: inner(held) for name, held in value.items()}
        except _Refused:
            pairs = ((f".{name}", inner, held) for name, held in value.items())
            raise _first_refused(pairs) from None

    return build


@cache
def _type_of(text: str, module: str) -> Any:
    """Return the type that an annotation in a module writes; most are written many times."""
    holder = types.SimpleNamespace(__annotations__={text: text})
    return typing.get_type_hints(holder, vars(sys.modules[module]))[text]


def _record(kind: type[Record]) -> _Build:
    """Return what builds a record; the builders of its fields are made with the first one."""
    inner: dict[str, _Build] = {}
    required: set[str] = set()

    def prepare() -> None:
        for name, text in fields_of(kind).items():
            inner[name] = _builder(_type_of(text, kind.__module__))
        required.update(name for name in inner if not hasattr(kind, name))

    def build(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _other(value, "an object")
        if not inner:
            prepare()
        if not required <= value.keys():
            missing = next(name for name in inner if name in required and name not in value)
            raise _Refused("", f"found no key `{missing}`, expected one")
        if not value.keys() <= inner.keys():
            unknown = next(name for name in value if name not in inner)
            text = f"found key `{unknown}`, which `{kind.__name__}` does not have"
            raise _Refused("", text)
        try:
            return kind.of({name: inner[name](held) for name, held in value.items()})
        except _Refused:
            pairs = ((f".{name}", inner[name], held) for name, held in value.items())
            raise _first_refused(pairs) from None

    return build
