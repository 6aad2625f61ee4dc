"""The Python guide does what it says.

For: `docs/python.md`. Every block of the page is used in order, in an empty folder with the bundled
traces: `toml` and `python` blocks with a file name are written to it, other `python` blocks are run
in one namespace, `sh` blocks are run as command lines, and a `text` block is what the block before
it prints.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Command

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, the file name beside it, its text and its line on the page."""

    language: str
    file: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return [
        Block(found[1], found[2].strip(), found[3], page.count("\n", 0, found.start()) + 2)
        for found in FENCE.finditer(page)
    ]


def run_page(page: str, capsys: pytest.CaptureFixture[str], command: Command) -> int:
    """Use the blocks of a page; return how many texts were compared."""
    names: dict[str, Any] = {"__name__": "guide"}
    printed, compared = "", 0
    for block in blocks(page):
        if block.file:
            Path(block.file).write_text(block.text)
        elif block.language == "python":
            capsys.readouterr()
            # Line numbers of errors are those of the page.
            code = compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec")
            exec(code, names)
            printed = capsys.readouterr().out
        elif block.language == "sh":
            for line in block.text.replace("\\\n", " ").splitlines():
                program, *arguments = shlex.split(line)
                assert program == "cachewright", line
                found = command(*arguments)
                assert found.status == 0, f"line {block.line}: {found.err}"
        elif block.language == "text":
            assert printed == block.text, f"line {block.line} of {PAGE.name}"
            compared += 1
    return compared


def test_every_example_of_the_guide_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], command: Command
) -> None:
    for trace in sorted((ROOT / "data").glob("*.zst")):
        shutil.copy(trace, folder)
    page = PAGE.read_text(encoding="utf-8")
    assert run_page(page, capsys, command) == page.count("\n```text\n")


def test_an_example_that_prints_something_else_is_found(
    folder: Path, capsys: pytest.CaptureFixture[str], command: Command
) -> None:
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n"
    with pytest.raises(AssertionError, match="line 6"):
        run_page(page, capsys, command)
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", capsys, command)
