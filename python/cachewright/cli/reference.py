"""Every command with its options, read from the application: for a page and as manual pages.

`make generate` writes them into docs/command-line.md, `make man` the manual pages.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cyclopts import App, Group
from cyclopts.argument import Argument

from cachewright.cli.app import COMMANDS, HELP, app_for

PROGRAM = "cachewright"
_SECTION = re.compile(r"\n\s*Parameters\n\s*-+\n")


@dataclass(frozen=True)
class Option:
    """One argument or option: its names, its value in capitals, what it means, its default."""

    names: tuple[str, ...]
    value: str
    doc: str
    default: str
    choices: tuple[str, ...]
    required: bool

    @property
    def usage(self) -> str:
        """The names with the value."""
        return ", ".join(self.names) + (f" {self.value}" if self.value else "")

    @property
    def meaning(self) -> str:
        """The sentence with what is accepted and the default."""
        facts = ["required"] if self.required else []
        facts += [f"one of {', '.join(self.choices)}"] if self.choices else []
        facts += [f"default {self.default}"] if self.default else []
        return f"{self.doc} ({'; '.join(facts)})" if facts else self.doc


@dataclass(frozen=True)
class Command:
    """A command: its words, sentences, arguments, and options by the group that help shows."""

    words: tuple[str, ...]
    doc: tuple[str, ...]
    arguments: tuple[Option, ...]
    groups: tuple[tuple[str, tuple[Option, ...]], ...]
    commands: tuple[Command, ...]

    @property
    def name(self) -> str:
        """The command as it is typed, without the program."""
        return " ".join(self.words)

    @property
    def usage(self) -> str:
        """One line: the command, its arguments, and whether there are options."""
        shown = [PROGRAM, *self.words, *(one.names[0] for one in self.arguments)]
        if self.commands:
            shown.append("COMMAND")
        return " ".join([*shown, "[OPTIONS]"] if self.groups else shown)

    def tree(self) -> Iterator[Command]:
        """Yield the command and those below it."""
        yield self
        for one in self.commands:
            yield from one.tree()


def commands() -> list[Command]:
    """Return the commands of the program in the order of its help."""
    app = app_for(())
    return [_command(app[name], (name,), text) for name, (_, text) in COMMANDS.items()]


def _command(app: App, name: tuple[str, ...], text: str) -> Command:
    below = [word for word in app.resolved_commands() if not word.startswith("-")]
    found = (
        []
        if below
        else [one for one in app.assemble_argument_collection(parse_docstring=True) if one.show]
    )
    groups: dict[str, list[Option]] = {}
    for one in found:
        if one.index is None:
            groups.setdefault(_group(one), []).append(_option(one))
    arguments = [_option(one) for one in found if one.index is not None]
    return Command(
        name,
        tuple(_paragraphs(app)) or (text,),
        tuple(arguments),
        tuple((title, tuple(options)) for title, options in groups.items()),
        tuple(_command(app[word], (*name, word), "") for word in below),
    )


def _group(one: Argument) -> str:
    groups = one.parameter.group or ()
    first = groups if isinstance(groups, Group) else next(iter(groups), "")
    title = first.name if isinstance(first, Group) else first
    return "Options" if title in {"", "Parameters", "Arguments"} else title


def _paragraphs(app: App) -> list[str]:
    """Return what a command's help says above its options, a paragraph each."""
    maker = app.default_command
    doc = inspect.getdoc(maker) if maker else app.help
    text = _SECTION.split(doc or "")[0]
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _option(one: Argument) -> Option:
    placed = one.index is not None
    names = (one.names[0].lstrip("-").upper(),) if placed else one.names
    choices = tuple(one.get_choices() or ())
    default = one.field_info.default
    plain = isinstance(default, str | int | float) and not isinstance(default, bool)
    return Option(
        names,
        "" if placed or one.is_flag() else _value(one, choices),
        " ".join((one.parameter.help or "").split()),
        str(default) if plain and default != "" else "",
        choices,
        bool(one.required),
    )


def _value(one: Argument, choices: Sequence[str]) -> str:
    if choices:
        return "CHOICE"
    hint = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", str(one.hint))
    kinds = {"int": "NUMBER", "float": "NUMBER", "Path": "PATH", "str": "TEXT"}
    return next((shown for kind, shown in kinds.items() if kind in hint), "TEXT")


def listing() -> str:
    """Return every command with its options as Markdown, below a heading of the second level."""
    every = [one for top in commands() for one in top.tree()]
    return "\n\n".join(part for one in every for part in _section(one))


def _section(one: Command) -> list[str]:
    level = "#" * (2 + len(one.words))
    parts = [f"{level} {one.name}", f"`{one.usage}`", *one.doc]
    if one.arguments:
        parts.append("\n".join(_line(each) for each in one.arguments))
    for title, options in one.groups:
        lines = "\n".join(_line(each) for each in options)
        parts += [f"**{title}**", lines]
    return parts


def _line(one: Option) -> str:
    return f"- `{one.usage}`: {one.meaning}"


def manuals() -> dict[str, str]:
    """Return the manual pages in roff by file name: one of the program, one per command."""
    tops = commands()
    first, *rest = HELP.split("\n\n")
    listed = [_item(top.name, f"{top.doc[0]} See {PROGRAM}-{top.name}(1).") for top in tops]
    found = {
        f"{PROGRAM}.1": _manual(
            PROGRAM,
            first,
            f"{PROGRAM} COMMAND",
            [*map(_example, rest), ".SH COMMANDS", *listed],
        )
    }
    for top in tops:
        name = f"{PROGRAM}-{top.name}"
        found[f"{name}.1"] = _manual(name, top.doc[0], top.usage, _body(top))
    return found


def _manual(name: str, sentence: str, usage: str, body: Iterable[str]) -> str:
    purpose = sentence[:1].lower() + sentence[1:].rstrip(".")
    lines = [
        f'.TH {name.upper()} 1 "" "{PROGRAM}"',
        f".SH NAME\n{name} \\- {_roff(purpose)}",
        f".SH SYNOPSIS\n.B {_roff(usage)}",
        ".SH DESCRIPTION",
        _roff(sentence),
        *body,
    ]
    return "\n".join(lines) + "\n"


def _body(top: Command) -> Iterator[str]:
    for one in top.tree():
        if one is not top:
            yield f".SH {_roff(one.name).upper()}\n.B {_roff(one.usage)}\n.PP\n{_roff(one.doc[0])}"
        for text in one.doc[1:]:
            yield f".PP\n{_roff(text)}"
        if one is top and (one.arguments or one.groups):
            yield ".SH OPTIONS"
        for each in one.arguments:
            yield _item(each.usage, each.meaning)
        for title, options in one.groups:
            yield f".SS {_roff(title)}"
            for each in options:
                yield _item(each.usage, each.meaning)


def _item(term: str, text: str) -> str:
    return f".TP\n.B {_roff(term)}\n{_roff(text)}"


def _example(text: str) -> str:
    """Return a paragraph, or lines that are shown as they are where it is indented."""
    if text.startswith("    "):
        return f".PP\n.nf\n{_roff(text)}\n.fi"
    return f".PP\n{_roff(text)}"


def _roff(text: str) -> str:
    """Return text for roff: hyphens that can be copied, no line that is taken for a request."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return "\n".join(f"\\&{line}" if line[:1] in ".'" else line for line in plain.split("\n"))
