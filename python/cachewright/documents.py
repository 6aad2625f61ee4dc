"""Result documents: read back from a folder, and made into polars frames.

For: what `Result` and `Amplification` share. Must never know: what a document holds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import words
from cachewright._native import SpecError

if TYPE_CHECKING:
    import polars as pl


def read(file: Path, expected: str) -> dict[str, Any]:
    """Return the document in `file`. Errors: `SpecError`, naming what was `expected`."""
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"{file}: {words.reason(error)}; expected {expected}") from None
    except ValueError as error:
        raise SpecError(f"{file}: {error}, expected a result document (JSON)") from None
    return document


def frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as a frame; kinds are taken from all of them."""
    import polars as pl

    return pl.DataFrame(list(rows), infer_schema_length=None)
