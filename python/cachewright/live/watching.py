"""The status of a live server that runs.

For: `cachewright top`, and scripts that watch a server. Must never know: what a server does. The
server tells its status over HTTP at the address `serve.monitor` of its stack. What answers there
may be anything: no answer is waited for without a bound, and no process gets a signal that is not
proven to be the server (`server_process`).
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachewright import words
from cachewright._native import RunError, SpecError
from cachewright.answers import LiveStatus
from cachewright.documents import load as load_answer
from cachewright.live.server_process import ServerProcess
from cachewright.stack import STACK_SUFFIX

# Longer than the server takes to say that it has no status.
PATIENCE_S = 10
# A status of thousands of tenants has fewer bytes.
MAX_STATUS_BYTES = 64 << 20
PIECE_BYTES = 1 << 16
STATUS = "/status"
LOOK_AGAIN_S = 0.05
# Longer than a server takes to read the histories of its tenants, or to finish a recording.
SIGNAL_PATIENCE_S = 600


def address_of(target: str) -> str:
    """Return the address of a monitor: `ADDRESS:PORT`, a port, a URL, or that of a stack file.

    Errors: `SpecError` for a stack without `serve.monitor`, and for anything that is no address.
    """
    if target.endswith(STACK_SUFFIX):
        target = _of_stack(Path(target))
    place = target.removeprefix("http://").removeprefix("tcp:").rstrip("/")
    place = f"127.0.0.1:{place}" if place.isdigit() else place
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        expected = "a stack file, or the address of a monitor such as `127.0.0.1:9464`"
        raise SpecError(f"found `{target}`, expected {expected}")
    return place


def status(target: str) -> LiveStatus:
    """Return the status of the server whose monitor is at `target` (see `address_of`).

    Errors: `SpecError` for a wrong target, `RunError` when nothing answers there.
    """
    return _asked(address_of(target)).status


@dataclass(frozen=True)
class _Answer:
    """A status, and the address by IP and port that it came from."""

    status: LiveStatus
    address: tuple[str, int]


def _asked(place: str) -> _Answer:
    """Ask the monitor at a place for its status."""
    try:
        text, address = _received(place)
        head, _, content = text.partition(b"\r\n\r\n")
        body = content.decode()
        # Such as `HTTP/1.0 200 OK`.
        version, code, why = (*head.split(b"\r\n")[0].decode().split(" ", 2), "", "")[:3]
        if not version.startswith("HTTP/") or not code.isdigit():
            raise RunError(f"{place}: found no answer over HTTP, expected a live server's monitor")
    except (OSError, UnicodeDecodeError) as error:
        why = words.reason(error) if isinstance(error, OSError) else str(error)
        raise RunError(f"{place}: found no live server ({why}); expected its monitor") from error
    if int(code) != http.client.OK:
        raise RunError(f"{place}: {body.strip() or why}")
    try:
        document: dict[str, Any] = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{place}: found no status, expected that of a live server") from error
    return _Answer(load_answer(LiveStatus, document), address)


def _received(place: str) -> tuple[bytes, tuple[str, int]]:
    """Return all that a monitor answers, within a time and a number of bytes, and its address."""
    until = time.monotonic() + PATIENCE_S
    host, _, port = place.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    found = bytearray()
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        address, number = connection.getpeername()[:2]
        # Of this version an answer comes in one piece, and its end is that of the connection.
        lines = [f"GET {STATUS} HTTP/1.0", f"Host: {place}", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        while piece := connection.recv(PIECE_BYTES):
            found += piece
            if len(found) > MAX_STATUS_BYTES:
                raise OSError(f"more than {MAX_STATUS_BYTES} bytes of answer")
            connection.settimeout(_left_s(until))
    return bytes(found), (address, number)


def _left_s(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"no whole answer within {PATIENCE_S} s")
    return left


def reload(target: str) -> LiveStatus:
    """Let the server at `target` take its changed stack file over; return its status then.

    Errors: `SpecError` for a wrong target or a stack that the server refuses, `RunError` when no
    server is there, or one of another user, or when it does not say that it has looked.
    """
    before = status(target)
    after = signalled(target, signal.SIGHUP, lambda now: now.reloads != before.reloads)
    if after.refused_reload:
        raise SpecError(after.refused_reload)
    return after


def signalled(
    target: str, number: signal.Signals, is_done: Callable[[LiveStatus], bool]
) -> LiveStatus:
    """Send a signal to the server at `target`; return its first status with which `is_done`.

    Errors: `RunError` when the process that the monitor names is not proven to be the server, may
    not be signalled, ends, or does not come to that in ten minutes.
    """
    place = address_of(target)
    found = _asked(place)
    stack = Path(target if target.endswith(STACK_SUFFIX) else found.status.stack)
    if target.endswith(STACK_SUFFIX):
        stack = stack.absolute()
    with ServerProcess(found.status.process, stack, found.address) as process:
        process.send(number)
        until = time.monotonic() + SIGNAL_PATIENCE_S
        while not is_done(now := _asked(place).status):
            if process.has_ended():
                raise RunError(f"process {process.number}: it has ended; expected a server")
            if time.monotonic() >= until:
                raise RunError(
                    f"{place}: found no word of {number.name} within {SIGNAL_PATIENCE_S} s, which "
                    f"process {process.number} has got; expected its status to count it"
                )
            time.sleep(LOOK_AGAIN_S)
    return now


def _of_stack(path: Path) -> str:
    try:
        stack = tomllib.loads(path.read_text())
    except OSError as error:
        raise SpecError(f"{path}: {words.reason(error)}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: {error}") from error
    serve = stack.get("serve")
    found = serve.get("monitor") if isinstance(serve, dict) else None
    if not isinstance(found, str):
        expected = 'an address such as `monitor = "127.0.0.1:9464"`'
        raise SpecError(f"{path}: found no `serve.monitor`, expected {expected}")
    return found
