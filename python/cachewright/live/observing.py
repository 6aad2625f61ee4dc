"""Traces observed: what a volume's requests are like, also while they go on.

Memory does not grow with the trace, so that `blktrace -o - | cachewright observe -` can run for as
long as the volume does. Units: bytes, nanoseconds.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from cachewright import _native
from cachewright.answers import WorkloadAnswer
from cachewright.documents import load
from cachewright.traces import TraceLike, opened

if TYPE_CHECKING:
    from cachewright.types import Progress

BLOCK = "4KiB"
MEMORY, LIVE_MEMORY = "1GiB", "64MiB"
# Requests that are read at a time: of files, and of what may wait for its next request.
BATCH, LIVE_BATCH = 1 << 16, 1 << 8
STAGE = "reading the trace"


def workload(
    trace: TraceLike,
    *,
    block: str = BLOCK,
    memory: str = MEMORY,
    progress: Progress | None = None,
) -> WorkloadAnswer:
    """Return what a trace's requests are like, and what a cache could do for them.

    `trace` is a path, a frame, or a `Trace`. All its blocks are followed while they fit into
    `memory`, about 144 bytes each; then a sample of them. `cachewright.report.workload` draws the
    answer. Errors: `TraceError`, `SpecError`.
    """
    observer = Observer(trace, block=block, memory=memory)
    while observer.advance():
        if progress is not None:
            progress(STAGE, observer.requests, observer.requests_hint)
    return observer.end()


class Observer:
    """A trace that is read in steps, or by a thread of its own until it ends."""

    def __init__(self, trace: TraceLike, *, block: str = BLOCK, memory: str = MEMORY) -> None:
        """Open a trace. Errors: `TraceError`, `SpecError`."""
        found = opened(trace)
        self.name = found.name
        self._observer = _native.WorkloadObserver(
            found.path,
            found.how.format,
            found.how.on_bad_record,
            dict(found.how.options),
            volume=found.how.volume,
            block=block,
            memory=memory,
        )
        self.requests_hint = self._observer.requests_hint()
        self._ended = threading.Event()
        self._failed: Exception | None = None

    @property
    def requests(self) -> int:
        """The requests counted so far."""
        return self._observer.requests()

    def advance(self, count: int = BATCH) -> bool:
        """Read and count the next requests; return whether the trace goes on."""
        return self._observer.advance(count)

    def start(self) -> None:
        """Read on a thread of its own, which waits for requests as long as they come."""
        threading.Thread(target=self._read, name="observe", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait for the trace's end, so long at most; return whether it ended.

        Errors: what reading it failed with.
        """
        ended = self._ended.wait(seconds)
        if self._failed is not None:
            raise self._failed
        return ended

    def end(self) -> WorkloadAnswer:
        """Return what is known once no more is read."""
        self._observer.settle()
        return self.answer()

    def answer(self) -> WorkloadAnswer:
        """Return what is known so far."""
        document = json.loads(self._observer.answer())
        document["path"] = self.name
        return load(WorkloadAnswer, document)

    def _read(self) -> None:
        try:
            while self.advance(LIVE_BATCH):
                pass
        except Exception as error:
            self._failed = error
        finally:
            self._ended.set()
