"""Options declared in Rust, the flags of the command line and the types of Python are the same.

For: `mrc`, `plan`, `wa` and `train`. Must never know: what an option does.
"""

from __future__ import annotations

import json
import typing
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

import cachewright
from cachewright import _native, command_options
from cachewright.answers import SettingEntry
from cachewright.cli import reference
from cachewright.cli.declared import BETWEEN, LIST, WORD, declared
from cachewright.cli.mrc import CurveArgs
from cachewright.cli.plan import SizeArgs
from cachewright.cli.wa import DriveArgs

FLAGS: dict[str, type[Any]] = {"mrc": CurveArgs, "plan": SizeArgs, "wa": DriveArgs}
TYPES: dict[str, Any] = {
    "mrc": command_options.CurveOptions,
    "plan": command_options.SizeOptions,
    "wa": command_options.DriveOptions,
}
# What Python also takes by its place.
PLACED = {"mrc": "policies", "plan": "partitions", "wa": "separations"}
CALLS: dict[str, Any] = {
    "mrc": cachewright.mrc,
    "plan": cachewright.plan,
    "wa": cachewright.wa,
}
# Commands of `train` by the declarations that they take flags from, and the types of these.
TRAINERS: dict[str, tuple[str, Any]] = {
    "train": ("train shiro", command_options.ClassifierOptions),
    "segments": ("train icache", command_options.StepOptions),
    "labels": ("train rc-rnn", command_options.OracleOptions),
}
TRAINED = [(command, entry) for command in TRAINERS for entry in declared(command).values()]
EVERY = [(command, entry) for command in FLAGS for entry in declared(command).values()]


def _flags(command: str) -> dict[str, reference.Option]:
    name = TRAINERS[command][0] if command in TRAINERS else command
    every = (one for command in reference.commands() for one in command.tree())
    found = next(one for one in every if one.name == name)
    options = [each for _, options in found.groups for each in options]
    return {name.removeprefix("--"): each for each in options for name in each.names}


def _flag(command: str, key: str) -> reference.Option:
    flags, words = _flags(command), key.replace("_", "-")
    one = f"{words[:-3]}y" if words.endswith("ies") else words.removesuffix("s")
    return flags[words] if words in flags else flags[one]


def _text(default: object) -> str:
    return "" if default is None else str(default).lower()


def _plain(entry: SettingEntry) -> str:
    """Return a default as a command line has it."""
    is_list = entry.accepted == LIST and entry.default
    return ",".join(json.loads(entry.default)) if is_list else entry.default


@pytest.mark.parametrize("verb", FLAGS)
def test_every_option_is_a_flag_and_a_keyword(verb: str) -> None:
    names = set(declared(verb))
    assert set(FLAGS[verb].__dataclass_fields__) == names
    hints = set(typing.get_type_hints(TYPES[verb]))
    assert hints | {PLACED[verb]} == names
    assert PLACED[verb] not in hints


@pytest.mark.parametrize(("verb", "entry"), EVERY)
def test_a_flag_has_the_default_and_the_meaning_of_its_option(
    verb: str, entry: SettingEntry
) -> None:
    flag = _flag(verb, entry.name)
    default = FLAGS[verb].__dataclass_fields__[entry.name].default
    assert _text(default) == _plain(entry), entry.name
    _means(flag, entry)


@pytest.mark.parametrize(("verb", "entry"), TRAINED)
def test_a_flag_of_train_has_the_default_and_the_meaning_of_its_option(
    verb: str, entry: SettingEntry
) -> None:
    assert set(typing.get_type_hints(TRAINERS[verb][1])) == set(declared(verb))
    flag = _flag(verb, entry.name)
    assert flag.default == entry.default
    _means(flag, entry)


def _means(flag: reference.Option, entry: SettingEntry) -> None:
    meaning = flag.doc.replace("`", "").lower()
    assert meaning.startswith(entry.doc.replace("`", "").lower()), flag.doc
    for bound in entry.accepted.split(BETWEEN) if BETWEEN in entry.accepted else ():
        assert bound in flag.doc
    for word in entry.accepted.split(", ") if entry.unit == WORD else ():
        assert word in flag.doc


@pytest.mark.parametrize(("verb", "entry"), EVERY)
def test_what_a_declaration_does_not_accept_is_refused_by_the_name_of_its_flag(
    verb: str, entry: SettingEntry, stack: Path, command: Command
) -> None:
    flag = _flag(verb, entry.name)
    if not flag.value or (BETWEEN not in entry.accepted and entry.unit != WORD):
        return
    wrong = "nothing" if entry.unit == WORD else "-1"
    if entry.unit == "bytes":
        wrong = "1B"
    answer = command(verb, str(stack), f"{flag.names[0]}={wrong}")
    assert answer.status == 2, answer
    assert flag.names[0] in answer.err, answer.err


@pytest.mark.parametrize("verb", FLAGS)
def test_an_option_that_is_not_declared_is_refused_with_the_nearest(verb: str, stack: Path) -> None:
    name = next(name for name in declared(verb) if len(name) > 3)
    with pytest.raises(cachewright.SpecError, match=f"nearest is `{name}`"):
        CALLS[verb](stack, **{f"{name}x": 1})
    with pytest.raises(cachewright.SpecError, match=f"`{name}`: found `object`"):
        CALLS[verb](stack, **{name: object()})


def test_a_command_without_declared_options_is_refused_with_the_nearest() -> None:
    with pytest.raises(cachewright.SpecError, match=r"found `plna`.*nearest is `plan`"):
        _native.options("plna")
