"""The command `check`: is a stack file right, and what does it resolve to.

For: finding a wrong key or unit before a run. Must never know: which keys exist.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cachewright import api, words
from cachewright.cli import options, output, parsing


def check(
    stack: options.Stack, /, *, set: options.Set = None, show: options.ShowArgs | None = None
) -> None:
    """Validate a stack file and print its settings with every default."""
    how = options.shown(show)
    document = api.check(stack, settings=parsing.settings(set))
    for sentence in unopened(document, stack):
        output.note(sentence)
    if how.json:
        output.print_json(document)
    elif how.csv:
        output.print_csv({"key": key, "value": value} for key, value in flat(document))
    else:
        output.facts(flat(document))


def unopened(document: Mapping[str, Any], stack: Path) -> list[str]:
    """Return what a server needs beside the stack: devices that are not there, and their format.

    Nothing for a stack without a server. No device is opened.
    """
    serve = document.get("serve")
    if not serve:
        return []
    named = [*serve.get("devices", ()), *(one.get("backing") for one in document["tenant"])]
    # An address has no file.
    paths = [one for one in named if isinstance(one, str) and "://" not in one]
    missing = [one for one in dict.fromkeys(paths) if not (stack.parent / one).exists()]
    found = [
        f"{one}: found no such file or device; the server needs it to start" for one in missing
    ]
    line = shlex.join(["cachewright", "live", "check", str(stack)])
    return [*found, f"no device was opened: `{line}` says whether they hold a cache"]


def flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Return nested settings as dotted keys and labels, in order."""
    if isinstance(value, dict):
        return [
            pair
            for key, item in value.items()
            for pair in flat(item, f"{prefix}.{key}" if prefix else key)
        ]
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return [pair for n, item in enumerate(value, 1) for pair in flat(item, f"{prefix}[{n}]")]
    return [(prefix, words.NOTHING if value is None else words.setting(value))]
