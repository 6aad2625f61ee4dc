"""The command `serve`: the volumes of a stack for clients, until a signal.

For: the signals that end a server in order. Must never know: what is served.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

from cyclopts import Parameter

from cachewright import words
from cachewright.cli import options, output, parsing
from cachewright.live import serving

ENDING = (signal.SIGINT, signal.SIGTERM)


def serve(
    stack: options.Stack,
    /,
    *,
    set: options.Set = None,
    record: Path | None = None,
    accept_changed: options.AcceptChanged = None,
    discard_dirty: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> None:
    """Serve the tenants' volumes over the network block device protocol (NBD) until stopped.

    SIGINT and SIGTERM shut it down cleanly: it accepts no more clients, answers the requests it has
    begun, and makes everything it has answered durable. A second signal, or one during the start,
    ends it at once.

    Parameters
    ----------
    record
        Record every request and decision in a new file: a trace that `run` replays.
    discard_dirty
        Start even if another set of cache devices has dirty blocks of the volumes; give them up.

    """
    began = threading.Event()

    def say(line: str) -> None:
        # The first line says that the start is over.
        began.set()
        _say(line)

    def end(_number: int, _frame: FrameType | None) -> None:
        if not began.is_set():
            # Reading the log or histories may take minutes, and no client has had an answer.
            os._exit(0)
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = [signal.signal(number, end) for number in ENDING]
    try:
        dirty = serving.serve(
            stack,
            settings=parsing.settings(set),
            say=say,
            record=record,
            accept_changed=accept_changed or (),
            discard_dirty=discard_dirty,
        )
    finally:
        for number, handler in zip(ENDING, before, strict=True):
            signal.signal(number, handler)
    output.say(f"stopped; {words.size(dirty)} dirty in the cache")


def _say(line: str) -> None:
    """Print a line at once. A pipe that is closed is no reason to stop."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
