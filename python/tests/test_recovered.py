"""Recordings of a live server that was killed.

For: what `serve.record_keep` promises. Must never know: how a recording is written.
"""

from __future__ import annotations

from pathlib import Path

from conftest import Command
from test_advise import Recorded

import cachewright
from cachewright import traces
from cachewright.answers import RecordingStatus
from cachewright.live import advising, recordings, watching


def status(server: Recorded) -> RecordingStatus:
    """Return the status of the recordings."""
    found = watching.status(server.url).recordings
    assert found is not None
    assert found.errors == 0
    return found


def test_a_killed_server_loses_the_tail_of_its_recording_alone(
    tmp_path: Path, command: Command
) -> None:
    server = Recorded(tmp_path, command, 'record_keep = "10ms"')
    sent = server.load(1, 400)
    # A recording begins with a flush.
    while status(server).kept_requests < 401:
        pass
    sent += server.load(2, 3)
    server.kill()
    assert recordings.found(tmp_path / "kept") == []
    server.begin()
    while status(server).recovered_files == 0:
        pass
    assert status(server).abandoned_files == 0
    (found,) = recordings.found(tmp_path / "kept")
    times, offsets, _, ops, volumes = traces.open_trace(found.path).read(1000)
    assert 401 <= len(times) <= 404
    assert (times[1:] > times[:-1]).all()
    rows = list(zip(volumes.tolist(), ops.tolist(), offsets.tolist(), strict=True))
    assert rows[1:] == sent[: len(rows) - 1]
    settings = {
        f"tenant.{name}.{key}": value
        for name in ("data", "more")
        for key, value in (("trace", str(found.path)), ("volume", name))
    }
    answer = cachewright.run(server.path, settings=settings).answer
    assert answer.workload.requests == len(times)
    server.stop()
    assert len(recordings.found(tmp_path / "kept")) == 2
    advice = advising.advise(server.path, policies=["lru"], partitions=["static"])
    assert str(found.path) in advice.recordings


def test_each_part_of_a_recording_outlives_its_server(tmp_path: Path, command: Command) -> None:
    server = Recorded(tmp_path, command, 'record_keep = "10ms"')
    for part in range(1, 6):
        server.load(part, 30)
        while status(server).kept_requests < 1 + 30 * part:
            pass
    server.kill()
    server.begin()
    while status(server).recovered_files == 0:
        pass
    (found,) = recordings.found(tmp_path / "kept")
    assert len(traces.open_trace(found.path).read(1000)[0]) == 151
    server.stop()
