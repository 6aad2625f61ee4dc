"""The command `list`: policies, partitions, separations, reclaims and trace formats.

For: names as stack files use them, with sentences and, on request, sources and settings. Must never
know: any name; the registries of the Rust rooms are the only place where they stand.
"""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from cachewright import api, words
from cachewright.cli import options, output
from cachewright.cli.tables import Column, table

app = App(name="list", help="Show what can stand in a stack file.")

Verbose = Annotated[bool, Parameter(name=["--verbose", "-v"], negative=())]


@app.command
def policies(*, verbose: Verbose = False, json: options.Json = False) -> None:
    """List the replacement policies.

    Parameters
    ----------
    verbose
        Also show sources and settings.
    json
        Print the registry as JSON.

    """
    _show(api.list_policies(), verbose, json)


@app.command
def partitions(*, verbose: Verbose = False, json: options.Json = False) -> None:
    """List the ways to split a cache between tenants.

    Parameters
    ----------
    verbose
        Also show sources and settings.
    json
        Print the registry as JSON.

    """
    _show(api.list_partitions(), verbose, json)


@app.command
def separations(*, verbose: Verbose = False, json: options.Json = False) -> None:
    """List the ways to choose which flash pages share a superblock.

    Parameters
    ----------
    verbose
        Also show sources and settings.
    json
        Print the registry as JSON.

    """
    _show(api.list_separations(), verbose, json)


@app.command
def reclaims(*, verbose: Verbose = False, json: options.Json = False) -> None:
    """List the ways to pick the superblock to clean.

    Parameters
    ----------
    verbose
        Also show sources and settings.
    json
        Print the registry as JSON.

    """
    _show(api.list_reclaims(), verbose, json)


@app.command
def formats(*, verbose: Verbose = False, json: options.Json = False) -> None:
    """List the trace formats.

    Parameters
    ----------
    verbose
        Also show sources and options.
    json
        Print the registry as JSON.

    """
    _show(api.list_formats(), verbose, json)


def _show(entries: list[dict[str, Any]], verbose: bool, json: bool) -> None:
    if json:
        output.print_json(entries)
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
    if setting.get("low") is None:
        return ""
    return f"{_value(setting, 'low')} to {_value(setting, 'high')}"
