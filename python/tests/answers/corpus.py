"""Every question, and the folder in which they are asked.

For: `test_answers`. Must never know: answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from answers import loops, machines, models, studies, traces
from answers.case import Case

ROOT = Path(__file__).resolve().parents[3]


def cases() -> Iterator[Case]:
    """Give every question; keys are unique."""
    yield from loops.cases()
    yield from machines.cases()
    yield from studies.cases()


def furnish(folder: Path) -> None:
    """Put traces, models, and the repository's `data` and `specs` into a folder."""
    traces.write(folder)
    models.write(folder)
    for name in ("data", "specs"):
        (folder / name).symlink_to(ROOT / name, target_is_directory=True)


def words(value: Any) -> Iterator[str]:
    """Give every text in a question: keys, values, names of files, and those in TOML."""
    if isinstance(value, Case):
        yield from words([value.verb, value.spec, value.arguments])
    elif isinstance(value, Mapping):
        yield from words(list(value) + list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from words(item)
    elif hasattr(value, "path"):
        yield from words([value.path, value.format])
    elif isinstance(value, str):
        yield from (value, Path(value).stem)
        yield from (json.loads(part) for part in _quoted(value))


def _quoted(text: str) -> Iterator[str]:
    parts = text.split('"')
    yield from (f'"{part}"' for part in parts[1::2])
