"""The seam between tasks and where they run, and how often a task is tried.

For: `Engine`, and `engine_of`, which makes one by name. Must never know: what a task computes, how
an engine talks to its workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Protocol

from cachewright._native import SpecError
from cachewright.fleet.task import Outcome, Task

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)


class Engine(Protocol):
    """Runs tasks on workers, each of which has one task at a time."""

    def map(self, tasks: Sequence[Task], retries: int) -> Iterator[Outcome]:
        """Yield the outcome of every task as it ends, in any order.

        A task that failed for a passing reason, or whose worker was lost, is tried again up to
        `retries` times. Leaving the iterator early ends all workers.
        """


class Attempts:
    """How often each task was tried."""

    def __init__(self, retries: int) -> None:
        self.retries, self.failed = retries, dict[str, int]()

    def again(self, outcome: Outcome) -> bool:
        """Return whether the task of an outcome is tried once more; counts its failures."""
        if outcome.error is None or not outcome.again:
            return False
        self.failed[outcome.key] = self.failed.get(outcome.key, 0) + 1
        return self.failed[outcome.key] <= self.retries


def engine_of(
    name: str, *, workers: int = 0, address: str | None = None, memory_bytes: int | None = None
) -> Engine:
    """Return the engine called `name`; `workers` of 0 is one per processor.

    `memory_bytes` is what tasks that run at once may declare together; without it what the machine
    has. Errors: `SpecError` for an unknown engine, an address of `local`, or `ray` not installed.
    """
    if name not in ENGINES:
        raise SpecError(f"`engine`: found `{name}`, expected one of {', '.join(ENGINES)}")
    if name == RAY:
        from cachewright.fleet.on_ray import RayEngine

        return RayEngine(workers, address, memory_bytes)
    if address is not None:
        raise SpecError(f"`address`: found `{address}` for engine `{name}`, expected engine `ray`")
    from cachewright.fleet.local import LocalEngine

    return LocalEngine(workers or processors(), memory_bytes or machine_bytes())


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_bytes() -> int:
    """Return the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
