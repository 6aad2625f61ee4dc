"""The engine of Ray: processes of this machine, or of a cluster.

For: `RayEngine`. Must never know: what a task computes. Without an address Ray is started in this
process and ended with it; nodes of a cluster need Cachewright installed and the traces within
reach. Ray places a task by one processor and its declared memory. Ray itself repeats nothing:
attempts are counted as on the other engine.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from cachewright._native import RunError, SpecError
from cachewright.fleet.engine import Attempts, processors
from cachewright.fleet.task import Outcome, Task, lost, perform

AHEAD = 4
"""Tasks handed to Ray per processor, so that its queue is short however many tasks there are."""
MISSING = "found no `ray`, expected it for this engine: pip install 'cachewright[fleet]'"


class RayEngine:
    """Workers of Ray, one task each."""

    def __init__(self, workers: int, address: str | None, memory_bytes: int | None) -> None:
        self.ray = _ray()
        self.workers, self.address, self.memory_bytes = workers, address, memory_bytes

    def map(self, tasks: Sequence[Task], retries: int) -> Iterator[Outcome]:
        """Yield the outcome of every task as it ends; see `Engine`."""
        ray = self.ray
        is_own = not ray.is_initialized()
        if is_own:
            self._start()
        running: dict[Any, Task] = {}
        try:
            resources = ray.cluster_resources()
            memory = float(resources.get("memory", 0.0))
            work = ray.remote(num_cpus=1, max_retries=0)(perform)
            ahead = AHEAD * max(1, int(resources.get("CPU", 1)))
            waiting, attempts = deque(tasks), Attempts(retries)
            while waiting or running:
                while waiting and len(running) < ahead:
                    task = waiting.popleft()
                    # A task that declares more than there is runs alone.
                    needs = min(float(task.memory_bytes), memory)
                    running[work.options(memory=needs).remote(task)] = task
                for reference in ray.wait(list(running), num_returns=1)[0]:
                    task = running.pop(reference)
                    outcome = self._outcome(reference, task)
                    if attempts.again(outcome):
                        waiting.append(task)
                    else:
                        yield outcome
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            if is_own:
                ray.shutdown()

    def _start(self) -> None:
        # No report of its use to Ray's makers, and no colours or copies of workers' output.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options: dict[str, Any] = {"address": self.address}
        if self.address is None:
            options = {"num_cpus": self.workers or processors(), "include_dashboard": False}
            if self.memory_bytes is not None:
                options["_memory"] = self.memory_bytes
        try:
            self.ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            where = self.address or "this machine"
            raise RunError(f"ray at {where}: {error}") from None

    def _outcome(self, reference: Any, task: Task) -> Outcome:
        try:
            found: Outcome = self.ray.get(reference)
        except self.ray.exceptions.RayError:
            return lost(task)
        return found


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise SpecError(MISSING) from None
    return ray
