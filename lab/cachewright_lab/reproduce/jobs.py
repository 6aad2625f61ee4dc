"""Several runs at once, each on one thread, their answers in order.

For: studies of many replays, each too small for all cores. Must never know: what a job does. A job
is given a call-back that says whether to go on, as long calls of the package ask for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from cachewright._native import RunError

if TYPE_CHECKING:
    from cachewright.types import Progress

T = TypeVar("T")
Job = Callable[["Progress"], T]


def each(
    stage: str, jobs: Sequence[Job[T]], threads: int, progress: Progress | None = None
) -> list[T]:
    """Run jobs in parallel; `threads` of 0 uses every core.

    The first job in order that failed raises. `progress` is told how many are done. Errors: what
    jobs raise; `RunError` when cancelled.
    """
    state, stopped, done = threading.Lock(), threading.Event(), 0

    def tell() -> None:
        if progress is not None and progress(stage, done, len(jobs)) is False:
            stopped.set()

    def news(_stage: str, _done: int, _total: int | None) -> bool:
        with state:
            tell()
        return not stopped.is_set()

    def run(job: Job[T]) -> T:
        nonlocal done
        if stopped.is_set():
            raise RunError("cancelled by the progress call-back")
        try:
            answer = job(news)
        except Exception:
            stopped.set()
            raise
        with state:
            done += 1
            tell()
        return answer

    with ThreadPoolExecutor(max_workers=threads or os.cpu_count() or 1) as pool:
        running = [pool.submit(run, job) for job in jobs]
        failures = [failure for one in running if (failure := one.exception()) is not None]
    for failure in failures:
        if not (isinstance(failure, RunError) and "cancelled" in str(failure)):
            raise failure
    return [one.result() for one in running]
