"""The command `list`, with a command of its own for each stage.

For: names as stack files use them, with sentences and, on request, sources and settings. Must never
know: any name; the registries of the Rust rooms are the only place where they stand.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import App, Parameter

from cachewright import _native, registries, words
from cachewright.answers import NamedSchemeEntry, SettingEntry
from cachewright.cli import options, output
from cachewright.tables import PIPE_WIDTH, Column, Table

app = App(name="list", help="List what a stack file can use, such as policies and devices.")

Verbose = Annotated[
    bool, Parameter(name=["--verbose", "-v"], negative=(), help="Also show sources and settings.")
]


def _command(stage: str, what: str) -> None:
    """Add the command `list STAGE`; all of them have the same options."""

    def command(*, verbose: Verbose = False, show: options.ShowArgs | None = None) -> None:
        _show(registries.list(stage), verbose, options.shown(show))

    command.__doc__ = f"List {what}."
    app.command(command, name=stage)


for _stage, _what in _native.stages():
    _command(_stage, _what)


def _show(entries: Sequence[registries.Entry], verbose: bool, how: options.ShowArgs) -> None:
    if how.json:
        output.print_json(entries)
    elif how.csv:
        output.print_csv(map(_record, entries))
    elif verbose:
        for entry in entries:
            _entry(entry)
    else:
        _table(entries)


def _table(entries: Sequence[registries.Entry]) -> None:
    columns: list[Column[registries.Entry]] = [
        Column("name", lambda entry: entry.name),
        Column("what it does", lambda entry: entry.doc),
    ]
    if any(map(_needs, entries)):
        columns.append(Column("needs", lambda entry: ", ".join(_needs(entry))))
    if any(isinstance(entry, NamedSchemeEntry) for entry in entries):
        columns.append(Column("source", lambda entry: entry.source))
        columns.append(Column("run", _spec))
    output.show(Table("", columns, entries))


def _record(entry: registries.Entry) -> dict[str, Any]:
    """Return an entry of a registry for CSV; a named scheme has its keys in one cell."""
    record: dict[str, Any] = {"name": entry.name, "doc": entry.doc, "source": entry.source}
    if isinstance(entry, NamedSchemeEntry):
        keys = [f"{key} = {value}" for key, value in entry.keys.items()]
        return {**record, "keys": keys, "spec": entry.spec}
    return {**record, "needs": entry.needs}


def _spec(entry: registries.Entry) -> str | None:
    return entry.spec or None if isinstance(entry, NamedSchemeEntry) else None


def _needs(entry: registries.Entry) -> Sequence[str]:
    return () if isinstance(entry, NamedSchemeEntry) else entry.needs


def _setting(one: SettingEntry) -> None:
    """Print a setting as a paragraph: default, range and unit behind its name."""
    default = words.setting(one.default)
    unit = f" {one.unit}" if one.unit else ""
    given = f" = {default}" if default else ""
    _paragraph(f"  {one.name}{given}  ({one.accepted}{unit})  {one.doc}")


def _paragraph(text: str) -> None:
    lines = textwrap.wrap(
        text, PIPE_WIDTH, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False
    )
    for line in lines:
        output.say(line)


def _entry(entry: registries.Entry) -> None:
    _paragraph(f"{entry.name}: {entry.doc}")
    if entry.source:
        _paragraph(f"  source: {entry.source}")
    if _needs(entry):
        output.say(f"  needs: {', '.join(_needs(entry))}")
    if isinstance(entry, NamedSchemeEntry):
        for key, value in entry.keys.items():
            output.say(f"  {key} = {value}")
        output.say(*([f"  run: {entry.spec}"] if entry.spec else []))
        return
    settings = entry.settings
    if not settings:
        output.say()
        return
    if output.terminal() is None:
        # A pipe has no width to which the table could be drawn.
        for one in settings:
            _setting(one)
        output.say()
        return
    columns: list[Column[SettingEntry]] = [
        Column("  setting", lambda one: f"  {one.name}"),
        Column("default", lambda one: words.setting(one.default), numeric=True),
        Column("range", lambda one: one.accepted),
        Column("unit", lambda one: one.unit),
        Column("", lambda one: one.doc),
    ]
    output.show(Table("", columns, settings))
