"""Command lines that need no parser of options: `run STACK` with its usual options.

For: starting fast. Must never know: what an option means. A command line is read here only if each
word of it is plain, so that `cachewright.cli.run` would read it in the same way; that one reads all
others, and says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cachewright.cli.replay import Job, Wanted
from cachewright.stack_file import is_stack_path

COMMAND = "run"
QUIET = "--quiet"
# Options without a value, and those with one.
_ON = {
    "--fresh": "--fresh",
    "--json": "--json",
    "--csv": "--csv",
    "--quiet": QUIET,
    "-q": QUIET,
}
_VALUED = ("--out", "--threads", "--set")
_MAX_THREADS = 1024


def read(arguments: Sequence[str]) -> tuple[Job, Wanted, bool] | None:
    """Return what to replay, how to show it and whether to be quiet; None for other commands."""
    if arguments[:1] != [COMMAND]:
        return None
    stacks: list[str] = []
    given: dict[str, list[str]] = {}
    words = iter(arguments[1:])
    for word in words:
        name, equals, value = word.partition("=")
        if name in _VALUED:
            value = value if equals else next(words, "")
            if not value or value.startswith("-"):
                return None
            given.setdefault(name, []).append(value)
        elif word in _ON:
            given.setdefault(_ON[word], []).append("")
        elif word.startswith("-"):
            return None
        else:
            stacks.append(word)
    return _plain(stacks, given)


def _plain(stacks: list[str], given: dict[str, list[str]]) -> tuple[Job, Wanted, bool] | None:
    pairs = [text.partition("=") for text in given.pop("--set", ())]
    is_plain = (
        len(stacks) == 1
        and bool(stacks[0])
        and is_stack_path(stacks[0])
        and all(key.strip() and equals for key, equals, _ in pairs)
        and all(len(values) == 1 for values in given.values())
        and not {"--json", "--csv"} <= given.keys()
    )
    (threads,) = given.get("--threads", ["0"])[:1]
    is_number = threads.isascii() and threads.isdigit() and int(threads) <= _MAX_THREADS
    is_number = is_number and str(int(threads)) == threads
    if not is_plain or not is_number:
        return None
    (out,) = given.get("--out", [""])[:1]
    wanted = Wanted(
        out=Path(out) if out else None,
        fresh="--fresh" in given,
        threads=int(threads),
        json="--json" in given,
        csv="--csv" in given,
    )
    settings = {key.strip(): value.strip() for key, _, value in pairs}
    return Job(Path(stacks[0]), settings, {}), wanted, QUIET in given
