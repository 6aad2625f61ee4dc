"""A file of outcomes, to which each is added whole as its task ends.

For: stopping and going on. Must never know: what a task computes. A line is a checksum and JSON; a
line that was cut off when the process was killed is dropped. The last line of a task counts. One
process at a time holds a journal. Values stay in the file; memory holds a place per task.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from cachewright import words
from cachewright._native import SpecError
from cachewright.fleet.task import Outcome


class Place(NamedTuple):
    """Where the line of a task begins, and what is known without reading it."""

    start: int
    error: str | None
    seconds: float
    peak_bytes: int


class Journal:
    """Outcomes by key; a context that holds the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[str, Place] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a+b")  # noqa: SIM115
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise SpecError(
                f"{path}: found it in use by another process ({words.reason(error)}), expected to "
                "be the only one"
            ) from None
        self._read()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def is_done(self, key: str) -> bool:
        """Return whether a task has a value."""
        place = self.places.get(key)
        return place is not None and place.error is None

    def error(self, key: str) -> str | None:
        """Return why a task has no value; None when it has one or was never run."""
        place = self.places.get(key)
        return None if place is None else place.error

    def value(self, key: str) -> Any:
        """Return the value of a task that is done."""
        self._file.seek(self.places[key].start)
        return _parsed(self._file.readline())["value"]

    def add(self, outcome: Outcome) -> None:
        """Add an outcome as one line."""
        record = {
            "key": outcome.key,
            "error": outcome.error,
            "seconds": round(outcome.seconds, 3),
            "peak_bytes": outcome.peak_bytes,
            "value": outcome.value,
        }
        text = json.dumps(record, ensure_ascii=False).encode()
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(b"%08x %s\n" % (crc32(text), text))
        self._file.flush()
        self._note(start, record)

    def _note(self, start: int, record: dict[str, Any]) -> None:
        self.places[record["key"]] = Place(
            start, record["error"], record["seconds"], record["peak_bytes"]
        )

    def _read(self) -> None:
        """Find every line that is whole; cut off what follows the last newline."""
        start = 0
        self._file.seek(0)
        for line in self._file:
            if not line.endswith(b"\n"):
                self._file.truncate(start)
                break
            record = _parsed(line)
            if record:
                self._note(start, record)
            start += len(line)


def _parsed(line: bytes) -> dict[str, Any]:
    """Return the record of a line; an empty one when it is damaged."""
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if checksum != b"%08x" % crc32(text):
        return {}
    record: dict[str, Any] = json.loads(text)
    return record
