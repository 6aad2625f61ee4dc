"""The command `serve`: the volumes of a stack for clients, until a signal.

For: the signals that end a server in order. Must never know: what is served.
"""

from __future__ import annotations

import signal
from types import FrameType

from cachewright import serving, words
from cachewright.cli import options, output


def serve(stack: options.Stack, /, *, set: options.Set = None) -> None:
    """Serve the tenants' volumes over the network block device protocol until it is stopped.

    SIGINT and SIGTERM end it in order: no more clients are taken, what has arrived is answered, and
    all that was answered is durable.
    """
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        dirty = serving.serve(stack, settings=options.settings(set), say=_say)
    finally:
        signal.signal(signal.SIGTERM, before)
    output.say(f"stopped; {words.size(dirty)} dirty in the cache")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, flush=True)
