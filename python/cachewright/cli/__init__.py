"""The command line `cachewright`: errors and exit status.

For: running a command line; the commands are listed in `cachewright.cli.app`. Must never know: how
a simulation works. Exit status: 0 done, 1 the run failed, 2 the command or file was wrong, 130
interrupted (128 and the number of SIGINT). Nothing is imported before a command needs it:
`--version` imports no library at all.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING

from cachewright import _native

if TYPE_CHECKING:
    from cyclopts import CycloptsError

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
VERSION = ("--version", "-V", "version")
# Options of which several values are separated by commas.
LISTED = ("--policy", "--capacity", "--partition", "--block", "--figures", "--sizes", "--op")
# What the argument `-` stands for.
STDIN = "/dev/stdin"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit with its status."""
    sys.exit(status_of(sys.argv[1:] if arguments is None else arguments))


def status_of(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status; every error becomes one sentence."""
    if len(arguments) == 1 and arguments[0] in VERSION:
        print(_native.__version__)
        return DONE
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    # What a command sets for itself, as to be quiet, ends with it.
    # A bare hyphen would be taken for an option.
    given = [STDIN if argument == "-" else argument for argument in arguments]
    return copy_context().run(_status_of, given)


def _status_of(arguments: list[str]) -> int:
    from cachewright.cli import output

    # The system passes none, but a caller from Python may; no file has such a name.
    for word in arguments:
        if "\0" in word:
            found = word.replace("\0", "\\u{0}")
            output.error(f"found `{found}`, expected words without null characters")
            return WRONG
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except (_native.RunError, _native.PolicyError) as error:
        output.error(spelled(str(error), arguments))
        return FAILED
    except _native.Error as error:
        output.error(spelled(str(error), arguments))
        return WRONG
    except OverflowError as error:
        where = " ".join(getattr(error, "__notes__", [])).replace("'", "`")
        output.error(f"found a number out of range {where}, expected a smaller one")
        return WRONG
    except KeyboardInterrupt as stop:
        output.error("; ".join(["interrupted", *getattr(stop, "__notes__", [])]))
        return INTERRUPTED
    except BrokenPipeError:
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        from cachewright import words

        name = f"{error.filename}: " if error.filename else ""
        output.error(f"{name}{words.reason(error)}")
        return FAILED


def _run(arguments: list[str]) -> int:
    from cyclopts import CycloptsError

    from cachewright.cli import output
    from cachewright.cli.app import app_for

    app = app_for(arguments)
    try:
        if arguments[-1:] == ["--help"]:
            # Without reading the options first, which takes as long.
            app.help_print(arguments[:-1])
            return DONE
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        output.error(usage_sentence(error, arguments))
        return WRONG
    return DONE


def spelled(sentence: str, arguments: Sequence[str]) -> str:
    """Return an error with the names of options as the command line spells them.

    >>> spelled("stack: `drive_writes`: found -3, expected more", ["wa", "--drive-writes", "-3"])
    '--drive-writes: found -3, expected more'
    >>> spelled("stack.toml: `precision`: found 3", ["plan", "stack.toml", "--precision=3"])
    'stack.toml: --precision: found 3'
    """
    # The name of what has no stack file: a trace alone.
    sentence = sentence.removeprefix("stack: ")
    for word in arguments:
        option = word.split("=", 1)[0]
        if option.startswith("--") and len(option) > 2:
            key = option[2:].replace("-", "_")
            sentence = sentence.replace(f"`{key}`: ", f"{option}: ", 1)
    return sentence


def _listed(unused: Sequence[str], arguments: Sequence[str]) -> str:
    """Return a hint where a word stands behind the value of an option that takes a list."""
    for word in unused:
        at = arguments.index(word) if word in arguments else 0
        if at >= 2 and arguments[at - 2] in LISTED:
            values = f"{arguments[at - 1]},{word}"
            return f"; several values are separated by commas: {arguments[at - 2]} {values}"
    return ""


def usage_sentence(error: CycloptsError, arguments: Sequence[str] = ()) -> str:
    """Return what was wrong with the command as one sentence in lower case."""
    from cyclopts import MissingArgumentError, RepeatArgumentError, UnusedCliTokensError

    chain = " ".join(error.command_chain or ())
    where = f"see `cachewright {chain} --help`" if chain else "see `cachewright --help`"
    if isinstance(error, UnusedCliTokensError):
        unused = list(error.unused_tokens or ())
        said = f"found `{' '.join(unused)}`, expected nothing more"
        return f"{said}{_listed(unused, arguments)}; {where}"
    if isinstance(error, RepeatArgumentError):
        option = next((word for word in arguments if arguments.count(word) > 1), "an option")
        listed = option in LISTED
        values = "its values separated by commas, as in `lru,arc`" if listed else "it once"
        return f"found {option} several times, expected {values}; {where}"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name, expected = error.argument.name, error.argument.parameter.help
        if error.argument.index is not None:
            # Its place says what it is; the help has it in capitals.
            name = name.lstrip("-").upper()
        what = f"{expected[:1].lower()}{expected[1:].rstrip('.')}" if expected else "one"
        return f"found no {name}, expected {what}; {where}"
    text = " ".join(str(error).split()).split(" Available commands:")[0]
    text = text.rstrip(".").replace('"', "`")
    return f"{text[:1].lower()}{text[1:]}; {where}"
