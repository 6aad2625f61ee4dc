"""Several runs at once, each on one thread, their answers in order.

For: studies of many replays, each too small for all cores. Must never know: what a job does. A job
is given a call-back that says whether to go on, as long calls of the package ask for.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from cachewright import words
from cachewright._native import RunError

if TYPE_CHECKING:
    from cachewright.types import Progress

T = TypeVar("T")
Job = Callable[["Progress"], T]
# The share of a job whose last stage is done, and which has not ended.
NEARLY = 0.99


def each(
    stage: str, jobs: Sequence[Job[T]], threads: int, progress: Progress | None = None
) -> list[T]:
    """Run jobs in parallel; `threads` of 0 uses every core.

    The first job in order that failed raises. `progress` is told the percent that is done: each job
    counts alike, one under way by the largest share that a stage of it has told. So the time left
    is known long before the first job ends. Errors: what jobs raise; `RunError` when cancelled.
    """
    state, stopped = threading.Lock(), threading.Event()
    shares = [0.0] * len(jobs)
    title = f"{stage}, {words.counted(len(jobs), 'job')}, percent"

    def tell() -> None:
        percent = math.floor(100 * sum(shares) / len(jobs))
        if progress is not None and progress(title, percent, 100) is False:
            stopped.set()

    def run(at: int, job: Job[T]) -> T:
        def news(_stage: str, done: int, total: int | None) -> bool:
            with state:
                if total:
                    shares[at] = max(shares[at], min(done / total, NEARLY))
                tell()
            return not stopped.is_set()

        if stopped.is_set():
            raise RunError("cancelled by the progress call-back")
        try:
            answer = job(news)
        except Exception:
            stopped.set()
            raise
        with state:
            shares[at] = 1.0
            tell()
        return answer

    with ThreadPoolExecutor(max_workers=threads or os.cpu_count() or 1) as pool:
        running = [pool.submit(run, at, job) for at, job in enumerate(jobs)]
        failures = [failure for one in running if (failure := one.exception()) is not None]
    for failure in failures:
        if not (isinstance(failure, RunError) and "cancelled" in str(failure)):
            raise failure
    return [one.result() for one in running]
