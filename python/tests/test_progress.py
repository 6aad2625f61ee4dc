"""Progress: quiet at first, then a bar on a terminal and plain lines elsewhere.

For: `cachewright.cli.progress`. Must never know: what is running.
"""

from __future__ import annotations

import io
import sys

import pytest
from conftest import StoppedClock

from cachewright.cli import output, progress


class _Terminal(io.StringIO):
    """A terminal that keeps what it is told."""

    def isatty(self) -> bool:
        return True


def _news(clock: StoppedClock) -> None:
    """Give news of two stages, seconds apart."""
    with progress.progress() as call:
        assert call is not None
        assert call("reading", 0, None) is None
        clock.now += 1.0
        call("reading", 500_000, None)
        assert _shown() == ""
        clock.now += 2.0
        call("reading", 3_000_000, None)
        for done in (0, 1, 20_000_000, 20_000_001, 60_000_000):
            call("replaying", done, 60_000_000)
            clock.now += 1.0


def _shown() -> str:
    assert isinstance(sys.stderr, io.StringIO)
    return sys.stderr.getvalue()


def test_off_a_terminal_there_is_a_line_per_stage_and_tenth(
    monkeypatch: pytest.MonkeyPatch, clock: StoppedClock
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    _news(clock)
    assert _shown().splitlines() == [
        "reading: 3,000,000, 1M/s",
        "replaying: 0 of 60,000,000",
        "replaying: 20,000,000 of 60,000,000, 10M/s, 0:04 left",
        "replaying: 60,000,000 of 60,000,000, 15M/s, 0:00 left",
    ]
    assert _shown().replace("\n", "").isprintable()


def test_a_stage_without_an_end_has_a_line_when_its_count_doubles(
    monkeypatch: pytest.MonkeyPatch, clock: StoppedClock
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.progress() as call:
        assert call is not None
        clock.now += 5.0
        for done in range(0, 1000, 10):
            call("reading", done, None)
    assert len(_shown().splitlines()) == 8


def test_the_time_left_follows_the_pace_of_the_last_seconds(
    monkeypatch: pytest.MonkeyPatch, clock: StoppedClock
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.progress() as call:
        assert call is not None
        for done in (0, 400_000, 800_000):
            clock.now += 2.0
            call("replaying", done, 1_000_000)
        for second in range(1, 11):
            clock.now += 1.0
            call("replaying", 800_000 + 10_000 * second, 1_000_000)
    assert _shown().splitlines()[-1] == "replaying: 900,000 of 1,000,000, 10k/s, 0:10 left"


def test_a_quiet_command_has_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", _Terminal())
    monkeypatch.setattr(output, "is_quiet", lambda: True)
    with progress.progress() as call:
        assert call is None
    output.note("nothing")
    assert _shown() == ""


def test_the_bar_waits_then_shows_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, clock: StoppedClock
) -> None:
    monkeypatch.setattr(sys, "stderr", _Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    _news(clock)
    assert "reading" in _shown()
    assert "60,000,000 of 60,000,000, 15M/s, 0:00 left" in _shown()


def test_a_stage_that_goes_beyond_its_total_has_no_end(
    monkeypatch: pytest.MonkeyPatch, clock: StoppedClock
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.progress() as call:
        assert call is not None
        for done in (0, 100_000, 150_000, 300_000):
            clock.now += 2.0
            call("replaying", done, 100_000)
    assert _shown().splitlines() == [
        "replaying: 0 of 100,000",
        "replaying: 100,000 of 100,000, 50k/s, 0:00 left",
        "replaying: 150,000, 37.5k/s",
        "replaying: 300,000, 50k/s",
    ]
