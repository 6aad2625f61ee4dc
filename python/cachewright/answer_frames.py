"""The answer of a command beside the frames that are made of it.

For: what `run`, `mrc` and `wa` return. Must never know: any command, how frames are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cachewright.documents import table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Answer = TypeVar("Answer", bound="DataclassInstance")


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
