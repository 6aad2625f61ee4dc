"""Synthetic tenants that differ in one feature, each alone with some sizes of a cache.

For: figures that show what a feature does to response times. Must never know: papers, how a figure
is drawn. A tenant's table is one of `synth` with `rate` (requests per s) and `unique`, the part of
requests that come to addresses used once. Two fifths of the requests are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import api
from cachewright.stack import toml_text
from cachewright_lab.reproduce.jobs import Job, each
from cachewright_lab.reproduce.specs import merged

if TYPE_CHECKING:
    from cachewright.types import Progress

WARM = 0.4
SEED = 5
# Weights of parts are whole numbers.
WHOLE = 1000
# Where addresses that are used once begin.
BEYOND = "64GiB"
Table = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One tenant: what was changed to what, and its mean response in ns by size in bytes."""

    series: str
    label: str
    workload: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Found:
    """All tenants, in the order of the spec."""

    lines: list[Line]


def run(
    about: Mapping[str, Any],
    document: Mapping[str, Any],
    kind: str,
    machine: Table,
    folder: Path,
    how: tuple[int, Progress | None],
) -> Found:
    """Replay every tenant; their descriptions are kept below `folder`."""
    over = document.get(f"{kind}_base", {})
    wanted = [
        (series["title"], label, _changed(merged(base, over), series["key"], value))
        for series in document["series"]
        for label, value in zip(series["labels"], series["values"], strict=True)
        for base in document["base"]
    ]
    jobs: list[Job[Line]] = [
        partial(_line, title, label, tenant, about["sizes"], machine, folder)
        for title, label, tenant in wanted
    ]
    threads, progress = how
    return Found(each("replaying features", jobs, threads, progress))


def _changed(base: Table, key: str, value: Any) -> Table:
    if key == "more_unique":
        return base | {"unique": base["unique"] + value}
    return base | {key: value}


def _line(
    title: str,
    label: str,
    tenant: Table,
    sizes: list[str],
    machine: Table,
    folder: Path,
    progress: Progress,
) -> Line:
    name = "-".join([title, label, tenant["name"]])
    path = folder / "synth" / ("".join(c if c.isalnum() else "-" for c in name) + ".toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_description(tenant), encoding="utf-8")
    span_ns = round(tenant["count"] / tenant["rate"] * 1e9)
    replay = machine["replay"] | {"warmup": f"{round(WARM * span_ns)}ns"}
    one = {"name": tenant["name"], "trace": str(path.resolve()), "format": "synth"}
    stack = {"name": name, "seed": 1, **machine, "replay": replay, "tenant": [one]}
    found = api.mrc(stack, sizes=sizes, latency=True, threads=1, progress=progress).answer
    sized = [
        (point.size_blocks * found.block_bytes, point.mean_ns)
        for curve in found.latency or ()
        for point in curve.points
    ]
    return Line(title, label, tenant["name"], tuple(sized))


def _description(tenant: Table) -> str:
    own = dict(tenant)
    rate, unique = own.pop("rate"), own.pop("unique")
    once = {"kind": "sequential", "span": "64GiB", "offset": BEYOND, "align": "8KiB"}
    own_weight = round(WHOLE * unique)
    parts = [
        {"weight": WHOLE - own_weight, "pattern": own["pattern"]},
        {"weight": own_weight, "pattern": once},
    ]
    own["arrival"] = {"kind": "poisson", "rate": f"{rate}/s"}
    own["pattern"] = {"kind": "mix", "part": parts}
    return toml_text({"synth": {"seed": SEED}, "tenant": [own]})
