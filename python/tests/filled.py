"""Answers of which only what a test is about is given; every other field is empty or zero.

For: tests of tables and sentences. Must never know: any class or field.
"""

from __future__ import annotations

import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

from cachewright.documents import load

T = TypeVar("T")
_EMPTY: dict[type, Any] = {str: "", int: 0, float: 0.0, bool: False}


def filled(kind: type[T], given: dict[str, Any]) -> T:
    """Return an answer of what is `given` as JSON values; fields that may be absent are absent."""
    return load(kind, _whole(kind, given))


def _whole(kind: Any, given: Any) -> Any:
    """Return a value of a type, with the fields that it lacks."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        inner = next(part for part in parts if part is not types.NoneType)
        return given if given is None else _whole(inner, given)
    if origin is tuple and parts[-1] is Ellipsis:
        return [_whole(parts[0], one) for one in given or ()]
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        known = dict(given or {})
        required = [one.name for one in fields(kind) if one.default is MISSING]
        lacking = [name for name in required if name not in known]
        return {n: _whole(hints.get(n, Any), known[n]) for n in known} | {
            n: _whole(hints[n], None) for n in lacking
        }
    if given is None:
        return {} if origin is dict else [] if origin is tuple else _EMPTY.get(kind)
    return given
