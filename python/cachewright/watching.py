"""The status of a live server that runs.

For: `cachewright top`, and scripts that watch a server. Must never know: what a server does. The
server tells its status over HTTP at the address `serve.monitor` of its stack.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
import tomllib
from pathlib import Path
from typing import Any

from cachewright import words
from cachewright._native import RunError, SpecError
from cachewright.answers import LiveStatus
from cachewright.load import load as load_answer
from cachewright.spec import STACK_SUFFIX

# Longer than the server takes to say that it has no status.
PATIENCE_S = 10
STATUS = "/status"
LOOK_AGAIN_S = 0.05


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
    place = address_of(target)
    connection = http.client.HTTPConnection(place, timeout=PATIENCE_S)
    try:
        connection.request("GET", STATUS)
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException, UnicodeDecodeError) as error:
        why = words.reason(error) if isinstance(error, OSError) else str(error)
        raise RunError(f"{place}: found no live server ({why}); expected its monitor") from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise RunError(f"{place}: {text.strip() or answer.reason}")
    try:
        document: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise RunError(f"{place}: found no status, expected that of a live server") from error
    return load_answer(LiveStatus, document)


def reload(target: str) -> LiveStatus:
    """Let the server at `target` take its changed stack file over; return its status then.

    Errors: `SpecError` for a wrong target or a stack that the server refuses, `RunError` when no
    server is there, or one of another user.
    """
    before = status(target)
    try:
        os.kill(before.process, signal.SIGHUP)
    except OSError as error:
        found = f"process {before.process}: {words.reason(error)}"
        raise RunError(f"{found}; expected a server that this user may signal") from error
    while (after := status(target)).reloads == before.reloads:
        time.sleep(LOOK_AGAIN_S)
    if after.refused_reload:
        raise SpecError(after.refused_reload)
    return after


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
