"""A progress bar with rate and time left.

For: whatever lasts longer than two seconds on a terminal; silent otherwise. Must never know: what
is being done. Units: whatever the stage counts (requests, accesses, cases).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cachewright import words

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from cachewright.types import Progress as OnProgress

QUIET_SECONDS = 2.0


@contextmanager
def progress() -> Iterator[OnProgress | None]:
    """Yield a call-back that draws on standard error, or None when that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(time.monotonic())
    try:
        yield bar.on_progress
    finally:
        bar.close()


class _Bar:
    """Draws nothing before `QUIET_SECONDS` have passed since `started`."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.drawn: Progress | None = None
        self.task: TaskID | None = None
        self.stage = ""
        self.stage_began = started
        self.stage_first = 0

    def on_progress(self, stage: str, done: int, total: int | None) -> None:
        """Take news of a stage; its rate is the mean since it began."""
        now = time.monotonic()
        if stage != self.stage:
            self._begin(stage, done, now)
        if now - self.started < QUIET_SECONDS:
            return
        if self.drawn is None:
            self.drawn = _make()
            self.drawn.start()
        if self.task is None:
            self.task = self.drawn.add_task(stage, total=total, news="")
        news = _news(done, total, (done - self.stage_first) / max(now - self.stage_began, 1e-3))
        self.drawn.update(self.task, completed=done, total=total, news=news)

    def _begin(self, stage: str, done: int, now: float) -> None:
        if self.drawn is not None and self.task is not None:
            self.drawn.remove_task(self.task)
        self.task = None
        self.stage, self.stage_began, self.stage_first = stage, now, done

    def close(self) -> None:
        """Remove the bar."""
        if self.drawn is not None:
            self.drawn.stop()


def _news(done: int, total: int | None, per_second: float) -> str:
    """Return done, rate and time left as text, leaving out what is not known."""
    parts = [words.count(done) if total is None else f"{words.count(done)} of {words.count(total)}"]
    if per_second > 0:
        parts.append(f"{words.short(per_second)}/s")
        if total is not None:
            parts.append(f"{words.clock((total - done) / per_second)} left")
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
