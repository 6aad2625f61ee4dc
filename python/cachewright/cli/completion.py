"""The command `completion`: what a shell needs to complete commands, options and values.

For: bash, zsh and fish. Must never know: any command, and any name of a scheme, a format, a device,
a key or a paper; the application, the registries, the declarations and the laboratory list them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Literal

from cyclopts import Parameter

from cachewright import _native, registries
from cachewright.answers import SettingEntry
from cachewright.cli import output
from cachewright.cli.reproduce import LABORATORY
from cachewright.documents import load_all
from cachewright.stack import ALL

PROGRAM = "cachewright"
Shell = Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell.")]
# The stage of the registries whose names an option takes, and whether it takes `all`.
STAGES = {
    "--policy": ("policies", True),
    "--partition": ("partitions", True),
    "--separation": ("separations", True),
    "--reclaim": ("reclaims", True),
    "--format": ("formats", False),
    "--to-format": ("formats", False),
}
# Options that take KEY=VALUE of a stack file.
KEYED = ("--set", "--vary")
# The stage whose names a key takes, by the end of the key.
OF_KEYS = {
    "cache.policy": "policies",
    "cache.partition": "partitions",
    "cache.layout": "layouts",
    "flash.separation": "separations",
    "flash.reclaim": "reclaims",
    "device.cache.model": "devices",
    "device.backing.model": "devices",
    "device.ssd.model": "devices",
}
PER_TENANT = "tenant."
# What can be given, by what it is given to.
Names = Mapping[str, Sequence[str]]


def completion(shell: Shell, /) -> None:
    """Print a shell's completion of commands, options and their values.

    In bash, `source <(cachewright completion bash)` enables it. In zsh and fish the text belongs in
    a file of the shell's folder of completions.
    """
    from cachewright.cli.app import app_for

    app = app_for(())
    generated = app.generate_completion(prog_name=PROGRAM, shell=shell).rstrip()
    output.say(f"{generated}\n{_SCRIPTS[shell](values())}".rstrip())


@dataclass(frozen=True)
class Values:
    """What options, keys of a stack file and arguments can be set to."""

    options: Names
    keys: Names
    papers: Names


def values() -> Values:
    """Return what the registries, the declarations and the laboratory have."""
    named = {stage: _names(stage) for stage in {one for one, _ in STAGES.values()}}
    options = {
        option: [*named[stage], *([ALL] if with_all else ())]
        for option, (stage, with_all) in STAGES.items()
    }
    keys: dict[str, Sequence[str]] = {}
    for table, entries in json.loads(_native.stack_keys()).items():
        # A key of a tenant has the tenant's name in it, which only the stack file knows.
        if not table or f"{table}.".startswith(PER_TENANT):
            continue
        for entry in load_all(SettingEntry, entries, table):
            keys[f"{table}.{entry.name}"] = _words(entry)
    keys |= {key: _names(stage) for key, stage in OF_KEYS.items()}
    return Values(options, keys, _papers())


def _names(stage: str) -> list[str]:
    return [entry.name for entry in registries.list(stage)]


def _words(entry: SettingEntry) -> list[str]:
    """Return the words that a key takes, if it takes words."""
    if entry.accepted in ("true, false", "true or false"):
        return ["true", "false"]
    found = [word.strip("` ") for word in entry.accepted.split(",")]
    return found if len(found) > 1 and all(_is_word(word) for word in found) else []


def _is_word(text: str) -> bool:
    return text.replace("-", "").isalnum() and not text[:1].isdigit()


def _papers() -> Names:
    """Return the papers with their figures; none without the laboratory."""
    try:
        from cachewright_lab.reproduce import specs
    except ModuleNotFoundError as error:
        if error.name != LABORATORY:
            raise
        return {}
    return specs.figures_of_papers()


Script = Callable[[Values], str]


def _script(name: str) -> str:
    return (files("cachewright.cli") / "shells" / name).read_text(encoding="utf-8")


def _cases(table: Names) -> str:
    """Return the branches of a `case` of bash and zsh that set `found`."""
    lines = [f'    {name}) found="{" ".join(given)}" ;;' for name, given in table.items() if given]
    return "\n".join(lines)


def _posix(name: str) -> Script:
    """Return how the text of bash or zsh is made."""

    def made(known: Values) -> str:
        text = _script(name)
        for key, value in (
            ("OPTIONS", _cases(known.options)),
            ("VALUES", _cases(known.keys)),
            ("KEYS", " ".join(f"{key}=" for key in known.keys)),
            ("PAPERS", " ".join(known.papers)),
            ("FIGURES", _cases(known.papers)),
        ):
            text = text.replace(f"@{key}@", value)
        return text

    return made


def _fish(known: Values) -> str:
    text = _script("completion.fish")
    options = "\n".join(
        f"complete -c {PROGRAM} -l {option.removeprefix('--')} -x "
        f"-a '(__cachewright_list {' '.join(given)})'"
        for option, given in known.options.items()
    )
    keyed = "\n".join(
        f"complete -c {PROGRAM} -l {option.removeprefix('--')} -x -a '(__cachewright_keys)'"
        for option in KEYED
    )
    branches = "\n".join(
        f"        case {key}\n            set found {' '.join(given)}"
        for key, given in known.keys.items()
        if given
    )
    figures = "\n".join(_of_paper(paper, given) for paper, given in known.papers.items())
    papers = (
        f"complete -c {PROGRAM} -n '__cachewright_after reproduce' -x -a '{' '.join(known.papers)}'"
        if known.papers
        else ""
    )
    keys = " ".join(f"{key}=" for key in known.keys)
    for name, value in (
        ("OPTIONS", f"{options}\n{keyed}"),
        ("VALUES", branches),
        ("KEYS", keys),
        ("PAPERS", f"{papers}\n{figures}"),
    ):
        text = text.replace(f"@{name}@", value)
    return text


def _of_paper(paper: str, figures: Iterable[str]) -> str:
    """Return the line of fish that completes the figures of a paper."""
    condition = f"__cachewright_after reproduce {paper}"
    return f"complete -c {PROGRAM} -n '{condition}' -x -a '{' '.join(figures)}'"


_SCRIPTS: dict[str, Script] = {
    "bash": _posix("completion.bash"),
    "zsh": _posix("completion.zsh"),
    "fish": _fish,
}
