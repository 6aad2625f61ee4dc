"""A study of a fleet: distributions over volumes, and which policy wins on what share of them.

For: `fleet study`. Must never know: how a volume is measured, how a study is shown. The document
`study.json` and the tables `volumes.parquet` (a row per volume) and `hits.parquet` (a row per
volume, size and policy) are the same whichever engine ran and however often it was stopped.
Memory: some numbers per volume. Units: ratios 0 to 1, bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import targets, words
from cachewright._native import SCHEMA_VERSION, SpecError, __version__
from cachewright.fleet import job
from cachewright.fleet.datasets.files import JOURNAL_SUFFIX
from cachewright.fleet.datasets.manifest import Reading
from cachewright.fleet.datasets.volumes import Dataset, Volume, open_dataset
from cachewright.fleet.journal import Journal
from cachewright.fleet.over import Unread
from cachewright.fleet.task import Task

if TYPE_CHECKING:
    from cachewright.types import Progress

WORK = "cachewright.fleet.study_work:volume"
STUDY, VOLUMES, HITS = "study.json", "volumes.parquet", "hits.parquet"
POLICIES = ("lru", "sieve", "s3-fifo", "arc")
SIZES = ("0.1%wss", "1%wss", "10%wss", "40%wss")
SEPARATIONS = ("none", "2r", "sepbit")
QUANTILES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
ALL = "all"
LEAST_MEMORY_BYTES = 256 << 20
Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is measured of each volume."""

    policies: Sequence[str] = POLICIES
    sizes: Sequence[str] = SIZES
    rate: float = 0.05
    """Share of blocks that a sample has."""

    close: float = 0.01
    """Difference of hit ratios below which sampled policies are simulated exactly."""

    block: str = "4KiB"
    separations: Sequence[str] = SEPARATIONS
    """Separations of drives; none leaves drives out."""

    drive: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `api.wa`."""

    memory_bytes: int = 1 << 30
    """What a worker may need; of larger volumes a sample of their blocks is studied."""

    def check(self) -> None:
        """Refuse what cannot be measured. Errors: `SpecError`."""
        if not self.policies or not self.sizes:
            raise SpecError("found no policy or no size, expected one or more of each")
        if not 0 < self.rate <= 1:
            raise SpecError(f"`rate`: found {self.rate}, expected more than 0 and at most 1")
        if not 0 <= self.close <= 1:
            raise SpecError(f"`close`: found {self.close}, expected 0 to 1")
        if self.memory_bytes < LEAST_MEMORY_BYTES:
            found, least = words.size(self.memory_bytes), words.size(LEAST_MEMORY_BYTES)
            raise SpecError(f"`memory_bytes`: found {found}, expected {least} or more")

    def arguments(self) -> Row:
        """Return the same as arguments of a task."""
        drive = {"separations": list(self.separations), **self.drive}
        return {
            "policies": list(self.policies),
            "sizes": list(self.sizes),
            "rate": self.rate,
            "close": self.close,
            "block": self.block,
            "drive": drive if self.separations else None,
        }


@dataclass(frozen=True)
class Study:
    """The document of a study, where its files are, and what failed."""

    document: Row
    folder: Path
    failed: Sequence[tuple[str, str]]
    unread: Unread
    rates: job.Rates


def study(
    location: str,
    out: Path,
    plan: Plan | None = None,
    *,
    reading: Reading | None = None,
    how: job.How | None = None,
    opened: Callable[[Dataset], None] | None = None,
    progress: Progress | None = None,
) -> Study:
    """Study every volume of a location; files go to `out`. `opened` is called before that.

    Errors: `SpecError`, `RunError` (cancelled), `OSError`. A volume that fails is listed.
    """
    plan, reading, how = plan or Plan(), reading or Reading(), how or job.How()
    plan.check()
    dataset = open_dataset(location, out, reading=reading, how=how, progress=progress)
    if opened is not None:
        opened(dataset)
    tasks = [_task(volume, plan, reading) for volume in dataset.volumes]
    with Journal(out / f"study{JOURNAL_SUFFIX}") as journal:
        job.run_job(tasks, journal, how, stage="volumes", progress=progress)
        of_name = {volume.name: volume for volume in dataset.volumes}
        found = _Tables(plan)
        for task, value in job.values(tasks, journal):
            found.add(of_name[task.name], value)
        failed = job.write_failures(tasks, journal, out)
        rates = job.rates(tasks, journal)
    document = found.document(location, failed, dataset.failed)
    found.write(out)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    targets.write_whole(out / STUDY, text)
    return Study(document, out, failed, Unread(dataset.files, dataset.failed), rates)


def _task(volume: Volume, plan: Plan, reading: Reading) -> Task:
    """Return the task of a volume; a larger one is sampled until it fits the plan's memory."""
    arguments = {
        "volume": volume.plain(),
        "requests": volume.requests,
        "share": volume.share_of(plan.memory_bytes),
        "reading": reading.plain(),
        **plan.arguments(),
    }
    memory = min(volume.study_bytes, plan.memory_bytes)
    return job.task_of(volume.name, WORK, arguments, memory)


class _Tables:
    """The rows of a study, as volumes come in."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.volumes: list[Row] = []
        self.hits: list[Row] = []

    def add(self, volume: Volume, value: Row) -> None:
        facts, drive = value["facts"], value["drive"]
        row = {"volume": volume.name, "requests": volume.requests, **facts}
        row["working_set_bytes"] = volume.working_set_bytes
        for one in value["sizes"]:
            hits = one["policies"]
            row[f"best at {one['size']}"] = best_of(hits)
            for policy, hit in hits.items():
                self.hits.append(
                    {"volume": volume.name, "size": one["size"], "policy": policy, **hit}
                )
        if drive is not None:
            row["no drive"] = drive["why"]
            for name, amplification in drive["amplification"].items():
                row[f"amplification {name}"] = amplification
        self.volumes.append(row)

    def write(self, out: Path) -> None:
        import polars as pl

        for rows, name in ((self.volumes, VOLUMES), (self.hits, HITS)):
            with targets.whole(out / name) as part:
                frame = pl.DataFrame(rows, infer_schema_length=None)
                frame.write_parquet(part, compression="zstd")

    def document(
        self,
        location: str,
        failed: Sequence[tuple[str, str]],
        unread: Sequence[tuple[str, str]],
    ) -> Row:
        """Return `study.json`; docs/fleet.md describes its keys."""
        return {
            "cachewright": __version__,
            "schema_version": SCHEMA_VERSION,
            "name": location,
            "plan": self.plan.arguments(),
            "volumes": len(self.volumes),
            "requests": sum(row["requests"] for row in self.volumes),
            "working_set_bytes": sum(row["working_set_bytes"] for row in self.volumes),
            "failed": [{"name": name, "error": error} for name, error in failed],
            "unread": [{"name": name, "error": error} for name, error in unread],
            "classes": self._classes(),
            "distributions": self._distributions(),
            "wins": self._wins(),
        }

    def _classes(self) -> list[Row]:
        """Return how many volumes and requests are of each class, most volumes first."""
        found: dict[str, Row] = {}
        for row in self.volumes:
            one = found.setdefault(row["class"], {"volumes": 0, "requests": 0})
            one["volumes"] += 1
            one["requests"] += row["requests"]
        order = sorted(found, key=lambda name: (-found[name]["volumes"], name))
        return [{"volume_class": name, **found[name]} for name in order]

    def _distributions(self) -> list[Row]:
        """Return quantiles over the volumes of every measure."""
        rows = []
        for measure in ("read_share", "reuse", "working_set_bytes", "rate_per_s", "requests"):
            rows.append({"measure": measure, **_spread(row[measure] for row in self.volumes)})
        ratios: dict[tuple[str, str], list[float]] = {}
        for hit in self.hits:
            ratios.setdefault((hit["size"], hit["policy"]), []).append(hit["hit_ratio"])
        for size in self.plan.sizes:
            for policy in self.plan.policies:
                spread = _spread(ratios.get((size, policy), []))
                rows.append({"measure": "hit_ratio", "size": size, "policy": policy, **spread})
        for name in self.plan.separations:
            found = [row.get(f"amplification {name}") for row in self.volumes]
            spread = _spread(one for one in found if one is not None)
            rows.append({"measure": "write_amplification", "separation": name, **spread})
        return rows

    def _wins(self) -> list[Row]:
        """Return for each size, class and policy how often it is the best, and what it loses."""
        classes = {row["volume"]: row["class"] for row in self.volumes}
        cells: dict[tuple[str, str], dict[str, Row]] = {}
        for (_, size), hits in _by_volume(self.hits).items():
            volume = hits[0]["volume"]
            by_policy = {hit["policy"]: hit for hit in hits}
            best = max(hit["hit_ratio"] for hit in hits)
            alone = sum(hit["hit_ratio"] == best for hit in hits) == 1
            for name in (ALL, classes[volume]):
                cell = cells.setdefault((size, name), {})
                for policy, hit in by_policy.items():
                    _count(cell.setdefault(policy, {}), hit, best, alone, self.plan.close)
        names = [ALL, *(one["volume_class"] for one in self._classes())]
        return [
            {"size": size, "volume_class": name, "policy": policy, **_shares(cell[policy])}
            for size in self.plan.sizes
            for name in names
            for cell in [cells.get((size, name), {})]
            for policy in self.plan.policies
            if policy in cell
        ]


def best_of(hits: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the policies of the highest hit ratio.

    >>> best_of({"lru": {"hit_ratio": 0.5}, "arc": {"hit_ratio": 0.5}, "fifo": {"hit_ratio": 0.4}})
    'lru, arc'
    """
    best = max(hit["hit_ratio"] for hit in hits.values())
    return ", ".join(policy for policy, hit in hits.items() if hit["hit_ratio"] == best)


def _by_volume(hits: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for hit in hits:
        found.setdefault((hit["volume"], hit["size"]), []).append(hit)
    return found


def _count(one: Row, hit: Row, best: float, alone: bool, close: float) -> None:
    """Add a volume to what is known of a policy; `alone` when no other has the `best` hit ratio."""
    behind = best - hit["hit_ratio"]
    for key, value in (
        ("volumes", 1),
        ("wins", behind == 0 and alone),
        ("ties", behind == 0 and not alone),
        ("close", behind <= close),
        ("exact", hit["exact"]),
        ("lost", behind),
    ):
        one[key] = one.get(key, 0) + value


def _shares(one: Row) -> Row:
    volumes = one["volumes"]
    return {
        "volumes": volumes,
        "win_share": one["wins"] / volumes,
        "tie_share": one["ties"] / volumes,
        "close_share": one["close"] / volumes,
        "exact_share": one["exact"] / volumes,
        "mean_loss": one["lost"] / volumes,
    }


def _spread(values: Iterable[float]) -> Row:
    """Return the mean and quantiles (linear between neighbours) of some values."""
    found = sorted(values)
    if not found:
        return {"count": 0, "mean": None, "quantiles": []}
    top = len(found) - 1
    quantiles = []
    for share in QUANTILES:
        at = share * top
        low = int(at)
        high = min(low + 1, top)
        quantiles.append([share, found[low] + (found[high] - found[low]) * (at - low)])
    return {"count": len(found), "mean": sum(found) / len(found), "quantiles": quantiles}
