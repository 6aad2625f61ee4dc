"""Pages whose tables a script writes: blocks between `<!-- begin NAME -->` and `<!-- end NAME -->`.

For: the scripts that measure. Must never know: what stands in a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(path: Path, blocks: Mapping[str, str]) -> None:
    """Replace the blocks of these names; a name without a block ends the program."""
    page = path.read_text(encoding="utf-8")
    for name, text in blocks.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        head, found, rest = page.partition(begin)
        _, closed, tail = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"{path}: found no block `{name}`, expected one")
        page = f"{head}{begin}\n{text}\n{end}{tail}"
    path.write_text(page, encoding="utf-8")
