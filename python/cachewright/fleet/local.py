"""The engine of processes on this machine.

For: `LocalEngine`. Must never know: what a task computes. A worker is a fresh process (`spawn`), so
that no thread or lock of this one is copied. A worker that is killed costs one attempt of its task
and is replaced. A task starts when the declared memory of all that run leaves room for it, or when
nothing runs.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from cachewright.fleet.engine import Attempts
from cachewright.fleet.task import Outcome, Task, lost, perform


class LocalEngine:
    """Processes of this machine, one task each."""

    def __init__(self, workers: int, memory_bytes: int) -> None:
        self.workers, self.memory_bytes = max(1, workers), memory_bytes

    def map(self, tasks: Sequence[Task], retries: int) -> Iterator[Outcome]:
        """Yield the outcome of every task as it ends; see `Engine`."""
        pool = _Pool(min(self.workers, len(tasks)), self.memory_bytes)
        waiting, attempts = deque(tasks), Attempts(retries)
        try:
            while waiting or pool.is_busy():
                while waiting and pool.start(waiting[0]):
                    waiting.popleft()
                for task, outcome in pool.ended():
                    if attempts.again(outcome):
                        waiting.append(task)
                    else:
                        yield outcome
        finally:
            pool.close()


class _Worker:
    """A process and the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.task: Task | None = None

    def receive(self) -> Outcome | None:
        """Return what the worker sent; None when it has ended."""
        try:
            found: Outcome = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return found

    def close(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


class _Pool:
    """Workers, and the memory that their tasks declare."""

    def __init__(self, workers: int, memory_bytes: int) -> None:
        self.limit, self.left_bytes = workers, memory_bytes
        self.workers: list[_Worker] = []

    def is_busy(self) -> bool:
        return any(worker.task is not None for worker in self.workers)

    def start(self, task: Task) -> bool:
        """Give a task to a worker if one is free and the memory suffices."""
        if self.is_busy() and task.memory_bytes > self.left_bytes:
            return False
        worker = next((one for one in self.workers if one.task is None), None)
        if worker is None:
            if len(self.workers) >= self.limit:
                return False
            worker = _Worker()
            self.workers.append(worker)
        worker.task = task
        self.left_bytes -= task.memory_bytes
        # A worker that has ended is found by `ended`.
        with suppress(OSError):
            worker.pipe.send(task)
        return True

    def ended(self) -> list[tuple[Task, Outcome]]:
        """Wait for a worker; return the tasks that ended, lost ones too."""
        busy = {worker.pipe: worker for worker in self.workers if worker.task is not None}
        found = []
        for pipe in wait(list(busy)):
            worker = busy[pipe]  # type: ignore[index]
            task, outcome = worker.task, worker.receive()
            if task is None:
                continue
            worker.task = None
            self.left_bytes += task.memory_bytes
            if outcome is None:
                worker.close()
                self.workers.remove(worker)
            found.append((task, outcome or lost(task)))
        return found

    def close(self) -> None:
        """End every worker."""
        for worker in self.workers:
            worker.close()


def _work(pipe: Connection) -> None:
    """Run tasks until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A worker is one processor.
    for name in ("POLARS_MAX_THREADS", "RAYON_NUM_THREADS"):
        os.environ[name] = "1"
    while True:
        try:
            task = pipe.recv()
            pipe.send(perform(task))
        except (EOFError, OSError):
            return
