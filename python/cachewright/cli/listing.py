"""The command `list`: policies, partitions, layouts, characterizers, separations and so on.

For: names as stack files use them, with sentences and, on request, sources and settings. Must never
know: any name; the registries of the Rust rooms are the only place where they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from cyclopts import App, Parameter

from cachewright import api, words
from cachewright.cli import options, output, rows
from cachewright.cli.tables import Column, table

app = App(name="list", help="Show what can stand in a stack file.")

Verbose = Annotated[
    bool, Parameter(name=["--verbose", "-v"], negative=(), help="Also show sources and settings.")
]


def _command(name: str, what: str, entries: Callable[[], list[dict[str, Any]]]) -> None:
    """Add the command `list NAME`; all of them have the same options."""

    def command(*, verbose: Verbose = False, show: options.ShowArgs | None = None) -> None:
        _show(entries(), verbose, options.shown(show))

    command.__doc__ = f"List {what}."
    app.command(command, name=name)


_command("policies", "the replacement policies", api.list_policies)
_command("partitions", "the ways to split a cache between tenants", api.list_partitions)
_command("layouts", "which channels of a drive hold whose blocks", api.list_layouts)
_command("characterizers", "the ways to tell kinds of workloads apart", api.list_characterizers)
_command(
    "separations",
    "the ways to choose which flash pages share a superblock",
    api.list_separations,
)
_command("reclaims", "the ways to pick the superblock to clean", api.list_reclaims)
_command("devices", "the device models and the settings of a machine", api.list_devices)
_command("formats", "the trace formats", api.list_formats)


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
