"""The fleet file: a stack file without a capacity, with `[hosts]`, and volumes in a table if many.

For: what `plan --fleet` is asked. Must never know: curves, or how volumes are packed. The keys of
`[cache]`, `[replay]`, `[serve]` and `[[tenant]]` are those of a stack file and are checked as such.
Units: blocks, bytes, nanoseconds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachewright import _native, api
from cachewright._native import SpecError
from cachewright.fleet.placement.problem import NO_LIMIT
from cachewright.stack import read

# Files named by a tenant, relative to the fleet file.
PATHS = ("trace", "history", "backing", "model")
# Bytes of memory that a server keeps per cached block, with simple policies
# (docs/operate.md).
MEMORY_PER_BLOCK = 32
# Columns of a table that are text whatever they look like.
NAMES = ("name", "volume", "export", "group", "format")
OWN_KEYS = ("group", "floor")
ANY_CAPACITY = "100%wss"
DAY_NS = 86_400 * 10**9
CSV, PARQUET = ".csv", ".parquet"


@dataclass(frozen=True)
class Hosts:
    """What each host has; all are alike. `None` is no limit.

    `flash_bytes` is what remains after `reserve`. `writes_per_day` is how often all of the flash
    may be written in a day; `amplification` is how much more flash takes than it is sent.
    """

    count: int
    flash_bytes: int | None = None
    memory_bytes: int | None = None
    memory_per_block: int = MEMORY_PER_BLOCK
    writes_per_day: float | None = None
    amplification: float = 1.0
    max_iops: int | None = None
    max_bandwidth: int | None = None
    peaks: int = 1

    def flash_blocks(self, block: int) -> int:
        """Return the cache that a host can hold, in blocks: as flash and memory allow."""
        flash = NO_LIMIT if self.flash_bytes is None else self.flash_bytes // block
        if self.memory_bytes is None:
            return flash
        return min(flash, self.memory_bytes // self.memory_per_block)

    def blocks_per_day(self, block: int) -> int:
        """Return how many blocks a day may be written to a host's flash."""
        if self.writes_per_day is None or self.flash_bytes is None:
            return NO_LIMIT
        return int(self.writes_per_day * self.flash_bytes / block / self.amplification)


@dataclass(frozen=True)
class Volume:
    """A tenant: its table in a stack, its goal as a hit ratio, its group and its least cache."""

    name: str
    table: Mapping[str, Any]
    goal: float | None
    group: str | None
    floor_bytes: int


@dataclass(frozen=True)
class Fleet:
    """What is planned: tables for the hosts' stacks, hosts and volumes."""

    name: str
    origin: Path
    cache: Mapping[str, Any]
    others: Mapping[str, Any]
    curves: Mapping[str, Any]
    hosts: Hosts
    volumes: tuple[Volume, ...]
    block: int

    def stack(self, volume: Volume) -> dict[str, Any]:
        """Return a stack of one volume, for its curve."""
        alone = {key: value for key, value in self.cache.items() if key != "partition"}
        tables = {key: self.others[key] for key in ("seed", "replay") if key in self.others}
        cache = {**alone, "capacity": ANY_CAPACITY}
        return {"name": volume.name, **tables, "cache": cache, "tenant": [dict(volume.table)]}


def read_fleet(path: Path) -> Fleet:
    """Read a fleet file and all that it names but traces.

    Errors: `SpecError` naming the file and the key, what was found and what was expected.
    """
    try:
        tables = tomllib.loads(read(path).text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: {error}") from None
    hosts = _hosts(path, tables.pop("hosts", None))
    tenants = [dict(one) for one in _listed(path, tables)]
    if not tenants:
        raise SpecError(f'{path}: found no volume, expected `[[tenant]]` or `tenants = "FILE"`')
    curves = _table(path, tables, "curves")
    cache = _table(path, tables, "cache")
    if "capacity" in cache:
        found = cache["capacity"]
        raise SpecError(f"{path}: `cache.capacity`: found {found!r}, expected none: it is planned")
    own = [{key: tenant.pop(key, None) for key in OWN_KEYS} for tenant in tenants]
    tenants = [_absolute(tenant, path.parent) for tenant in tenants]
    stack = {**tables, "cache": {**cache, "capacity": ANY_CAPACITY}, "tenant": tenants}
    try:
        resolved = api.check(stack)
    except SpecError as error:
        raise SpecError(f"{path}: {str(error).removeprefix('stack: ')}") from None
    volumes = [
        _volume(path, table, keys, found, resolved["replay"])
        for table, keys, found in zip(tenants, own, resolved["tenant"], strict=True)
    ]
    block = _native.parse_bytes(resolved["cache"]["block"])
    name = str(tables.pop("name", path.stem))
    return Fleet(name, path, cache, tables, curves, hosts, tuple(volumes), block)


def _table(path: Path, tables: dict[str, Any], key: str) -> dict[str, Any]:
    found = tables.pop(key, {})
    if not isinstance(found, dict):
        raise SpecError(f"{path}: `{key}`: found {found!r}, expected a table")
    return found


def _listed(path: Path, tables: dict[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tenants' tables: those of the file, then the rows of the table that it names."""
    own = tables.pop("tenant", [])
    if not isinstance(own, list) or not all(isinstance(one, dict) for one in own):
        raise SpecError(f"{path}: `tenant`: found {own!r}, expected tables `[[tenant]]`")
    named = tables.pop("tenants", None)
    if named is None:
        return own
    if not isinstance(named, str) or Path(named).suffix not in (CSV, PARQUET):
        raise SpecError(f"{path}: `tenants`: found {named!r}, expected a file, .csv or .parquet")
    file = path.parent / named
    import polars as pl

    try:
        is_text = file.suffix == CSV
        frame = pl.read_csv(file, infer_schema=False) if is_text else pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        text = str(error).splitlines()[0]
        raise SpecError(f"{path}: `tenants`: cannot read `{file}`: {text}") from None
    for row in frame.to_dicts():
        own.append({key: _cell(key, value) for key, value in row.items() if value is not None})
    return own


def _cell(key: str, value: Any) -> Any:
    """Return a value as TOML would have it: a number is text in columns of names and files."""
    if not isinstance(value, str) or key in (*NAMES, *PATHS):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value


def _absolute(tenant: dict[str, Any], folder: Path) -> dict[str, Any]:
    places = {key: str((folder / str(tenant[key])).resolve()) for key in PATHS if key in tenant}
    return {**tenant, **places}


def _volume(
    path: Path,
    table: dict[str, Any],
    own: Mapping[str, Any],
    resolved: Mapping[str, Any],
    replay: Mapping[str, Any],
) -> Volume:
    name, group = str(resolved["name"]), own["group"]
    floor = 0 if own["floor"] is None else _bytes(path, f"tenant {name}: floor", own["floor"])
    goal = resolved.get("goal_hit_ratio")
    latency = resolved.get("goal_latency")
    if latency is not None:
        times = [_native.parse_duration(str(text)) for text in (replay["hit_time"], latency)]
        miss = _native.parse_duration(str(replay["miss_time"]))
        hit, wanted = times
        goal = min(1.0, max(0.0, (miss - wanted) / (miss - hit))) if miss > hit else 0.0
    text = None if group is None else str(group)
    return Volume(name, {**table, "name": name}, goal, text, floor)


def _hosts(path: Path, table: Any) -> Hosts:
    if not isinstance(table, dict):
        raise SpecError(f"{path}: found no table `[hosts]`, expected one with `count`")
    known = {
        "count": _whole,
        "flash": _bytes,
        "memory": _bytes,
        "memory_per_block": _bytes,
        "drive_writes_per_day": _number,
        "write_amplification": _number,
        "max_iops": _whole,
        "max_bandwidth": _bytes,
        "reserve": _share,
        "peaks": _whole,
    }
    for key in table:
        if key not in known:
            raise SpecError(
                f"{path}: `hosts.{key}`: found an unknown key, expected one of {', '.join(known)}"
            )
    found: dict[str, Any] = {
        key: known[key](path, f"hosts.{key}", value) for key, value in table.items()
    }
    if "count" not in found:
        raise SpecError(f"{path}: found no `hosts.count`, expected how many hosts there are")
    if "drive_writes_per_day" in found and "flash" not in found:
        raise SpecError(
            f"{path}: `hosts.drive_writes_per_day`: found no `hosts.flash`, expected "
            "the flash that it is a share of"
        )
    flash, reserve = found.get("flash"), found.get("reserve", 0.0)
    return Hosts(
        count=found["count"],
        flash_bytes=None if flash is None else int(flash * (1 - reserve)),
        memory_bytes=found.get("memory"),
        memory_per_block=found.get("memory_per_block", MEMORY_PER_BLOCK),
        writes_per_day=found.get("drive_writes_per_day"),
        amplification=found.get("write_amplification", 1.0),
        max_iops=found.get("max_iops"),
        max_bandwidth=found.get("max_bandwidth"),
        peaks=found.get("peaks", 1),
    )


def _whole(path: Path, key: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10**9:
        return value
    raise SpecError(f"{path}: `{key}`: found {value!r}, expected a whole number of 1 or more")


def _number(path: Path, key: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9:
        return float(value)
    raise SpecError(f"{path}: `{key}`: found {value!r}, expected a number above 0")


def _bytes(path: Path, key: str, value: Any) -> int:
    try:
        return _native.parse_bytes(str(value))
    except _native.Error:
        raise SpecError(f"{path}: `{key}`: found {value!r}, expected a size (`64MiB`)") from None


def _share(path: Path, key: str, value: Any) -> float:
    text = str(value)
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if 0 <= found < 1:
        return found
    raise SpecError(f"{path}: `{key}`: found {value!r}, expected a share (`10%`)")
