"""The progress bar: quiet at first and off a terminal, then with rate and time left.

For: `cachewright.cli.progress`. Must never know: what is running.
"""

from __future__ import annotations

import io
import sys

import pytest

from cachewright.cli import progress


class _Terminal(io.StringIO):
    """A terminal that keeps what it is told."""

    def isatty(self) -> bool:
        return True


class _Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_there_is_no_bar_off_a_terminal() -> None:
    with progress.progress() as call:
        assert call is None


def test_the_bar_waits_then_shows_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, clock = _Terminal(), _Clock()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.progress() as call:
        assert call is not None
        assert call("reading", 0, None) is None
        clock.now += 1.0
        call("reading", 500_000, None)
        assert terminal.getvalue() == ""
        clock.now += 2.0
        call("reading", 3_000_000, None)
        call("replaying", 0, 60_000_000)
        clock.now += 2.0
        call("replaying", 20_000_000, 60_000_000)
    shown = terminal.getvalue()
    assert "reading" in shown
    assert "20,000,000 of 60,000,000, 10M/s, 0:04 left" in shown
