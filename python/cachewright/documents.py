"""Result documents: read back from a folder, and made into polars frames.

For: what `Result`, `Curves` and `Amplification` share. Must never know: what a document means. A
document of another schema version is refused: its keys may mean something else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cachewright import words
from cachewright._native import SCHEMA_VERSION, Error, SpecError
from cachewright.load import load
from cachewright.record import Record, values

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
VERSION = "cachewright"
SCHEMA = "schema_version"
NAME = "name"
# Characters of a version that a message shows.
_SHOWN = 20


def read(kind: type[T], file: Path, expected: str) -> T:
    """Return the document in `file`, which is of this schema version and fits `kind`.

    Errors: `SpecError`, naming the file, the place in it, what was found and what was `expected`.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
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


def _names(value: object) -> Iterator[str]:
    """Yield the names of a record and of all records in it: those of figures and tables."""
    if isinstance(value, Record):
        for key, held in values(value).items():
            if key == NAME and isinstance(held, str):
                yield held
            yield from _names(held)
    elif isinstance(value, tuple) and value and isinstance(value[0], Record):
        for one in value:
            yield from _names(one)


def _plain(text: str) -> str:
    """Return a text without control characters."""
    return "".join(char if char.isprintable() else "?" for char in text)


def frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as a frame; kinds are taken from all of them."""
    import polars as pl

    return pl.DataFrame(list(rows), infer_schema_length=None)


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
