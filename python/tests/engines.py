"""Engines that tests run on, and tasks that fail, vanish or say where they ran.

For: tests of fleets. Must never know: what commands compute. Tests on Ray are skipped where it is
not installed.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from cachewright import SpecError

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(
    not HAS_RAY, reason="ray is not installed (pip install 'cachewright[fleet]')"
)
ENGINES = ["local", pytest.param("ray", marks=needs_ray)]
WORK = f"{__name__}:"


def double(number: int) -> int:
    return 2 * number


def refuse(number: int) -> int:
    raise SpecError(f"found {number}, expected another")


def defect(number: int) -> float:
    return number / 0


def vanish_once(folder: str, number: int) -> int:
    """End the worker the first time, as the kernel does when memory is short."""
    return _once(folder, number, lambda: os.kill(os.getpid(), signal.SIGKILL))


def starve_once(folder: str, number: int) -> int:
    def starve() -> None:
        raise MemoryError

    return _once(folder, number, starve)


def vanish(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def overlap(folder: str, number: int) -> int:
    """Return how many such tasks run at once, this one included."""
    mark = Path(folder) / f"running-{number}"
    mark.touch()
    deadline = 20
    for _ in range(deadline):
        time.sleep(0.01)
    count = len(list(Path(folder).glob("running-*")))
    mark.unlink()
    return count


def _once(folder: str, number: int, act: Any) -> int:
    mark = Path(folder) / f"tried-{number}"
    if not mark.exists():
        mark.touch()
        act()
    return 2 * number
