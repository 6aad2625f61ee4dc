"""Signals to a live server: only a process that is proven to be the server gets one.

For: `live reload`, `live train` and `advise`. Must never know: what a server does at a signal.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from test_serve import STACK
from test_watching import Watched

from cachewright import RunError
from cachewright.documents import dump
from cachewright.live import advising, recordings, server_process, watching


class FakeMonitor:
    """Answers over HTTP at a port that a server could have: as any local user can."""

    def __init__(self, document: dict[str, Any], family: socket.AddressFamily) -> None:
        """Answer with a status of which the count of reloads rises at each look, or does not."""
        self.document = document
        self.rises = True
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake.document["reloads"] += int(fake.rises)
                body = json.dumps(fake.document).encode()
                self.send_response(http.HTTPStatus.OK)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            address_family = family

        host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
        self.server = Server((host, 0), Handler)
        port = self.server.server_address[1]
        self.place = f"[::1]:{port}" if family == socket.AF_INET6 else f"{host}:{port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def watched(tmp_path: Path, command: Command) -> Iterator[Watched]:
    """Give a server that is watched."""
    found = Watched(tmp_path, command)
    yield found
    found.stop()


@contextlib.contextmanager
def faked(
    watched: Watched, process: int, family: socket.AddressFamily = socket.AF_INET
) -> Iterator[FakeMonitor]:
    """Give a monitor that tells the server's status, but names another process."""
    document: Any = dump(watching.status(watched.url))
    fake = FakeMonitor(document | {"process": process}, family)
    try:
        yield fake
    finally:
        fake.stop()


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that a signal ends."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_a_process_that_a_false_monitor_names_gets_no_signal(
    watched: Watched, bystander: subprocess.Popen[bytes], tmp_path: Path, command: Command
) -> None:
    with faked(watched, bystander.pid) as fake:
        by_stack = tmp_path / "faked.toml"
        by_stack.write_text(STACK.replace("[serve]", f'[serve]\nmonitor = "{fake.place}"'))
        for target in (fake.place, by_stack):
            refused = command("live", "reload", target)
            assert refused.status == 1, refused.out
            assert f"names process {bystander.pid}, which does not listen there" in refused.err
        fake.document["recordings"] = dict.fromkeys(
            ("requests", "dropped_requests", "removed_files", "kept_requests", "files", "errors"), 0
        ) | {"folder": "recordings", "under_way": None, "last_error": None}
        fake.document["recordings"] |= {"recovered_files": 0, "abandoned_files": 0}
        with pytest.raises(RunError, match="does not listen there"):
            recordings.finish(fake.place, watching.status(fake.place))
        with pytest.raises(RunError, match="does not listen there"):
            advising.advise(fake.place)
        # The server itself, named by a monitor that is not its own: what it counts is made up.
        fake.document["process"] = watching.status(watched.url).process
        with pytest.raises(RunError, match="does not listen there"):
            watching.reload(fake.place)
    assert bystander.poll() is None
    assert watching.status(watched.url).reloads == 0


def test_a_process_number_that_stands_for_nothing_is_refused(
    watched: Watched, bystander: subprocess.Popen[bytes]
) -> None:
    bystander.kill()
    bystander.wait()
    for number in (bystander.pid, 0, -1, 1 << 40):
        with faked(watched, 1) as fake:
            fake.document["process"] = number
            with pytest.raises(RunError, match=f"process {number}: "):
                watching.reload(fake.place)


def locked(path: Path, *, writes: bool) -> int:
    """Return a descriptor that holds the lock of a file."""
    descriptor = os.open(path, os.O_RDWR if writes else os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_server_holds_the_lock_of_a_device_and_counts_its_reloads(
    watched: Watched,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    family: socket.AddressFamily,
) -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _: got.append(number))
    device = tmp_path / "other.img"
    device.touch()
    stack = tmp_path / "other.toml"
    stack.write_text(STACK.replace("cache.img", device.name).replace("data.img", "no.img"))
    try:
        with faked(watched, os.getpid(), family) as fake:
            fake.document["stack"] = str(stack)
            # This process listens there. Without the lock of a device it is no server.
            with pytest.raises(RunError, match="found none of the devices and volumes"):
                watching.reload(fake.place)
            reading = locked(device, writes=False)
            with pytest.raises(RunError, match="found none of the devices and volumes"):
                watching.reload(fake.place)
            os.close(reading)
            assert got == []
            writing = locked(device, writes=True)
            assert watching.reload(fake.place).reloads > 0
            assert got == [signal.SIGHUP]
            # Its count does not rise again.
            fake.rises = False
            monkeypatch.setattr(watching, "SIGNAL_PATIENCE_S", 0)
            with pytest.raises(RunError, match="found no word of SIGHUP within 0 s"):
                watching.reload(fake.place)
            os.close(writing)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_process_that_was_proven_is_no_other_one_later(
    bystander: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_process, "_listens", lambda *_: True)
    monkeypatch.setattr(server_process, "_holds_device", lambda *_: True)
    with server_process.ServerProcess(bystander.pid, tmp_path, ("127.0.0.1", 1)) as process:
        assert not process.has_ended()
        bystander.kill()
        bystander.wait()
        assert process.has_ended()
        with pytest.raises(RunError, match="no such process"):
            process.send(signal.SIGHUP)


class Clock:
    """A clock on which a second passes at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


@pytest.mark.parametrize("bound", ["time", "bytes"])
def test_an_answer_without_an_end_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    if bound == "time":
        monkeypatch.setattr(watching, "time", Clock())
    else:
        monkeypatch.setattr(watching, "MAX_STATUS_BYTES", 4096)

    def answer(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client, contextlib.suppress(OSError):
            while True:
                client.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        port = listener.getsockname()[1]
        expected = "no whole answer within 10 s" if bound == "time" else "more than 4096 bytes"
        with pytest.raises(RunError, match=expected):
            watching.status(str(port))
        thread.join()
