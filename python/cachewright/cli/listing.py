"""The command `list`, with a command of its own for each stage.

For: names as stack files use them, with sentences and, on request, sources and settings. Must never
know: any name; the registries of the Rust rooms are the only place where they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter

from cachewright import _native, registries, words
from cachewright.answers import NamedSchemeEntry
from cachewright.cli import options, output, rows
from cachewright.cli.tables import Column, table

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
        output.print_csv(rows.of_registry(entries))
    elif verbose:
        for entry in entries:
            _entry(entry)
    else:
        _table(entries)


def _table(entries: Sequence[registries.Entry]) -> None:
    named = [entry for entry in entries if isinstance(entry, NamedSchemeEntry)]
    needs = [", ".join(_needs(entry)) for entry in entries]
    columns = [Column("name", [entry.name for entry in entries], numeric=False)]
    columns.append(Column("what it does", [entry.doc for entry in entries], numeric=False))
    if any(needs):
        columns.append(Column("needs", needs, numeric=False))
    if named:
        columns.append(Column("source", [entry.source for entry in named], numeric=False))
        columns.append(
            Column("run", [entry.spec or words.NOTHING for entry in named], numeric=False)
        )
    table("", columns)


def _needs(entry: registries.Entry) -> Sequence[str]:
    return () if isinstance(entry, NamedSchemeEntry) else entry.needs


def _entry(entry: registries.Entry) -> None:
    output.say(f"{entry.name}: {entry.doc}")
    if entry.source:
        output.say(f"  source: {entry.source}")
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
    columns = [
        Column("  setting", [f"  {one.name}" for one in settings], numeric=False),
        Column("default", [words.setting(one.default) for one in settings]),
        Column("range", [one.accepted for one in settings], numeric=False),
        Column("unit", [one.unit for one in settings], numeric=False),
        Column("", [one.doc for one in settings], numeric=False),
    ]
    table("", columns)
