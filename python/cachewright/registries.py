"""What can stand in a stack file: the entries of each stage.

For: `cachewright.list`, the command of that name, and checks of names. Must never know: any name of
an entry.
"""

from __future__ import annotations

import json
from typing import Literal, overload

from cachewright import _native
from cachewright.answers import DOCUMENTS, FormatEntry, NamedSchemeEntry, SchemeEntry
from cachewright.documents import load_all

Entry = SchemeEntry | NamedSchemeEntry | FormatEntry
# Stages whose entries are schemes with settings.
Registry = Literal[
    "policies",
    "partitions",
    "layouts",
    "characterizers",
    "separations",
    "reclaims",
    "devices",
]


@overload
def list(stage: Registry) -> tuple[SchemeEntry, ...]: ...
@overload
def list(stage: Literal["formats"]) -> tuple[FormatEntry, ...]: ...
@overload
def list(stage: Literal["schemes"]) -> tuple[NamedSchemeEntry, ...]: ...
@overload
def list(stage: str) -> tuple[Entry, ...]: ...
def list(stage: str) -> tuple[Entry, ...]:
    """Return the entries of a stage: `policies`, `partitions`, `formats`, `schemes` and so on.

    Each entry has `name`, `doc`, `source` and more (docs/result.md); `cachewright list --help`
    names the stages. Errors: `SpecError` for an unknown stage, with the nearest one.
    """
    entries = json.loads(_native.entries(stage))
    kind = DOCUMENTS.get(f"list {stage}", DOCUMENTS["list"])
    found: tuple[Entry, ...] = load_all(kind, entries, stage)
    return found
