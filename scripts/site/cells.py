"""Cells of a Markdown page, and how they run.

For: tutorials. Must never know: any page, how output is shown. A command is run as a process of its
own, with the interpreter that runs this.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(python|sh|toml)(?: +([\w.-]+))?\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
COMMAND = "cachewright"


@dataclass(frozen=True)
class Cell:
    """Prose (no language) or code: its text in the page, and the file that it is written to."""

    language: str
    source: str
    code: str = ""
    file: str = ""

    def notebook_source(self) -> str:
        """Return the code as a cell of a notebook."""
        if self.file:
            return f"%%writefile {self.file}\n{self.code.rstrip()}"
        if self.language == "sh":
            return "\n".join(f"!{line}" for line in lines_of(self.code))
        return self.code.rstrip()


@dataclass(frozen=True)
class Output:
    """What a cell gave: `text`, or a drawing as `svg`."""

    kind: str
    text: str


def cells_of(page: str) -> list[Cell]:
    """Return the cells of a page in order; a fence of another language is prose."""
    found, end = [], 0
    for fence in FENCE.finditer(page):
        if fence[1] == "toml" and not fence[2]:
            continue
        if page[end : fence.start()].strip():
            found.append(Cell("", page[end : fence.start()]))
        found.append(Cell(fence[1], fence[0], fence[3], fence[2] or ""))
        end = fence.end()
    if page[end:].strip():
        found.append(Cell("", page[end:]))
    return found


def run(cells: list[Cell]) -> list[list[Output]]:
    """Run cells in the current folder, in order; return what each gave.

    Errors: what a cell raises, and `RuntimeError` for a command that fails.
    """
    names: dict[str, Any] = {"__name__": "tutorial"}
    return [_run(cell, names) for cell in cells]


def _run(cell: Cell, names: dict[str, Any]) -> list[Output]:
    if cell.file:
        Path(cell.file).write_text(cell.code, encoding="utf-8")
        return []
    if cell.language == "python":
        return _python(cell.code, names)
    return [_command(line) for line in lines_of(cell.code)] if cell.language == "sh" else []


def lines_of(code: str) -> list[str]:
    """Return the command lines of a cell, continued lines joined."""
    return [line for line in code.replace("\\\n", " ").splitlines() if line.strip()]


def _command(line: str) -> Output:
    program, *arguments = shlex.split(line, comments=True)
    if program != COMMAND:
        raise RuntimeError(f"{line}: found `{program}`, expected `{COMMAND}`")
    done = subprocess.run(
        [sys.executable, "-m", COMMAND, *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{line}: exit status {done.returncode}: {done.stderr.strip()}")
    return Output("text", done.stdout)


def _python(code: str, names: dict[str, Any]) -> list[Output]:
    """Run code; the value of a last expression is shown as a notebook does."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<tutorial>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<tutorial>", "eval"), names)
    outputs = [Output("text", printed.getvalue())] if printed.getvalue() else []
    if value is not None:
        outputs.append(_value(value))
    return outputs


def _value(value: object) -> Output:
    import altair as alt

    if isinstance(value, alt.TopLevelMixin):
        drawn = io.StringIO()
        value.save(drawn, format="svg")
        return Output("svg", drawn.getvalue())
    return Output("text", f"{value!r}\n")
