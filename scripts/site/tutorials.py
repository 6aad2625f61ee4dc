"""Tutorials as pages with their output, and as notebooks.

For: `write`, and the tests that run every tutorial. Must never know: the text of any tutorial. A
source is a Markdown page in `docs/tutorials`. Its fences run in order, in an empty folder with the
bundled traces in `data`: `python` in one namespace, `sh` as command lines, a `toml` or `python`
fence with a file name is written to that file. What each prints, and the value of the last
expression, stand below it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from scripts.site import gather
from scripts.site.cells import Cell, Output, cells_of, run

FOLDER = "docs/tutorials"
# Longest output that a page shows, in lines.
SHOWN = 40
FIRST = ("first-trace", "size-a-cache", "goals", "flash", "train", "serve", "slow", "fleet")


def sources(root: Path) -> list[Path]:
    """Return the sources of all tutorials in the order in which they are read."""
    order = {name: place for place, name in enumerate(FIRST)}
    found = (root / FOLDER).glob("*.md")
    return sorted(found, key=lambda path: (order.get(path.stem, len(order)), path.stem))


def write(root: Path, pages: Path) -> list[Any]:
    """Run every tutorial; write its page and its notebook; return the part of the navigation."""
    found: list[Any] = []
    for source in sources(root):
        text = source.read_text(encoding="utf-8")
        cells = cells_of(text)
        outputs = run_in_scratch(root, cells)
        name = f"{FOLDER}/{source.stem}"
        note = f"\n[This page as a notebook]({source.stem}.ipynb)\n"
        title, newline, rest = page_of(cells, outputs).partition("\n")
        gather.place(root, pages, Path(f"{name}.md"), title + newline + note + rest)
        notebook = json.dumps(notebook_of(cells, outputs), indent=1, ensure_ascii=False)
        (pages / f"{name}.ipynb").write_text(notebook + "\n", encoding="utf-8")
        found.append(f"{name}.md")
    return found


def run_in_scratch(root: Path, cells: list[Cell]) -> list[list[Output]]:
    """Run cells in a new folder with the bundled traces; return what each gave.

    Errors: what a cell raises, and `RuntimeError` for a command that fails.
    """
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for part in ("data", "specs"):
            shutil.copytree(root / part, Path(folder) / part)
        os.chdir(folder)
        try:
            return run(cells)
        finally:
            os.chdir(before)


def page_of(cells: list[Cell], outputs: list[list[Output]]) -> str:
    """Return the page: prose and code as in the source, output below the code."""
    parts = []
    for cell, gave in zip(cells, outputs, strict=True):
        parts.append(cell.source)
        parts += [_shown(one) for one in gave]
    return "\n".join(parts)


def _shown(output: Output) -> str:
    if output.kind == "svg":
        return f'\n<div class="figure">{_one_line(output.text)}</div>\n'
    lines = output.text.rstrip().splitlines()
    more = [f"... {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
    body = "\n".join([*lines[:SHOWN], *more])
    return f"\n```text\n{body}\n```\n"


def _one_line(svg: str) -> str:
    """Return a drawing without line breaks, so that Markdown leaves it alone."""
    return re.sub(r"\s*\n\s*", " ", svg)


def notebook_of(cells: list[Cell], outputs: list[list[Output]]) -> dict[str, Any]:
    """Return a notebook (format 4.5) with the outputs."""
    made = []
    for number, (cell, gave) in enumerate(zip(cells, outputs, strict=True)):
        common = {"id": f"cell-{number}", "metadata": {}}
        if cell.language == "":
            made.append({"cell_type": "markdown", **common, "source": cell.source.strip()})
            continue
        shown = [_notebook_output(one) for one in gave]
        code = {"cell_type": "code", **common, "execution_count": None}
        made.append({**code, "source": cell.notebook_source(), "outputs": shown})
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": made}


def _notebook_output(output: Output) -> dict[str, Any]:
    if output.kind == "svg":
        data = {"image/svg+xml": output.text}
        return {"output_type": "display_data", "data": data, "metadata": {}}
    return {"output_type": "stream", "name": "stdout", "text": output.text}
