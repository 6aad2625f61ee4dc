"""What every class of `cachewright.answers` is: a frozen record of named fields.

For: classes that only declare fields, 80 of them made in the time that one of `dataclasses` takes
to make. Must never know: any class or field. A field that was not given is not among the values of
a record; read as an attribute it is `None`.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, Self, dataclass_transform

_NOT_GIVEN: Final = object()


def absent() -> Any:
    """Return the default of a field whose key may be absent from a document."""
    return _NOT_GIVEN


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(absent,))
class Record:
    """Values by field; two are equal when they are of one class and have the same values."""

    def __init_subclass__(cls) -> None:
        for name, value in list(vars(cls).items()):
            if value is _NOT_GIVEN:
                setattr(cls, name, None)

    def __init__(self, **values: Any) -> None:
        fields = fields_of(type(self))
        unknown = [name for name in values if name not in fields]
        missing = [name for name in fields if name not in values and not hasattr(type(self), name)]
        if unknown or missing:
            raise TypeError(f"{type(self).__name__}: {unknown=}, {missing=}")
        vars(self).update(values)

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """Return a record of values that are known to be its fields'."""
        found = object.__new__(cls)
        vars(found).update(values)
        return found

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


def fields_of(kind: type[Record]) -> dict[str, Any]:
    """Return the fields of a class in order, as annotations write them."""
    return kind.__annotations__


def values(record: Record) -> dict[str, Any]:
    """Return a record's values by field; what was absent is absent."""
    return dict(vars(record))
