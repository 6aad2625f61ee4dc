"""Kept answers: how a document is made small, written, read back and compared with a new one.

For: `test_answers`. Must never know: which questions there are, what a document means. A kept file
is compact JSON with a line per key, and per item of a list of tables. It holds every value as the
program gave it, but for the versions, and but for groups of values that are long: of these it keeps
the first digits of the SHA-256 of their compact JSON (keys sorted), so that a difference still has
a path. Numbers are compared by their text: 1 is not 1.0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "kept"
VERSIONS = ("cachewright", "schema_version")
ASKED = "spec"
"""The key of the stack that was asked about, which `check` answers in whole."""

DIGEST = "sha256"
DIGITS = 16
LONG_LIST = 240
"""Characters of a list of numbers, or of rows of them, that is kept whole at most."""

LONG_GROUP = 120
"""Characters of any group of values that is kept whole in a document that is too long."""

LONG_DOCUMENT = 4_400
"""Characters of a document, about; in a longer one groups are digests, as many as it takes: first
those of `ASKED`, then any; the deepest first, and of these the last first."""

MISSING = object()
"""Stands for a value that is not there."""


def compact(tree: Any, *, sort: bool = False) -> str:
    """Return a tree as JSON on one line."""
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False, sort_keys=sort)


def digest(tree: Any) -> dict[str, str]:
    """Return what stands for a long group of values."""
    text = compact(tree, sort=True)
    return {DIGEST: hashlib.sha256(text.encode()).hexdigest()[:DIGITS]}


def is_digest(tree: Any) -> bool:
    """Return whether a tree stands for another."""
    return isinstance(tree, dict) and list(tree) == [DIGEST]


def small(document: Any) -> Any:
    """Return a document as it is kept."""
    whole = without_version(document)
    tree = _without_lists(whole)
    surplus = len(compact(tree)) - LONG_DOCUMENT
    for part in (ASKED, None):
        kept, values = (tree, whole) if part is None else (_get(tree, part), _get(whole, part))
        for depth in range(_depth(kept) - 1, 0, -1):
            for group, at, inner in reversed(list(_groups(kept, values, depth))):
                before = len(compact(group[at]))
                if surplus > 0 and before > LONG_GROUP:
                    group[at] = digest(inner[at])
                    surplus -= before - len(compact(group[at]))
    return tree


def _get(tree: Any, key: str) -> Any:
    return tree.get(key) if isinstance(tree, dict) else None


def without_version(document: Any) -> Any:
    """Return a document without the versions of the program and of the schema."""
    if not isinstance(document, dict):
        return document
    return {key: value for key, value in document.items() if key not in VERSIONS}


def _children(tree: Any) -> list[Any]:
    if isinstance(tree, dict) and not is_digest(tree):
        return list(tree.values())
    return tree if isinstance(tree, list) else []


def _depth(tree: Any) -> int:
    """Return how many levels of groups a tree has."""
    inner = _children(tree)
    return 1 + max(map(_depth, inner)) if inner else 0


def _without_lists(tree: Any) -> Any:
    """Replace long lists of numbers, or of rows of numbers."""
    if isinstance(tree, dict):
        return {key: _without_lists(value) for key, value in tree.items()}
    if not isinstance(tree, list):
        return tree
    tables = any(isinstance(item, dict) for item in tree)
    if not tables and len(compact(tree)) > LONG_LIST:
        return digest(tree)
    return [_without_lists(item) for item in tree]


def _groups(tree: Any, whole: Any, depth: int) -> Iterator[tuple[Any, Any, Any]]:
    """Give the places so many levels down: a group, a key, and the group with all values."""
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in () if is_digest(tree) else keys:
        if depth == 1:
            yield tree, key, whole
        else:
            yield from _groups(tree[key], whole[key], depth - 1)


def text(tree: Any) -> str:
    """Return the text of a kept file."""
    if not isinstance(tree, dict):
        return compact(tree) + "\n"
    lines = ",\n".join(f"{compact(key)}:{_items(value)}" for key, value in tree.items())
    return f"{{{lines}}}\n"


def _items(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[{}]".format(",\n".join(map(compact, value)))
    return compact(value)


def file(key: str) -> Path:
    """Return the kept file of a question."""
    return FOLDER / f"{key}.json"


def write(key: str, document: Any) -> None:
    """Keep an answer anew."""
    file(key).parent.mkdir(parents=True, exist_ok=True)
    file(key).write_text(text(small(document)), encoding="utf-8")


def read(key: str) -> Any:
    """Return the kept answer of a question; nothing if there is none."""
    return json.loads(file(key).read_text(encoding="utf-8")) if file(key).exists() else None


def differences(kept: Any, document: Any) -> Iterator[str]:
    """Give what differs, as path, kept and found; the order of keys only if no value differs."""
    document = without_version(document)
    found = False
    for line in _values(kept, document, ""):
        found = True
        yield line
    if not found:
        yield from _orders(kept, document, "")


def _values(kept: Any, new: Any, path: str) -> Iterator[str]:
    if is_digest(kept):
        if new is MISSING or digest(new) != kept:
            yield f"{path}: kept other values than {_shown(new)}"
    elif isinstance(kept, dict) and isinstance(new, dict):
        for key in [*kept, *(key for key in new if key not in kept)]:
            inner = f"{path}.{key}" if path else key
            yield from _values(kept.get(key, MISSING), new.get(key, MISSING), inner)
    elif isinstance(kept, list) and isinstance(new, list):
        if len(kept) != len(new):
            yield f"{path}: kept {len(kept)} items, found {len(new)}"
        for at, pair in enumerate(zip(kept, new, strict=False)):
            yield from _values(*pair, f"{path}[{at}]")
    elif type(kept) is not type(new) or repr(kept) != repr(new):
        yield f"{path}: kept {_shown(kept)}, found {_shown(new)}"


def _orders(kept: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(kept, dict) and not is_digest(kept):
        if list(kept) != list(new):
            yield f"{path}: kept the keys in the order {', '.join(kept)}, found {', '.join(new)}"
        for key, value in kept.items():
            yield from _orders(value, new[key], f"{path}.{key}" if path else key)
    elif isinstance(kept, list):
        for at, pair in enumerate(zip(kept, new, strict=True)):
            yield from _orders(*pair, f"{path}[{at}]")


def _shown(value: Any) -> str:
    found = "nothing" if value is MISSING else compact(value)
    return found if len(found) <= LONG_GROUP else f"{found[:LONG_GROUP]}..."
