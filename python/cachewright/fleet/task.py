"""A task, what became of it, and running one in the process that was given it.

For: every engine. Must never know: engines, what a task computes. A task names its function as
`module:function`; arguments and value are plain (JSON), so that every engine carries the same
bytes. An error of Cachewright would come again and is final; a lack of memory, an error of the
operating system or a lost worker may not, and is worth another attempt. Units: bytes, seconds.
"""

from __future__ import annotations

import importlib
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MEMORY_BYTES = 512 << 20
"""What a task is taken to need unless it declares otherwise."""
RETRIES = 3
# Units of `ru_maxrss`: kibibytes, on macOS bytes.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Task:
    """One volume or one case."""

    key: str
    """Names the task and everything that its value depends on."""

    name: str
    """What a person calls it."""

    work: str
    """The function, as `module:function`; it takes the arguments by name."""

    arguments: Mapping[str, Any]
    memory_bytes: int = MEMORY_BYTES


@dataclass(frozen=True)
class Outcome:
    """The value of a task, or why there is none, with what it took."""

    key: str
    value: Any = None
    error: str | None = None
    again: bool = False
    """Whether another attempt may succeed."""

    seconds: float = 0.0
    peak_bytes: int = 0
    """Largest resident memory of the worker until the task's end."""


def perform(task: Task) -> Outcome:
    """Run a task in this process. An error becomes an outcome; none is raised."""
    from cachewright import _native, words

    started = time.monotonic()
    value, error, again = None, None, False
    try:
        module, function = task.work.split(":")
        value = getattr(importlib.import_module(module), function)(**task.arguments)
    except _native.Error as found:
        error = str(found)
    except MemoryError:
        error, again = "found too little memory, expected more for this task", True
    except OSError as found:
        name = f"{found.filename}: " if found.filename else ""
        error, again = f"{name}{words.reason(found)}", True
    except Exception as found:  # A defect in a task may not end all others.
        error = f"{type(found).__name__}: {found}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT
    return Outcome(task.key, value, error, again, time.monotonic() - started, peak)


def lost(task: Task) -> Outcome:
    """Return the outcome of a task whose worker ended."""
    return Outcome(task.key, None, "the worker ended before the task did", True)
