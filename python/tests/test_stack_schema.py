"""The schema of stack files accepts what the program accepts, and refuses what editors can see.

For: `docs/schema/stack.json`. Must never know: how the schema is made.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import corpus
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "schema" / "stack.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def stacks() -> Iterator[Path]:
    """Yield every stack file of the repository."""
    for path in sorted((ROOT / "specs").rglob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        if isinstance(document.get("cache"), dict) and "tenant" in document:
            yield path


def errors(document: Any) -> list[str]:
    """Return where a document breaks the schema."""
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(document)]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", list(stacks()), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_stack_fits(path: Path) -> None:
    assert errors(tomllib.loads(path.read_text(encoding="utf-8"))) == []


def test_every_stack_of_the_kept_answers_fits() -> None:
    for case in corpus.cases():
        spec = case.spec
        if isinstance(spec, dict) and "tenant" in spec:
            assert errors(spec) == [], case.key


STACK = """
[cache]
capacity = "1MiB"
policy = "lru"
[device.cache]
model = "null"
[device.backing]
model = "hdd-7200-2tb"
[[tenant]]
trace = "a.csv"
"""
WRONG = [
    ('policy = "lru"', 'polcy = "lru"', r"polcy"),
    ('policy = "lru"', 'policy = "lruu"', r"cache\.policy"),
    ('policy = "lru"', 'policy = { name = "lru", history = 1 }', r"cache\.policy"),
    ('policy = "lru"', "block = 4096", r"cache\.block"),
    ('policy = "lru"', 'write = "write-never"', r"cache\.write"),
    ('capacity = "1MiB"', 'capacity = "1"', r"cache\.capacity"),
    ('trace = "a.csv"', "weight = -1", r"tenant\[0\]\.weight"),
    ('trace = "a.csv"', "repeat = 1", r"tenant\[0\]\.repeat"),
    ('"null"', '"null"\nblocks = 3', r"device\.cache"),
    ('"hdd-7200-2tb"', '"hdd"', r"device\.backing"),
    ("[[tenant]]", "[tenants]", r"tenant"),
    ("[cache]", "[replay]\nqueue_depth = 0\n[cache]", r"replay\.queue_depth"),
    ("[cache]", "[machine]\ndirty_high = 2.0\n[cache]", r"machine\.dirty_high"),
]


@pytest.mark.parametrize(("old", "new", "place"), WRONG)
def test_a_wrong_key_or_value_is_refused(old: str, new: str, place: str) -> None:
    assert errors(tomllib.loads(STACK)) == []
    found = errors(tomllib.loads(STACK.replace(old, new, 1)))
    assert any(re.search(place, line) for line in found), found
