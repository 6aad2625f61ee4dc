"""Every command line in the documents runs.

For: the README and the manual. Each page has a folder of its own with bundled traces
and specs, files that the page makes up (`volume.csv.gz`), and the stacks in its `toml` fences. Its
lines that begin with `cachewright` run there in their order. Traces are cut, so that this is fast:
a line must work, not take its usual time. Must never know: what a command prints.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Command
from documented import make_files, pages

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)[ ]?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`([\w.-]+\.toml)`")
PROGRAM = "cachewright"
# Lines that do not run here, by how they begin, and why.
NOT_RUN = {
    "cachewright serve ": "runs until it is stopped: test_serve.py, docs/tutorials/serve.md",
    "cachewright advise 127.0.0.1": "needs a server that runs: test_estimating.py",
    "cachewright explain ": "needs a server that has recorded: test_explain.py",
    "cachewright live train ": "needs a server that has recorded: test_retraining.py",
    "cachewright mrc native --policy lru,arc --out results/curves --engine ray --address": "needs "
    "other machines: test_fleets.py runs Ray here",
    "cachewright live load ": "needs a server: docs/tutorials/serve.md",
    "cachewright reproduce rc-rnn --traces": "takes minutes: test_given_traces.py",
    "cachewright check /etc/": "a path of an operator's machine: the same line is in other pages",
    "cachewright live format /etc/": "a path of an operator's machine: docs/serve.md has it",
    "cachewright live check /etc/": "a path of an operator's machine: test_serve.py",
    "cachewright run stack.toml --set tenant.data.trace=recordings@": "continues from the state of "
    "a server: tests/agree/continued.rs",
    "cachewright run stack.toml --set tenant.data.trace=served": "replays what a server recorded: "
    "test_serve.py",
    "cachewright train icache ": "needs a drive and minutes: test_train_icache.py",
    "cachewright train mlcache ": "needs a drive and minutes: test_train_icache.py",
    "cachewright train rc-rnn ": "takes minutes: test_train_caching.py",
    "cachewright view ": "runs until it is stopped: test_view.py",
}


def lines_of(page: str) -> Iterator[tuple[int, str, str]]:
    """Yield, in order, files to write as (line, name, text) and commands as (line, "", command)."""
    for fence in FENCE.finditer(page):
        line = page.count("\n", 0, fence.start()) + 2
        language, info, text = fence[1], fence[2].strip(), fence[3]
        if language == "toml":
            before = page[: fence.start()].rstrip().rpartition("\n\n")[2]
            named = info or next(iter(NAMED.findall(before)), "")
            if named:
                yield line, named, text
        elif language in ("", "sh"):
            for command in text.replace("\\\n", " ").splitlines():
                plain = command.removeprefix("$ ").strip()
                if plain.startswith((f"{PROGRAM} ", "truncate ")):
                    yield line, "", plain


def is_not_run(line: str) -> bool:
    return any(line.startswith(start) for start in NOT_RUN)


@pytest.mark.parametrize("page", pages(ROOT), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_run(page: Path, folder: Path, command: Command) -> None:
    name = page.relative_to(ROOT).as_posix()
    make_files(ROOT, folder, name)
    wrong = []
    for number, file, text in lines_of(page.read_text(encoding="utf-8")):
        if file:
            (folder / file).write_text(text)
        elif text.startswith("truncate "):
            subprocess.run(text.partition("#")[0], shell=True, check=True, cwd=folder)
        elif not is_not_run(text):
            arguments = shlex.split(text, comments=True)[1:]
            found = command(*arguments)
            if found.status != 0:
                wrong.append(f"{name}:{number}: {text}\n  {found.err.strip()[-300:]}")
    assert not wrong, "\n".join(wrong)


def test_every_reason_not_to_run_a_line_is_used() -> None:
    lines = [
        text
        for page in pages(ROOT)
        for _, file, text in lines_of(page.read_text(encoding="utf-8"))
        if not file
    ]
    unused = [start for start in NOT_RUN if not any(line.startswith(start) for line in lines)]
    assert not unused
    assert sum(line.startswith(PROGRAM) and not is_not_run(line) for line in lines) > 30


def test_lines_and_files_are_found_in_their_order() -> None:
    page = (
        "Write `a.toml`:\n\n```toml\nx = 1\n```\n\n"
        "```\n$ cachewright run a.toml  # go\nmake x\n```\n"
        "\n```toml b.toml\ny = 2\n```\n\n```text\ncachewright no\n```\n\n```toml\nz = 3\n```\n"
    )
    assert [(name, text.strip()) for _, name, text in lines_of(page)] == [
        ("a.toml", "x = 1"),
        ("", "cachewright run a.toml  # go"),
        ("b.toml", "y = 2"),
    ]
    assert shutil.which("truncate")
