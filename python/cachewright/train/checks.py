"""Checks that the settings of all trainings share.

For: the `check` of each training's settings. Must never know: what a setting means.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright._native import SpecError


def part(name: str, found: float) -> None:
    """Check that a part of a whole leaves something on both sides. Errors: `SpecError`."""
    if not 0.0 < found < 1.0:
        raise SpecError(f"`{name}`: found {found}, expected more than 0 and less than 1")


def counts(settings: object, names: Sequence[str]) -> None:
    """Check that these settings are at least 1. Errors: `SpecError`."""
    for name in names:
        found = getattr(settings, name)
        if found < 1:
            raise SpecError(f"`{name}`: found {found}, expected at least 1")
