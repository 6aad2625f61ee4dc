"""What can stand in a stack file: the entries of each stage.

For: `cachewright.list`, the command of that name, and checks of names. Must never know: any name.
"""

from __future__ import annotations

import builtins
import json
from typing import Any

from cachewright import _native


def list(stage: str) -> builtins.list[dict[str, Any]]:
    """Return the entries of a stage: `policies`, `partitions`, `formats`, `schemes` and so on.

    Each entry has `name`, `doc`, `source` and more; `cachewright list --help` names the stages.
    Errors: `SpecError` for an unknown stage, with the nearest one.
    """
    entries: builtins.list[dict[str, Any]] = json.loads(_native.entries(stage))
    return entries
