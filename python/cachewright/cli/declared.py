"""Flags of options that are declared in Rust: what their help says, and the values given.

For: commands whose options `_native.options` lists. Must never know: any option. A flag has the
name of its option, its type and its default; a test compares them with the declaration.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache
from typing import Any

from cyclopts import Parameter

from cachewright import _native
from cachewright.answers import SettingEntry
from cachewright.cli.parsing import split_values
from cachewright.documents import load_all

LIST, WORD, BETWEEN = "a list", "word", "..="


@cache
def declared(command: str) -> dict[str, SettingEntry]:
    """Return the declared options of a command by name."""
    entries = load_all(SettingEntry, json.loads(_native.options(command)), command)
    return {entry.name: entry for entry in entries}


class Flags:
    """Makes the flags of one command."""

    def __init__(self, command: str) -> None:
        """Make flags for the options of `command`."""
        self.command = command

    def __call__(self, key: str, name: str | None = None) -> Parameter:
        """Return the flag of an option; its name is that of the option unless given."""
        return Parameter(name=name, negative=(), help=sentence(declared(self.command)[key]))

    def commas(self, key: str, name: str | None = None) -> Parameter:
        """Return the flag of a list that stands in one text, with commas."""
        text = sentence(declared(self.command)[key]).removesuffix(".")
        return Parameter(name=name, help=f"{text}; several separated by commas.")

    def spelled(self, args: object, without: Collection[str] = ()) -> list[str]:
        """Return the options that were given in `args` as they are typed, but for some."""
        usual = vars(type(args)())
        words = list[str]()
        for key, value in vars(args).items():
            if key not in declared(self.command) or key in without or value in (None, usual[key]):
                continue
            name = f"--{key.replace('_', '-')}"
            several = value if isinstance(value, list) else [value]
            words += [name] if value is True else [w for one in several for w in (name, str(one))]
        return words

    def given(self, args: object) -> dict[str, Any]:
        """Return the options that were given in `args`; a list is split at its commas."""
        known = declared(self.command)
        return {
            key: split_values(value) if _stands_in_text(known[key], value) else value
            for key, value in vars(args).items()
            if key in known and value is not None
        }


def sentence(entry: SettingEntry) -> str:
    """Return what help says of an option: its meaning, and its range or choices."""
    text = f"{entry.doc[:1].upper()}{entry.doc[1:]}"
    if BETWEEN in entry.accepted:
        return f"{text} ({entry.accepted.replace(BETWEEN, ' to ')})."
    return f"{text} ({entry.accepted})." if entry.unit == WORD else f"{text}."


def _stands_in_text(entry: SettingEntry, value: object) -> bool:
    return entry.accepted == LIST and isinstance(value, str)
