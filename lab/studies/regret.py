#!/usr/bin/env python3
"""Measures schemes on volumes and writes the regrets into docs/which-scheme.md.

For: the tables behind `partition = "auto"` (mixes of volumes) and `policy = "auto"` (volumes alone,
regret_policies.py). Must never know: how a scheme decides. Finished cases are kept in the folder of
results for the next run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cachewright
import marked_pages
import regret_operations
import regret_policies
from cachewright.answers import Case
from regret_policies import mean_response, misses
from regret_tables import Study, table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "which-scheme.md"
BUNDLED = ("oltp", "mail", "web", "lu")
# Mixes of further volumes: of 2, 3, 4 and 8, so that each volume stands in several.
FURTHER = (
    ("build", "video"),
    ("dss", "kv"),
    ("file", "phases"),
    ("build", "kv", "phases"),
    ("dss", "file", "video"),
    ("build", "dss", "file", "kv"),
    ("build", "dss", "file", "kv", "phases", "video", "mail", "oltp"),
)
CAPACITIES = ("5%wss", "20%wss")
# In the order of the table. Schemes with models, goals or the future are not among them.
REPLAYED = ("auto", "shared", "equal", "hull", "dp", "memshare")
TIMED = (*REPLAYED, "icache-x", "dp-response", "robinhood")
# What `icache-x` gains by its settings, beside the scheme that is nearest to it.
ABLATED = (
    "icache-x",
    '{ name = "icache-x", queueing = 0.0 }',
    '{ name = "icache-x", queueing = 2.0 }',
    '{ name = "icache-x", queueing = 32.0 }',
    '{ name = "icache-x", granules = 200 }',
    '{ name = "icache-x", norm = 4.0 }',
    '{ name = "icache-x", norm = 4.0, granules = 200 }',
    '{ name = "icache-x", worst_first = true }',
    "dp-response",
)
# What `--only` names.
TABLES = ("partitions", "policies", "settings", "operations")
TIERED: dict[str, Any] = {
    "device": {
        "cache": {"model": "fixed-latency", "read": "100us", "write": "60us", "parallelism": 32},
        "backing": {
            "model": "fixed-latency",
            "read": "2ms",
            "write": "2ms",
            "parallelism": 4,
            "per_tenant": True,
        },
    },
    "machine": {"system": "tiered", "alone": True},
}
# The same for a volume that has it to itself.
TIERED_ALONE = {**TIERED, "machine": {"system": "tiered"}}


def worst_slowdown(case: Case) -> float:
    """Return the slowdown of the tenant that is slowed down most beside the others."""
    assert case.timing is not None, "the stack has devices"
    assert case.timing.fairness is not None, "tenants were replayed alone"
    return case.timing.fairness.max_slowdown


KINDS: dict[str, Callable[[Case], float]] = {
    "misses": misses,
    "mean response": mean_response,
    "worst slowdown": worst_slowdown,
}


def stack(name: str, traces: Iterable[Path], *, timed: bool, stop: str) -> dict[str, Any]:
    """Return the stack of a mix."""
    tenants = [{"name": path.name.split(".")[0], "trace": str(path)} for path in traces]
    replay = {"interval": "2s", "stop": stop}
    machine = TIERED if timed else {}
    cache = {"capacity": CAPACITIES[0], "policy": "lru"}
    return {"name": name, "cache": cache, "replay": replay, "tenant": tenants, **machine}


def studies(
    mix: tuple[Path, ...], out: Path, *, schemes: Sequence[str], timed: bool, stop: str
) -> Iterator[Study]:
    """Yield the studies of a mix, of one kind of replay."""
    volumes = "+".join(path.name.split(".")[0] for path in mix)
    name = f"{volumes}-{'timed' if timed else 'replayed'}"
    vary = {"capacity": list(CAPACITIES), "partition": list(schemes)}
    given = stack(name, mix, timed=timed, stop=stop)
    cases = cachewright.compare(given, vary, out=out / name).answer.cases
    print(f"{name}: {len(cases)} cases", file=sys.stderr)
    for kind, measure in KINDS.items():
        if timed == (kind == "misses"):
            continue
        for capacity in CAPACITIES:
            of_size = [case for case in cases if case.settings["cache.capacity"] == capacity]
            found = {case.settings["cache.partition"]: measure(case) for case in of_size}
            yield Study(kind, f"{volumes} {capacity}", found)


def bundled_mixes() -> Iterator[tuple[Path, ...]]:
    """Yield every mix of two or more of the bundled volumes."""
    paths = [ROOT / "data" / f"{name}.csv.zst" for name in BUNDLED]
    for count in range(2, len(paths) + 1):
        yield from itertools.combinations(paths, count)


def further_mixes(folder: Path) -> Iterator[tuple[Path, ...]]:
    """Yield the mixes of a folder's volumes; the ones that it lacks are left out."""
    for names in FURTHER:
        paths = tuple(folder / f"{name}.csv.zst" for name in names)
        if all(path.is_file() for path in paths):
            yield paths


def of_partitions(given: argparse.Namespace) -> list[Study]:
    """Return the studies of partitioners on mixes."""
    mixes = list(bundled_mixes() if given.traces is None else further_mixes(given.traces))
    if not mixes:
        raise SystemExit(f"{given.traces}: found none of the mixes, expected volumes of FURTHER")
    return [
        study
        for timed in ((False,) if given.no_devices else (False, True))
        for mix in mixes
        for study in studies(
            mix,
            given.out,
            schemes=TIMED if timed else REPLAYED,
            timed=timed,
            stop=given.stop,
        )
    ]


def of_settings(given: argparse.Namespace) -> list[Study]:
    """Return the studies of settings of `icache-x` on the bundled mixes."""
    folder = given.out / "settings"
    return [
        study
        for mix in bundled_mixes()
        for study in studies(mix, folder, schemes=ABLATED, timed=True, stop=given.stop)
    ]


def of_policies(given: argparse.Namespace) -> list[Study]:
    """Return the studies of policies on volumes alone."""
    further, folder = given.traces is not None, given.traces or ROOT / "data"
    names = regret_policies.FURTHER if further else BUNDLED
    traces = [folder / f"{name}.csv.zst" for name in names]
    traces = [path for path in traces if path.is_file()]
    if not traces:
        raise SystemExit(f"{folder}: found none of the volumes, expected {', '.join(names)}")
    return [
        study
        for devices in (({},) if given.no_devices else ({}, TIERED_ALONE))
        for study in regret_policies.studies(traces, given.out, machine=devices, stop=given.stop)
    ]


def write_operations(given: argparse.Namespace) -> None:
    """Print the disk's operations on the bundled volumes; write them if that is asked for."""
    traces = [ROOT / "data" / f"{name}.csv.zst" for name in BUNDLED]
    text = regret_operations.table(traces, given.out, machine=TIERED_ALONE, stop=given.stop)
    print(text)
    if given.write:
        marked_pages.write(PAGE, {"operations": text})


def keep(
    found: Sequence[Study], name: str, schemes: Sequence[str], *, out: Path, write: bool
) -> None:
    """Keep the studies and print their table; write it into the page if that is asked for."""
    kept = [study._asdict() for study in found]
    (out / f"{name.replace(' ', '-')}.json").write_text(json.dumps(kept, indent=1))
    text = table(found, schemes)
    print(text)
    if write:
        marked_pages.write(PAGE, {name: text})


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--traces", type=Path, help="folder of further volumes, NAME.csv.zst")
    parser.add_argument("--stop", default="60s", help="end of each open replay")
    parser.add_argument("--no-devices", action="store_true", help="leave out the tiered machine")
    parser.add_argument("--only", choices=TABLES, help="one table")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    given = parser.parse_args()
    elsewhere = "" if given.traces is None else " elsewhere"
    if given.only == "settings":
        found = of_settings(given)
        names = list(found[0].measures)
        keep(found, "regrets of settings", names, out=given.out, write=given.write)
        return 0
    if given.only == "operations":
        write_operations(given)
        return 0
    if given.only != "policies":
        found = of_partitions(given)
        keep(found, f"regrets{elsewhere}", TIMED, out=given.out, write=given.write)
    if given.only != "partitions":
        found, schemes = of_policies(given), regret_policies.schemes()
        name = f"regrets of policies{elsewhere}"
        keep(found, name, schemes, out=given.out, write=given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
