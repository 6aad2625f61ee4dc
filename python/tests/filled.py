"""Records of which only what a test is about is given; every other field is empty or zero.

For: tests of tables and sentences. Must never know: any class or field.
"""

from __future__ import annotations

import types
import typing
from typing import Any, TypeVar

from cachewright.load import load
from cachewright.record import Record, fields_of

T = TypeVar("T", bound=Record)
_EMPTY: dict[type, Any] = {str: "", int: 0, float: 0.0, bool: False}


def filled(kind: type[T], given: dict[str, Any]) -> T:
    """Return a record of what is `given` as JSON values; fields that may be absent are absent."""
    return load(kind, _whole(kind, given))


def _whole(kind: Any, given: Any) -> Any:
    """Return a value of a type, with the fields that it lacks."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        inner = next(part for part in parts if part is not types.NoneType)
        return given if given is None else _whole(inner, given)
    if origin is tuple and parts[-1] is Ellipsis:
        return [_whole(parts[0], one) for one in given or ()]
    if isinstance(kind, type) and issubclass(kind, Record):
        hints = typing.get_type_hints(kind)
        known = dict(given or {})
        lacking = [n for n in fields_of(kind) if n not in known and not hasattr(kind, n)]
        return {n: _whole(hints.get(n, Any), known[n]) for n in known} | {
            n: _whole(hints[n], None) for n in lacking
        }
    if given is None:
        return {} if origin is dict else [] if origin is tuple else _EMPTY.get(kind)
    return given
