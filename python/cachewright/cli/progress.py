"""Progress on standard error: a bar on a terminal, plain lines elsewhere.

For: whatever lasts longer than two seconds; silent with `--quiet`. Must never know: what is being
done. Off a terminal there is a line when a stage begins and one at every tenth of it (where its
end is not known, whenever the count has doubled), without control characters. Units: whatever the
stage counts (requests, accesses, cases).
"""

from __future__ import annotations

import math
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cachewright import words
from cachewright.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from cachewright.types import Progress as OnProgress

QUIET_SECONDS = 2.0
# How far back a rate is taken from, and how often it is noted.
RECENT_SECONDS, STEP_SECONDS = 5.0, 0.25
PARTS = 10


@contextmanager
def progress() -> Iterator[OnProgress | None]:
    """Yield a call-back that shows progress on standard error; None when the command is quiet."""
    if output.is_quiet():
        yield None
        return
    shown = _Bar() if sys.stderr.isatty() else _Lines()
    try:
        yield shown.on_progress
    finally:
        shown.close()


class _Shown(ABC):
    """A stage and its rate, shown once `QUIET_SECONDS` have passed since the beginning."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.stage = ""
        # Times and counts of the stage not long ago, the oldest first.
        self.recent: deque[tuple[float, int]] = deque()

    def on_progress(self, stage: str, done: int, total: int | None) -> None:
        """Take news of a stage; its rate is that of the last seconds.

        Parts of a stage differ: a policy that learns takes a hundred times as long as a curve. A
        stage that has done more than its total, as a trace that is repeated, has no known end.
        """
        now = time.monotonic()
        if stage != self.stage:
            self.stage = stage
            self.recent.clear()
            self.begin()
        if not self.recent or now - self.recent[-1][0] >= STEP_SECONDS:
            self.recent.append((now, done))
        while len(self.recent) > 1 and now - self.recent[1][0] >= RECENT_SECONDS:
            self.recent.popleft()
        if now - self.started >= QUIET_SECONDS:
            then, before = self.recent[0]
            end = None if total is not None and done > total else total
            self.show(done, end, (done - before) / max(now - then, 1e-3))

    @abstractmethod
    def begin(self) -> None:
        """Forget what was shown of the stage before."""

    @abstractmethod
    def show(self, done: int, total: int | None, per_second: float) -> None:
        """Show the stage."""

    @abstractmethod
    def close(self) -> None:
        """Remove what must not stay."""


class _Lines(_Shown):
    """A line when a stage begins and at every tenth of it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = -1

    def begin(self) -> None:
        self.reached = -1

    def show(self, done: int, total: int | None, per_second: float) -> None:
        part = PARTS * done // total if total else done.bit_length()
        if part <= self.reached:
            return
        self.reached = part
        print(f"{self.stage}: {_news(done, total, per_second)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Lines stay."""


class _Bar(_Shown):
    """A bar that is drawn over and over, and removed at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: Progress | None = None
        self.task: TaskID | None = None

    def begin(self) -> None:
        if self.drawn is not None and self.task is not None:
            self.drawn.remove_task(self.task)
        self.task = None

    def show(self, done: int, total: int | None, per_second: float) -> None:
        if self.drawn is None:
            self.drawn = _make()
            self.drawn.start()
        if self.task is None:
            self.task = self.drawn.add_task(self.stage, total=total, news="")
        news = _news(done, total, per_second)
        self.drawn.update(self.task, completed=done, total=total, news=news)

    def close(self) -> None:
        if self.drawn is not None:
            self.drawn.stop()


def _news(done: int, total: int | None, per_second: float) -> str:
    """Return done, rate and time left as text, leaving out what is not known."""
    parts = [words.count(done) if total is None else f"{words.count(done)} of {words.count(total)}"]
    if per_second > 0:
        parts.append(f"{words.short(per_second)}/s")
        if total is not None:
            left = (total - done) / per_second
            parts.append(f"{words.clock(math.ceil(left))} left")
    return ", ".join(parts)


def _make() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[news]}"),
        console=Console(stderr=True),
        transient=True,
    )
