"""Checks that all trainings share: of their settings, and of where a model is to be written.

For: refusing before anything is replayed or trained. Must never know: what a setting means.
"""

from __future__ import annotations

from pathlib import Path

from cachewright._native import SpecError
from cachewright.train.store import SUFFIX
from cachewright.types import PathLike


def part(name: str, found: float) -> None:
    """Check that a part of a whole leaves something on both sides. Errors: `SpecError`."""
    if not 0.0 < found < 1.0:
        raise SpecError(f"`{name}`: found {found}, expected more than 0 and less than 1")


def counts(**settings: int) -> None:
    """Check that settings, by name, are at least 1. Errors: `SpecError`."""
    for name, found in settings.items():
        if found < 1:
            raise SpecError(f"`{name}`: found {found}, expected at least 1")


def folder(out: PathLike | None) -> None:
    """Check that `out` can be a folder of models. Errors: `SpecError`."""
    if out is not None and Path(out).is_file():
        raise SpecError(f"`out`: found the file {Path(out)}, expected a folder")


def model_file(out: PathLike | None, suffix: str = SUFFIX) -> None:
    """Check that `out` can be a model file that ends so. Errors: `SpecError`."""
    if out is None:
        return
    path = Path(out)
    if path.is_dir():
        raise SpecError(f"`out`: found the folder {path}, expected a model file to write")
    if not path.name.endswith(suffix):
        raise SpecError(f"`out`: found {path}, expected a file that ends with {suffix}")
