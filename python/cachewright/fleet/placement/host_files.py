"""A stack per host, as `run` replays and `serve` serves it, and the plan as files.

For: carrying a plan out. Must never know: how volumes were placed. A host's cache has as many
blocks as its volumes' quotas; partition `static` gives each its own by weight. Where needs change
with time, `scheduled` does so in each window.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cachewright import targets
from cachewright.answers import FleetPlanAnswer
from cachewright.documents import dump, table
from cachewright.fleet.placement.fleet_file import Fleet, Volume
from cachewright.stack import toml_value

DOCUMENT, TABLE, FOLDER = "fleet.json", "placement.parquet", "hosts"
STATIC, SCHEDULED = "static", "scheduled"


def host_name(host: int, hosts: int) -> str:
    """Return a host's name: `host-07`; as many digits for all."""
    return f"host-{host:0{len(str(max(hosts - 1, 1)))}}"


def stack(
    fleet: Fleet,
    name: str,
    volumes: Sequence[Volume],
    quotas: Sequence[Sequence[int]],
    capacity: int,
    *,
    window_ns: int,
    partition: str | None = None,
) -> dict[str, Any]:
    """Return the tables of one host's stack.

    `capacity` and `quotas` (by volume and window) are in blocks. `partition` comes first, then the
    fleet file's own; else quotas are `static`, or `scheduled` by windows of `window_ns`.
    """
    usual = STATIC if fleet.hosts.peaks == 1 else SCHEDULED
    chosen = partition or fleet.cache.get("partition", usual)
    cache = {**fleet.cache, "capacity": f"{capacity} blocks", "partition": chosen}
    tenants = [dict(volume.table) for volume in volumes]
    floors = [[max(blocks, 1) for blocks in each] for each in quotas]
    others = {key: _named(value, name) for key, value in fleet.others.items() if key != "name"}
    if chosen == STATIC:
        pairs = zip(tenants, floors, strict=True)
        tenants = [{**one, "weight": max(each)} for one, each in pairs]
    elif chosen == SCHEDULED:
        pairs = zip(tenants, floors, strict=True)
        tenants = [{**one, "schedule": [float(blocks) for blocks in each]} for one, each in pairs]
        others["replay"] = {**others.get("replay", {}), "interval": f"{window_ns}ns"}
    return {"name": name, **others, "cache": cache, "tenant": tenants}


def _named(value: Any, host: str) -> Any:
    """Return a value with `{host}` replaced by the host's name, wherever it stands."""
    if isinstance(value, str):
        return value.replace("{host}", host)
    if isinstance(value, list):
        return [_named(item, host) for item in value]
    if isinstance(value, Mapping):
        return {key: _named(item, host) for key, item in value.items()}
    return value


def text_of(tables: Mapping[str, Any]) -> str:
    """Return a stack's tables as a TOML file that people can read and change."""
    plain = {key: value for key, value in tables.items() if not isinstance(value, Mapping | list)}
    parts = ["".join(f"{key} = {toml_value(value)}\n" for key, value in plain.items())]
    for key, value in tables.items():
        if isinstance(value, Mapping):
            parts.append(f"[{key}]\n{_lines(value)}")
    parts += [f"[[tenant]]\n{_lines(tenant)}" for tenant in tables["tenant"]]
    return "\n".join(parts)


def _lines(values: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in values.items())


def write(
    folder: Path, plan: FleetPlanAnswer, stacks: Mapping[str, Mapping[str, Any]], *, force: bool
) -> None:
    """Write the document, the table of volumes and a stack file per host to `folder`.

    Errors: `SpecError` where a file is there and `force` is not given; `RunError`, `OSError`.
    """
    import polars as pl

    document = json.dumps(dump(plan), indent=2, ensure_ascii=False) + "\n"
    files = [folder / DOCUMENT, folder / TABLE]
    files += [folder / FOLDER / f"{name}.toml" for name in stacks]
    for file in files:
        targets.check(file, (), overwrite=force, how="--force")
    if force:
        _forget(folder / FOLDER, stacks)
    for name, tables in stacks.items():
        targets.write_whole(folder / FOLDER / f"{name}.toml", text_of(tables))
    rows = [table(volume) for volume in plan.volumes]
    names = {host: host_name(host, plan.hosts) for host in range(plan.hosts)}
    frame = pl.DataFrame(rows, infer_schema_length=None)
    frame = frame.with_columns(pl.col("host").replace_strict(names, return_dtype=pl.String))
    with targets.whole(folder / TABLE) as unfinished:
        frame.write_parquet(unfinished)
    targets.write_whole(folder / DOCUMENT, document)


def _forget(folder: Path, stacks: Mapping[str, object]) -> None:
    """Remove stacks of hosts of an earlier plan that this one does not have."""
    for file in folder.glob("host-*.toml"):
        if file.stem not in stacks:
            file.unlink()
