"""A progress bar with rate and time left.

For: whatever lasts longer than two seconds on a terminal; silent otherwise. Must never know: what
is being done. Units: whatever the stage counts (requests, accesses, cases).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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

    def on_progress(self, stage: str, done: int, total: int | None) -> None:
        if time.monotonic() - self.started < QUIET_SECONDS:
            return
        if self.drawn is None:
            self.drawn = _make()
            self.drawn.start()
        if self.task is None or stage != self.stage:
            if self.task is not None:
                self.drawn.remove_task(self.task)
            self.task = self.drawn.add_task(stage, total=total)
            self.stage = stage
        self.drawn.update(self.task, completed=done, total=total)

    def close(self) -> None:
        if self.drawn is not None:
            self.drawn.stop()


def _make() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """Things done per second."""

        def render(self, task: Any) -> Text:
            speed = task.speed
            return Text("" if speed is None else f"{words.count(speed)}/s")

    class Done(ProgressColumn):
        """Things done, and of how many."""

        def render(self, task: Any) -> Text:
            total = "" if task.total is None else f" of {words.count(task.total)}"
            return Text(words.count(task.completed) + total)

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        Done(),
        Rate(),
        TextColumn("left"),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
    )
