"""The JSON documents of commands: read into the classes of `cachewright.answers`, and written back.

A document of another schema version is refused: its keys may mean something else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from cachewright import words
from cachewright._native import SCHEMA_VERSION, Error, SpecError

if TYPE_CHECKING:
    import polars as pl
    from _typeshed import DataclassInstance

T = TypeVar("T")
Answer = TypeVar("Answer", bound="DataclassInstance")
# Gives a value of one type from one of JSON, or raises `_Refused`.
_Reader = Callable[[Any], Any]

_JSON_WORDS: dict[type, str] = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}
VERSION = "cachewright"
SCHEMA = "schema_version"
NAME = "name"
# Characters of a version that a message shows.
_SHOWN = 20


class _Refused(Exception):
    """A value that does not fit: its place below the value that is read, and why."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(why)
        self.place, self.why = place, why

    def below(self, place: str) -> _Refused:
        """Return the same, seen from the value that holds this one."""
        return _Refused(place + self.place, self.why)


def load(kind: type[T], value: object, where: str = "document") -> T:
    """Return parsed JSON as an instance of a class of `cachewright.answers`.

    An integer is accepted where the class has a number, and nothing else in place of another type;
    a key that the class does not have is refused. Errors: `SpecError`, which says where in the
    document, what was found and what was expected.
    """
    found: T = _read(_reader(cast("Any", kind)), value, where)
    return found


def load_all(kind: type[T], value: object, where: str = "document") -> tuple[T, ...]:
    """Return a parsed JSON list as instances of one class. Errors: like `load`."""
    found: tuple[T, ...] = _read(_list_reader(_reader(cast("Any", kind))), value, where)
    return found


def dump(value: object) -> object:
    """Return what `load` or `load_all` gave as JSON values; absent keys are absent again."""
    if is_dataclass(value) and not isinstance(value, type):
        return table(value)
    if isinstance(value, Mapping):
        return {name: dump(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [dump(one) for one in value]
    return value


def table(answer: DataclassInstance) -> dict[str, Any]:
    """Return an answer as JSON values by key."""
    return {name: dump(value) for name, value in values(answer).items()}


def values(answer: DataclassInstance) -> dict[str, Any]:
    """Return the values of an answer by field, but for those that are absent."""
    may_be_absent = _may_be_absent(type(answer))
    return {
        name: value
        for name, value in vars(answer).items()
        if value is not None or name not in may_be_absent
    }


@cache
def _may_be_absent(kind: type[DataclassInstance]) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind) if field.default is None)


def _read(reader: _Reader, value: object, where: str) -> Any:
    try:
        return reader(value)
    except _Refused as refused:
        raise SpecError(f"{where}{refused.place}: {refused.why}") from None


@cache
def _reader(kind: Any) -> _Reader:
    """Return what reads values of a type that an annotation names."""
    if kind is Any:
        return lambda value: value
    if is_dataclass(kind):
        return _class_reader(cast("type[DataclassInstance]", kind))
    origin, parts = get_origin(kind), get_args(kind)
    if origin in {UnionType, Union}:
        inner = _reader(next(part for part in parts if part is not NoneType))
        return lambda value: None if value is None else inner(value)
    if origin is tuple and parts[-1] is Ellipsis:
        return _list_reader(_reader(parts[0]))
    if origin is tuple:
        return _row_reader([_reader(part) for part in parts])
    if origin is dict:
        return _map_reader(_reader(parts[1]))
    return _plain_reader(kind)


def _plain_reader(kind: type) -> _Reader:
    accepted = (int, float) if kind is float else (kind,)

    def read(value: Any) -> Any:
        if type(value) in accepted:
            return value
        raise _other(value, _JSON_WORDS[kind])

    return read


def _list_reader(inner: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise _other(value, "a list")
        found = []
        try:
            for one in value:
                found.append(inner(one))
        except _Refused as refused:
            raise refused.below(f"[{len(found)}]") from None
        return tuple(found)

    return read


def _row_reader(parts: Sequence[_Reader]) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise _other(value, "a list")
        if len(value) != len(parts):
            raise _Refused("", f"found {len(value)} values, expected {len(parts)}")
        found = []
        try:
            for part, one in zip(parts, value, strict=True):
                found.append(part(one))
        except _Refused as refused:
            raise refused.below(f"[{len(found)}]") from None
        return tuple(found)

    return read


def _map_reader(inner: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _other(value, "an object")
        found = {}
        for name, one in value.items():
            try:
                found[name] = inner(one)
            except _Refused as refused:
                raise refused.below(f".{name}") from None
        return found

    return read


def _class_reader(kind: type[DataclassInstance]) -> _Reader:
    """Return what reads instances of a class; its fields are looked at with the first of them."""
    readers: dict[str, _Reader] = {}
    required: set[str] = set()

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _other(value, "an object")
        if not readers:
            hints = get_type_hints(kind)
            readers.update({field.name: _reader(hints[field.name]) for field in fields(kind)})
            required.update(field.name for field in fields(kind) if field.default is MISSING)
        if not required <= value.keys():
            missing = next(name for name in readers if name in required and name not in value)
            raise _Refused("", f"found no key `{missing}`, expected one")
        if not value.keys() <= readers.keys():
            unknown = next(name for name in value if name not in readers)
            text = f"found key `{unknown}`, which `{kind.__name__}` does not have"
            raise _Refused("", text)
        found = {}
        for name, one in value.items():
            try:
                found[name] = readers[name](one)
            except _Refused as refused:
                raise refused.below(f".{name}") from None
        # What `kind(**found)` gives, with the keys in the order of the document: that of columns.
        answer = object.__new__(kind)
        vars(answer).update(found)
        return answer

    return read


def _other(value: object, expected: str) -> _Refused:
    kind = "null" if value is None else _JSON_WORDS.get(type(value), type(value).__name__)
    return _Refused("", f"found {kind}, expected {expected}")


def read(kind: type[T], file: Path, expected: str) -> T:
    """Return the document in `file`, which is of this schema version and fits `kind`.

    Errors: `SpecError`, naming the file, the place in it, what was found and what was `expected`.
    """
    document = of_version(file, expected)
    try:
        found = load(kind, document, "result")
    except SpecError as error:
        raise SpecError(f"{file}: {error}; expected {expected}") from None
    for name in _names(found):
        if name != _plain(name):
            raise SpecError(
                f"{file}: found the name `{_plain(name)}`, expected no control characters in it"
            )
    return found


def of_version(file: Path, expected: str) -> dict[str, Any]:
    """Return the JSON in `file`, which is of this schema version.

    Errors: `SpecError`, naming the file, what was found and what was `expected`.
    """
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"{file}: {words.reason(error)}; expected {expected}") from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{file}: found no JSON ({error}), expected {expected}") from None
    if not isinstance(document, dict) or not isinstance(document.get(VERSION), str):
        raise SpecError(f"{file}: found JSON without a `{VERSION}` version, expected {expected}")
    version = document.get(SCHEMA)
    if type(version) is not int or version != SCHEMA_VERSION:
        shown = "no version" if version is None else f"version `{_plain(str(version)[:_SHOWN])}`"
        raise SpecError(
            f"{file}: found a result of cachewright {_plain(document[VERSION][:_SHOWN])} with "
            f"{shown} of its schema, expected version {SCHEMA_VERSION}; run the command again"
        )
    return document


@contextmanager
def whole(file: Path) -> Iterator[None]:
    """Turn whatever a damaged document in `file` leads to into one sentence.

    Errors: `SpecError`; those of the package itself pass through.
    """
    try:
        yield
    except (Error, OSError):
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        missing = f"no {text}" if isinstance(error, KeyError) else f"{type(error).__name__}: {text}"
        raise SpecError(
            f"{file}: found a damaged result ({missing}), expected what the command wrote; run it "
            "again"
        ) from error


def _names(answer: object) -> Iterator[str]:
    """Yield the names in an answer and in all parts of it: those of figures and tables."""
    if is_dataclass(answer):
        for key, value in vars(answer).items():
            if key == NAME and isinstance(value, str):
                yield value
            yield from _names(value)
    elif isinstance(answer, tuple) and answer and is_dataclass(answer[0]):
        for one in answer:
            yield from _names(one)


def _plain(text: str) -> str:
    """Return a text without control characters."""
    return "".join(char if char.isprintable() else "?" for char in text)


@dataclass(frozen=True)
class AnswerFrames(Generic[Answer]):
    """An answer, and its frames.

    `answer` is the whole result by attributes (docs/result.md), `path` the folder, if any was
    written. The frames are made when first asked for.
    """

    answer: Answer
    path: Path | None = None

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole result, as in the file of the folder."""
        return table(self.answer)


def frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as a frame; kinds are taken from all of them."""
    import polars as pl

    return pl.DataFrame(list(rows), infer_schema_length=None)


def to_pandas(found: pl.DataFrame) -> Any:
    """Return a frame of pandas. Errors: `SpecError` where pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise SpecError("found no pandas, expected it: `pip install pandas`") from None
    return pandas.DataFrame(found.to_dict(as_series=False))


def parquet(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    """Return a Parquet file of a result folder. Errors: `SpecError` when it is damaged."""
    import polars as pl

    try:
        found = pl.read_parquet(file)
    except FileNotFoundError:
        raise SpecError(f"{file}: found no such file, expected it beside the result") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = (" ".join(str(error).split()) or type(error).__name__)[:80]
        raise SpecError(
            f"{file}: found no whole Parquet file ({reason}), expected the one that the run wrote; "
            "run it again"
        ) from None
    missing = [name for name in columns if name not in found.columns]
    if missing:
        raise SpecError(f"{file}: found no column `{missing[0]}`, expected those of a result")
    return found
