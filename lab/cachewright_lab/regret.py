"""Regrets of schemes on volumes, for docs/which-scheme.md: `python -m cachewright_lab.regret`.

The tables behind `partition = "auto"` (mixes of volumes) and `policy = "auto"` (volumes alone). The
regret of a scheme on a subject is its measure over the least of all schemes there, minus 1; a table
has its worst regret and its mean.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cachewright import registries
from cachewright.answers import Case
from cachewright_lab.study import (
    ROOT,
    Measures,
    Mix,
    Programme,
    Replay,
    Row,
    Study,
    Volume,
    bundled,
    grid,
    mean_response,
    misses,
    worst_slowdown,
)

PAGE = ROOT / "docs" / "which-scheme.md"
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

# Partitioners, on mixes. Further volumes stand in several mixes of 2, 3, 4 and 8.
FURTHER_MIXES = (
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

# Policies, on volumes alone.
FURTHER = ("build", "dss", "file", "kv", "phases", "video")
POLICY_CAPACITIES = ("1%wss", "5%wss", "20%wss", "50%wss")
# Misses that a block written to flash costs: the price of `rc-x` and of `cachesack`.
WRITE_PRICE = 0.1
# Policies that need these do not run on a volume alone.
UNMET_NEEDS = {"future", "benefit", "model", "code"}
# Learned by boosted trees, 40 times slower than the others.
TOO_SLOW = ("lrb",)

# Operations of the disk: two that write runs back or keep requests whole, three that do neither.
COMPARED = ("access-frequency", "lru", "duel-x", "lhd", "cacheus")
WRITES = ("write-back", "write-through")


def policies() -> list[str]:
    """Return what tables of policies compare: `auto`, then those that learn while they run."""
    entries = registries.list("policies")
    online = [entry.name for entry in entries if not UNMET_NEEDS & set(entry.needs)]
    return ["auto", *(name for name in online if name not in TOO_SLOW)]


def misses_and_writes(case: Case) -> float:
    """Return misses with the blocks written to flash at their price."""
    return misses(case) + WRITE_PRICE * case.total.cache_writes


def mix_of(paths: Sequence[Path]) -> Mix:
    """Return the mix of some files."""
    volumes = tuple(Volume(path.name.split(".")[0], path) for path in paths)
    return Mix("+".join(volume.name for volume in volumes), volumes)


def mixes(further: Path | None) -> list[Mix]:
    """Return every mix of the bundled volumes, or those of a folder whose files are all there."""
    if further is None:
        paths = [volume.path for volume in bundled()]
        return [
            mix_of(chosen)
            for count in range(2, len(paths) + 1)
            for chosen in itertools.combinations(paths, count)
        ]
    chosen = [mix_of([further / f"{one}.csv.zst" for one in names]) for names in FURTHER_MIXES]
    return [mix for mix in chosen if all(volume.path.is_file() for volume in mix.volumes)]


def divided(
    mix: Mix, out: Path, schemes: Sequence[str], stop: str, *, timed: bool
) -> Iterator[Row]:
    """Yield what partitioners gave on a mix, on the tiered machine or without devices."""
    name = f"{mix.name}-{'timed' if timed else 'replayed'}"
    stack = {
        "name": name,
        "cache": {"capacity": CAPACITIES[0], "policy": "lru"},
        "replay": {"interval": "2s", "stop": stop},
        "tenant": [volume.tenant() for volume in mix.volumes],
        **(TIERED if timed else {}),
    }
    vary = {"capacity": CAPACITIES, "partition": schemes}
    measures: Measures = (
        {"mean response": mean_response, "worst slowdown": worst_slowdown}
        if timed
        else {"misses": misses}
    )
    yield from Replay(mix, stack, vary, measures, out / name, "partition").rows()


def of_partitions(given: argparse.Namespace) -> Iterator[Row]:
    """Yield what partitioners gave on mixes."""
    for timed in (False,) if given.no_devices else (False, True):
        for mix in mixes(given.traces):
            schemes = TIMED if timed else REPLAYED
            yield from divided(mix, given.out, schemes, given.stop, timed=timed)


def of_settings(given: argparse.Namespace) -> Iterator[Row]:
    """Yield what settings of `icache-x` gave on the bundled mixes."""
    for mix in mixes(None):
        yield from divided(mix, given.out / "settings", ABLATED, given.stop, timed=True)


def alone(volume: Volume, machine: Mapping[str, Any], stop: str) -> dict[str, Any]:
    """Return the stack of a volume, on a machine if there is one."""
    # Arrivals of some volumes overrun the devices, so that each of eight slots waits for answers.
    replay = {"loop": "closed"} if machine else {"stop": stop}
    return {
        "name": volume.name,
        "cache": {"capacity": POLICY_CAPACITIES[0], "policy": "lru"},
        "replay": replay,
        "tenant": [volume.tenant()],
        **machine,
    }


def of_policies(given: argparse.Namespace) -> Iterator[Row]:
    """Yield what policies gave on volumes alone."""
    volumes = bundled()
    if given.traces is not None:
        volumes = [Volume(name, given.traces / f"{name}.csv.zst") for name in FURTHER]
    vary = {"capacity": POLICY_CAPACITIES, "policy": policies()}
    for machine in ({},) if given.no_devices else ({}, TIERED_ALONE):
        measures: Measures = {"misses": misses, "misses and writes": misses_and_writes}
        if machine:
            measures = {"mean response": mean_response}
        for volume in (one for one in volumes if one.path.is_file()):
            folder = given.out / f"{volume.name}-{'timed' if machine else 'replayed'}-policies"
            stack = alone(volume, machine, given.stop)
            yield from Replay(volume, stack, vary, measures, folder).rows()


def reads_per_request(case: Case) -> float:
    """Return the reads of the disk per request; several where a request misses several runs."""
    return _of_disk(case, "reads")


def writes_per_request(case: Case) -> float:
    """Return the writes of the disk per request; dirty blocks that leave one by one are one each.

    With `write-through` none are dirty.
    """
    return _of_disk(case, "writes")


def _of_disk(case: Case, operation: str) -> float:
    assert case.timing is not None, "the stack has devices"
    disk = next(device for device in case.timing.devices if device.name.startswith("backing"))
    count: int = getattr(disk, operation)
    return count / max(case.total.requests or 0, 1)


def of_operations(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the disk's operations on the bundled volumes with both ways to write."""
    vary = {"capacity": ["5%wss"], "policy": COMPARED, "write": WRITES}
    measures = {"mean": mean_response, "reads": reads_per_request, "writes": writes_per_request}
    for volume in bundled():
        stack = alone(volume, TIERED_ALONE, given.stop)
        folder = given.out / f"{volume.name}-operations"
        yield from Replay(volume, stack, vary, measures, folder, setting="write").rows()


def regrets(rows: Sequence[Row], schemes: Sequence[str]) -> str:
    """Return a row per scheme: worst and mean regret by measure, and the study of the worst."""
    kinds = list(dict.fromkeys(kind for row in rows for kind in row.values))
    studies: dict[str, dict[tuple[str, str], dict[str, float]]] = {kind: {} for kind in kinds}
    for row in rows:
        for kind, value in row.values.items():
            study = studies[kind].setdefault((row.subject, row.setting), {})
            study[row.scheme] = value
    head = ["scheme", *(f"{kind}: worst, mean (worst study)" for kind in kinds)]
    body = [
        [f"`{scheme}`", *(_regret(studies[kind], scheme) for kind in kinds)] for scheme in schemes
    ]
    counts = ", ".join(f"{len(studies[kind])} of {kind}" for kind in kinds)
    return f"{grid(head, body, len(head))}\n\nStudies: {counts}."


def _regret(studies: Mapping[tuple[str, str], Mapping[str, float]], scheme: str) -> str:
    found = [
        (values[scheme] / min(values.values()) - 1, " ".join(study))
        for study, values in studies.items()
        if scheme in values
    ]
    if not found:
        return "-"
    worst, name = max(found)
    mean = sum(regret for regret, _ in found) / len(found)
    return f"{100 * worst:.1f} %, {100 * mean:.1f} % ({name})"


def operations(rows: Sequence[Row]) -> str:
    """Return a row per volume and policy: responses, and the disk's operations per request."""
    head = ["volume", "policy", *(f"{write}: mean us" for write in WRITES)]
    head += [f"{write}: reads, writes of the disk per request" for write in WRITES]
    found = {(row.subject, row.scheme, row.setting): row.values for row in rows}
    body = []
    for volume in dict.fromkeys(row.subject for row in rows):
        for policy in COMPARED:
            own = [found[volume, policy, write] for write in WRITES]
            means = [f"{one['mean'] / 1e3:,.0f}" for one in own]
            counts = [f"{one['reads']:.2f}, {one['writes']:.2f}" for one in own]
            body.append([volume, f"`{policy}`", *means, *counts])
    return grid(head, body, 2)


def elsewhere(given: argparse.Namespace) -> str:
    """Return what tells the blocks of further volumes from those of the bundled ones."""
    return "" if given.traces is None else " elsewhere"


def options(parser: argparse.ArgumentParser) -> None:
    """Add what is given beside the usual."""
    parser.add_argument("--traces", type=Path, help="folder of further volumes, NAME.csv.zst")
    parser.add_argument("--stop", default="60s", help="end of each open replay")
    parser.add_argument("--no-devices", action="store_true", help="leave out the tiered machine")


STUDIES = {
    "partitions": Study(
        of_partitions,
        lambda given, rows: {f"regrets{elsewhere(given)}": regrets(rows, TIMED)},
    ),
    "policies": Study(
        of_policies,
        lambda given, rows: {f"regrets of policies{elsewhere(given)}": regrets(rows, policies())},
    ),
    "settings": Study(
        of_settings,
        lambda _, rows: {
            "regrets of settings": regrets(rows, list(dict.fromkeys(row.scheme for row in rows)))
        },
        usual=False,
    ),
    "operations": Study(
        of_operations, lambda _, rows: {"operations": operations(rows)}, usual=False
    ),
}
PROGRAMME = Programme("Measures regrets of schemes on volumes.", PAGE, STUDIES, options)

if __name__ == "__main__":
    sys.exit(PROGRAMME.main())
