#!/usr/bin/env python3
"""Measures partitioners on mixes of volumes and writes the regrets into docs/which-scheme.md.

For: the table behind `partition = "auto"`. Must never know: how a partitioner divides. The regret
of a scheme in a study is its measure over the least of all schemes there, minus 1; the table has
its worst regret, and its mean. Finished cases are kept in the folder of results for the next run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cachewright
from cachewright.answers import Case

ROOT = Path(__file__).resolve().parent.parent
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
TIERED = {
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


class Study(NamedTuple):
    """Cases that differ in the partitioner only, and what is least in the best of them."""

    kind: str
    name: str
    measures: dict[str, float]

    def regret(self, scheme: str) -> float | None:
        """Return by how much a scheme is above the best; nothing where it did not run."""
        own = self.measures.get(scheme)
        return None if own is None else own / min(self.measures.values()) - 1


def misses(case: Case) -> float:
    """Return the accesses that found no block, at least 1."""
    return max(case.total.misses, 1)


def mean_response(case: Case) -> float:
    """Return the mean response of all requests."""
    assert case.timing is not None, "the stack has devices"
    return case.timing.total.mean_ns


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


def studies(mix: tuple[Path, ...], out: Path, *, timed: bool, stop: str) -> Iterator[Study]:
    """Yield the studies of a mix, of one kind of replay."""
    volumes = "+".join(path.name.split(".")[0] for path in mix)
    name = f"{volumes}-{'timed' if timed else 'replayed'}"
    vary = {"capacity": list(CAPACITIES), "partition": list(TIMED if timed else REPLAYED)}
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


def table(found: list[Study]) -> str:
    """Return a row per scheme: worst and mean regret by kind, and the study of the worst."""
    kinds = [kind for kind in KINDS if any(study.kind == kind for study in found)]
    head = ["scheme", *(f"{kind}: worst, mean (worst study)" for kind in kinds)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for scheme in TIMED:
        cells = [f"`{scheme}`"]
        for kind in kinds:
            of_kind = [study for study in found if study.kind == kind]
            known = [(study.regret(scheme), study.name) for study in of_kind]
            regrets = [(regret, name) for regret, name in known if regret is not None]
            if not regrets:
                cells.append("-")
                continue
            worst, name = max(regrets)
            mean = sum(regret for regret, _ in regrets) / len(regrets)
            cells.append(f"{100 * worst:.1f} %, {100 * mean:.1f} % ({name})")
        lines.append(f"| {' | '.join(cells)} |")
    counts = ", ".join(f"{sum(study.kind == kind for study in found)} of {kind}" for kind in kinds)
    return "\n".join([*lines, "", f"Studies: {counts}."])


def replaced(page: str, name: str, text: str) -> str:
    """Return the page with the block of a name replaced."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{PAGE}: found no block `{name}`, expected one")
    return f"{head}{begin}\n{text}\n{end}{tail}"


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--traces", type=Path, help="folder of further volumes, NAME.csv.zst")
    parser.add_argument("--stop", default="60s", help="end of each replay")
    parser.add_argument("--no-devices", action="store_true", help="leave out the tiered machine")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    given = parser.parse_args()
    further = given.traces is not None
    mixes = list(further_mixes(given.traces) if further else bundled_mixes())
    if not mixes:
        parser.error(f"{given.traces}: found none of the mixes, expected volumes of FURTHER")
    found = [
        study
        for timed in ((False,) if given.no_devices else (False, True))
        for mix in mixes
        for study in studies(mix, given.out, timed=timed, stop=given.stop)
    ]
    name = "regrets elsewhere" if further else "regrets"
    kept = [study._asdict() for study in found]
    (given.out / f"{name.replace(' ', '-')}.json").write_text(json.dumps(kept, indent=1))
    text = table(found)
    print(text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(replaced(page, name, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
