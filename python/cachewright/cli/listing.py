"""The command `list`, with a command of its own for each stage.

For: names as stack files use them, with sentences and, on request, sources and settings. Must never
know: any name; the registries of the Rust rooms are the only place where they stand.
"""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from cachewright import _native, registries, words
from cachewright.cli import options, output, rows
from cachewright.cli.tables import Column, table

app = App(name="list", help="Show what can stand in a stack file.")

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


def _show(entries: list[dict[str, Any]], verbose: bool, how: options.ShowArgs) -> None:
    if how.json:
        output.print_json(entries)
        return
    if how.csv:
        output.print_csv(rows.of_registry(entries))
        return
    if not verbose:
        columns = [Column("name", [e["name"] for e in entries], numeric=False)]
        columns.append(Column("what it does", [e["doc"] for e in entries], numeric=False))
        if any(entry.get("needs") for entry in entries):
            needs = [", ".join(entry.get("needs", [])) for entry in entries]
            columns.append(Column("needs", needs, numeric=False))
        table("", columns)
        return
    for entry in entries:
        _entry(entry)


def _entry(entry: dict[str, Any]) -> None:
    output.say(f"{entry['name']}: {entry['doc']}")
    if entry.get("source"):
        output.say(f"  source: {entry['source']}")
    if entry.get("needs"):
        output.say(f"  needs: {', '.join(entry['needs'])}")
    for key, value in entry.get("keys", {}).items():
        output.say(f"  {key} = {value}")
    if entry.get("spec"):
        output.say(f"  run: {entry['spec']}")
    settings = entry.get("settings", [])
    if not settings:
        output.say()
        return
    columns = [
        Column("  setting", [f"  {s['name']}" for s in settings], numeric=False),
        Column("default", [_value(s, "default") for s in settings]),
        Column("range", [_range(s) for s in settings], numeric=False),
        Column("unit", [str(s.get("unit", "")) for s in settings], numeric=False),
        Column("", [s["doc"] for s in settings], numeric=False),
    ]
    table("", columns)


def _value(setting: dict[str, Any], key: str) -> str:
    value = setting.get(key)
    return words.NOTHING if value is None else words.setting(value)


def _range(setting: dict[str, Any]) -> str:
    return str(setting.get("accepted", ""))
