"""What became of one block of a served volume, from recordings.

For: `cachewright explain`, and the same from Python. Must never know: how a cache decides. Units:
bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from cachewright import _native
from cachewright._native import SpecError
from cachewright.answers import ExplainAnswer
from cachewright.documents import load as load_answer
from cachewright.live import advising, recordings
from cachewright.stack import Settings, pairs
from cachewright.stack import load as load_stack
from cachewright.types import PathLike


def explain(
    target: PathLike,
    block: str,
    *,
    recorded: Sequence[PathLike] = (),
    settings: Settings | None = None,
) -> ExplainAnswer:
    """Return what became of a block of a served volume.

    `target` is a server's stack file, or the address of its monitor; `block` is `VOLUME@OFFSET`,
    any byte of the block, such as `mail@12GiB` or `mail@40960`. Without `recorded` the server
    finishes its recording under way, and all finished recordings of its folder (`serve.record`) are
    read. Errors: `SpecError` where nothing is recorded, for a volume that the stack does not have
    and for recordings of another stack; `RunError` when no server answers at an address.
    """
    volume, offset = _place(block)
    path, folder = advising.places(os.fspath(target))
    if not recorded:
        if folder is None:
            expected = "expected a folder of recordings (`serve.record`), or `--recording FILE`"
            raise SpecError(f"{path}: found nothing that was recorded, {expected}")
        recorded = [one.path for one in recordings.found(folder)]
    if not recorded:
        raise SpecError(f"{folder}: found no finished recording, expected one or more")
    stack = load_stack(path)
    files = [Path(one) for one in recorded]
    text = _native.live_explain(stack.text, stack.origin, pairs(settings), files, volume, offset)
    document: dict[str, object] = json.loads(text)
    return load_answer(ExplainAnswer, document)


def _place(block: str) -> tuple[str, int]:
    """Return the volume and the byte of `VOLUME@OFFSET`.

    >>> _place("mail@1MiB")
    ('mail', 1048576)
    >>> _place("a@b@512")
    ('a@b', 512)
    """
    volume, at, offset = block.rpartition("@")
    if not (at and volume and offset):
        raise SpecError(f"found `{block}`, expected VOLUME@OFFSET, such as `mail@40960`")
    return volume, int(offset) if offset.isdecimal() else _native.parse_bytes(offset)
