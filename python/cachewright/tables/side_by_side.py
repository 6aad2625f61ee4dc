"""Results side by side: what several of them measured alike, and in what settings they differ.

Each result is read as rows of measures and as curves, whatever command wrote it; `Comparison`
aligns the rows of several. Nothing is computed again: a number is one of a result, or lies on one
of its curves. Units: bytes, nanoseconds, pages, ratios in 0..1.

A row has a number per measure, and keys that tell it from the other rows of its result. Rows of two
results are of the same thing when the keys that vary in either have equal values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from cachewright import characterized, documents, results, words
from cachewright._native import SpecError, parse_bytes
from cachewright.answers import (
    AmplificationAnswer,
    Case,
    CharacterizeAnswer,
    CurvesAnswer,
    JudgedPeriod,
    PeriodCounts,
    PlanAnswer,
    RunAnswer,
    TenantFacts,
)
from cachewright.tables import Beside, Better, Table, beside, measures, of_texts, summary
from cachewright.tables.measures import Measured, figure_of

TENANT, ALL = "tenant", "all"
CAPACITY, OWN_CACHE = "cache.capacity", "cache of its own"
POLICY, PARTITION = "cache.policy", "cache.partition"
HIT_RATIO, AMPLIFICATION = "hit ratio", "write amplification"
SMALLEST = "smallest cache"


class Measure(NamedTuple):
    """A number of rows: its name, how it is written, and which end of it is best, if any."""

    name: str
    show: Callable[[float | None], str]
    better: Better | None = None


@dataclass(frozen=True)
class Row:
    """Numbers by measure, and the keys that tell the row from others of its result."""

    keys: Mapping[str, str]
    values: Mapping[str, float]


@dataclass(frozen=True)
class Curve:
    """Hit ratio by cache size in bytes, ascending, of one tenant (or `all`) under a policy."""

    tenant: str
    policy: str
    points: Sequence[tuple[int, float]]

    def at(self, size_bytes: int) -> float | None:
        """Return the hit ratio at a size, linear between two points; None outside them."""
        place = bisect_left(self.points, size_bytes, key=lambda point: point[0])
        if place == len(self.points):
            return None
        above, high = self.points[place]
        if above == size_bytes:
            return high
        if place == 0:
            return None
        below, low = self.points[place - 1]
        return low + (high - low) * (size_bytes - below) / (above - below)


@dataclass(frozen=True)
class Reading:
    """What one result holds.

    `settings` are by dotted key, `workload` says per tenant what was replayed. `sizes` are the
    bytes of the caches that it ran; where they are empty the rows at a size come from `curves`.
    """

    label: str
    command: str
    settings: Mapping[str, str]
    measures: Sequence[Measure]
    rows: Sequence[Row]
    curves: Sequence[Curve] = ()
    workload: Mapping[str, str] = field(default_factory=dict)
    sizes: Sequence[int] = ()

    def at_sizes(self, sizes: Sequence[int]) -> list[Row]:
        """Return the rows, those of curves at these sizes; a curve of all is a shared cache."""
        if self.sizes or not sizes:
            return list(self.rows)
        found = list(self.rows)
        for curve in self.curves:
            together = curve.tenant == ALL
            for size in sizes:
                ratio = curve.at(size)
                if ratio is None:
                    continue
                keys = {TENANT: curve.tenant, POLICY: curve.policy}
                keys |= {PARTITION: "shared"} if together else {}
                keys[CAPACITY if together else OWN_CACHE] = exact_size(size)
                found.append(Row(keys, {HIT_RATIO: ratio}))
        return found


def _shown_key(key: str, text: str) -> str:
    if key not in (CAPACITY, OWN_CACHE) or not text.endswith("B"):
        return text
    return words.readable(text, parse_bytes(text))


def exact_size(size_bytes: int) -> str:
    """Return a size as text that no other size has: `1.5GiB`, or `109724KiB` where that rounds."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        scaled = size_bytes / (1 << shift)
        text = words.significant(scaled)
        if scaled >= 1 and (float(text) if "," not in text else None) == scaled:
            return f"{text}{unit}"
        if size_bytes and size_bytes % (1 << shift) == 0:
            return f"{size_bytes >> shift}{unit}"
    return f"{size_bytes}B"


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Return settings by dotted key as text; those of a list's tables stand under their names."""
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for key, held in value.items():
            found |= flat(held, f"{prefix}.{key}" if prefix else str(key))
        return found
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        found = {}
        for place, held in enumerate(value):
            name = held.get("name", place)
            found |= flat({k: v for k, v in held.items() if k != "name"}, f"{prefix}.{name}")
        return found
    return {prefix: words.NOTHING if value is None else words.setting(value)}


# Sizes at which results that are curves alone are compared.
GRID = 9
# Settings of a tenant that only one result has say nothing that the workloads do not.
TENANTS = "tenant."
# A setting, or a tenant's workload, and each result's; None where it has none.
Unlike = tuple[str, list[str | None]]


@dataclass(frozen=True)
class MeasureTable:
    """One measure: a row per thing measured, a column per result; None where it has no number.

    `keys` names what tells the rows apart. `matched` counts rows that two results share.
    """

    measure: Measure
    keys: Sequence[str]
    labels: Sequence[str]
    rows: Sequence[Beside]

    @property
    def matched(self) -> int:
        """How many rows have a number in at least two results."""
        return sum(_count(values) > 1 for _, values in self.rows)

    @property
    def shown_rows(self) -> list[Beside]:
        """The rows with sizes in units that people read."""
        return [row._replace(keys=tuple(map(_shown_key, self.keys, row.keys))) for row in self.rows]

    def table(self, matched: int | None = None, rows: int | None = None) -> Table[Beside]:
        """Return the table: `matched` rows that results share at most, or `rows` of all."""
        shared = self.shown_rows if matched is None else self.shown_rows[: self.matched]
        return beside(
            self.measure.name,
            [key_name(key) for key in self.keys],
            self.labels,
            shared,
            self.measure.show,
            better=self.measure.better,
            changes=self.matched > 0,
            shown=rows if matched is None else matched,
        )


@dataclass(frozen=True)
class Comparison:
    """Results that share something."""

    readings: Sequence[Reading]

    @staticmethod
    def of(readings: Sequence[Reading]) -> Comparison:
        """Return the results as a comparison.

        Errors: `SpecError` for fewer than two, and for one that shares no measure with any other.
        """
        if len(readings) < 2:
            raise SpecError(f"found {len(readings)} result, expected at least two to compare")
        for own in readings:
            others = [other for other in readings if other is not own]
            if not any(_shares(own, other) for other in others):
                first = others[0]
                raise SpecError(
                    f"{own.label}: found {_held(own)}, and {_held(first)} in {first.label}: no "
                    "measure in common; expected results that share one"
                )
        return Comparison(readings)

    @cached_property
    def labels(self) -> list[str]:
        """The results' names, in the order given."""
        return [one.label for one in self.readings]

    @cached_property
    def keys(self) -> list[str]:
        """The keys that differ between rows of one result, in the order of first sight."""
        order = dict.fromkeys(key for rows in self._rows for row in rows for key in row.keys)
        values = [_values(rows) for rows in self._rows]
        return [key for key in order if any(len(own.get(key, ())) > 1 for own in values)]

    @cached_property
    def tables(self) -> list[MeasureTable]:
        """One table per measure that two results have, rows that both have first."""
        return [
            self._table(measure)
            for measure in self._measures
            if sum(any(measure.name in row.values for row in rows) for rows in self._rows) > 1
        ]

    @cached_property
    def differences(self) -> list[Unlike]:
        """Settings that differ: the key, and each result's value; None where it has no such key.

        Keys that vary within a result are those of the rows instead.
        """
        constant = self._unlike(self._constants(), self.keys)
        constant = [(key, values) for key, values in constant if len(set(values) - {None}) > 1]
        hidden = [*self.keys, *(key for key, _ in constant)]
        return constant + self._unlike([one.settings for one in self.readings], hidden)

    @cached_property
    def workloads(self) -> list[Unlike]:
        """Tenants whose replayed requests differ, or that only some of the results have."""
        return self._unlike([one.workload for one in self.readings if one.workload], ())

    @cached_property
    def curves(self) -> dict[str, list[tuple[str, Curve]]]:
        """Curves by tenant, each with its result's label; tenants of at least two results."""
        found: dict[str, list[tuple[str, Curve]]] = {}
        for reading in self.readings:
            for curve in reading.curves:
                if curve.points:
                    found.setdefault(curve.tenant, []).append((reading.label, curve))
        return {
            tenant: several
            for tenant, several in found.items()
            if len({label for label, _ in several}) > 1
        }

    @property
    def unlike_settings(self) -> Table[Sequence[str]]:
        """The settings that differ, a column per result."""
        return _unlike("settings that differ", "setting", self.labels, self.differences)

    @property
    def unlike_workloads(self) -> Table[Sequence[str]]:
        """The tenants whose requests differ, a column per result that says what it replayed."""
        labels = [one.label for one in self.readings if one.workload]
        return _unlike("workloads that differ", "tenant", labels, self.workloads)

    def records(self) -> list[dict[str, object]]:
        """Return a record per number: the keys of its row, its measure and its result."""
        return [
            {**dict(zip(one.keys, keys, strict=True)), "measure": one.measure.name,
             "result": label, "value": value}
            for one in self.tables
            for keys, values in one.rows
            for label, value in zip(one.labels, values, strict=True)
            if value is not None
        ]  # fmt: skip

    @property
    def _measures(self) -> list[Measure]:
        found: dict[str, Measure] = {}
        for reading in self.readings:
            for measure in reading.measures:
                found.setdefault(measure.name, measure)
        return list(found.values())

    @cached_property
    def _rows(self) -> list[list[Row]]:
        sizes = sorted({size for one in self.readings for size in one.sizes})
        return [one.at_sizes(sizes or self._grid()) for one in self.readings]

    def _constants(self) -> list[dict[str, str]]:
        """Return each result's keys of rows that have one value in all of its rows."""
        return [
            {key: next(iter(own)) for key, own in _values(rows).items() if len(own) == 1}
            for rows in self._rows
        ]

    def _grid(self) -> list[int]:
        """Return powers of two that every curve covers, thinned; where there are none, no sizes."""
        curves = [curve for one in self.readings for curve in one.curves if curve.points]
        if not curves:
            return []
        low = max(curve.points[0][0] for curve in curves)
        high = min(curve.points[-1][0] for curve in curves)
        powers = [1 << at for at in range(63) if low <= 1 << at <= high]
        return powers[:: max(1, -(-len(powers) // GRID))]

    def _table(self, measure: Measure) -> MeasureTable:
        cells: dict[tuple[str, ...], list[float | None]] = {}
        for place, rows in enumerate(self._rows):
            for row in rows:
                if measure.name not in row.values:
                    continue
                key = tuple(row.keys.get(name, "") for name in self.keys)
                line = cells.setdefault(key, [None] * len(self.readings))
                if line[place] is None:
                    line[place] = row.values[measure.name]
        # A stable sort: the order of first sight remains among rows of a kind.
        ordered = sorted(cells.items(), key=lambda cell: -min(_count(cell[1]), 2))
        used = [at for at in range(len(self.keys)) if any(key[at] for key, _ in ordered)]
        return MeasureTable(
            measure,
            [self.keys[at] for at in used],
            self.labels,
            [Beside(tuple(key[at] for at in used), tuple(line)) for key, line in ordered],
        )

    def _unlike(self, settings: Sequence[Mapping[str, str]], varied: Sequence[str]) -> list[Unlike]:
        names = dict.fromkeys(key for one in settings for key in one)
        found: list[Unlike] = []
        for name in names:
            hidden = any(name == key or name.startswith(f"{key}.") for key in varied)
            if hidden or name == "name":
                continue
            values = [one.get(name) for one in settings]
            if name.startswith(TENANTS) and sum(value is not None for value in values) < 2:
                continue
            if len(set(values)) > 1:
                found.append((name, values))
        return found


def _unlike(
    title: str, name: str, labels: Sequence[str], rows: Sequence[Unlike]
) -> Table[Sequence[str]]:
    cells = [
        [key, *(words.NOTHING if text is None else text for text in texts)] for key, texts in rows
    ]
    return of_texts(title, [name, *labels], cells, len(labels) + 1)


def _values(rows: Sequence[Row]) -> dict[str, set[str]]:
    """Return the values of each key of some rows."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for key, value in row.keys.items():
            found.setdefault(key, set()).add(value)
    return found


def _shares(own: Reading, other: Reading) -> bool:
    names = {one.name for one in own.measures}
    return any(one.name in names for one in other.measures)


def _held(reading: Reading) -> str:
    names = ", ".join(one.name for one in reading.measures[:3]) or "no measures"
    return f"{names} (`{reading.command}`)"


def _count(values: Iterable[float | None]) -> int:
    return sum(value is not None for value in values)


def key_name(key: str) -> str:
    """Return a key as a column's name: `cache.capacity` is `capacity`."""
    return key.rpartition(".")[2]


# --- What each command's results hold.

LRU = "lru"
_LINES, _FLASH, _DEVICES = (
    [Measure(one.heading, one.show or words.count, one.better) for one in columns]
    for columns in (
        (*summary.MEASURES, *summary.MOVES),
        summary.FLASH_MEASURES,
        summary.DEVICE_MEASURES,
    )
)
RATIO = next(one for one in _LINES if one.name == HIT_RATIO)
SMALLEST_CACHE = Measure(SMALLEST, words.size, "low")


def of_run(label: str, answer: RunAnswer) -> Reading:
    """Return the rows of a run: one per case of `all`, and one per case and tenant of several."""
    rows = [row for case in answer.cases for row in _case(case)]
    block = answer.cases[0].block_bytes if answer.cases else 0
    alone = len(answer.tenants) == 1
    curves = [
        Curve(curve.tenant, LRU, _hits((size * block, miss) for size, miss in curve.points))
        for curve in answer.curves
        if curve.tenant == ALL or not alone
    ]
    known = {*_LINES, *_FLASH, *(one for one in _DEVICES if one.name != AMPLIFICATION)}
    ordered = [one for one in (*_LINES, *_FLASH, *_DEVICES) if one in known]
    return Reading(
        label=label,
        command="run",
        settings=flat(answer.spec),
        measures=_present(ordered, rows),
        rows=rows,
        curves=curves,
        workload=_replayed(answer.tenants),
        sizes=sorted({summary.capacity_bytes(case) for case in answer.cases}),
    )


def _case(case: Case) -> list[Row]:
    keys = {key: words.setting(held) for key, held in case.settings.items()}
    keys[CAPACITY] = exact_size(summary.capacity_bytes(case))
    found = []
    lines: list[tuple[str, summary.Line]] = [(ALL, case.total)]
    if len(case.tenants) > 1:
        lines += [(one.name, one) for one in case.tenants]
    for name, line in lines:
        values = {
            one.heading: value
            for one in (*summary.MEASURES, *summary.MOVES)
            if (value := one.value(line)) is not None
        }
        if name == ALL:
            values |= _drive(case)
        found.append(Row({**keys, TENANT: name}, values))
    return found


def _drive(case: Case) -> dict[str, float]:
    values = {}
    for one in summary.DEVICE_MEASURES:
        if (value := one.value(case)) is not None:
            values[one.heading] = value
    if case.flash:
        for measure in summary.FLASH_MEASURES:
            if (value := measure.value(case.flash)) is not None:
                values[measure.heading] = value
    return values


def of_curves(label: str, answer: CurvesAnswer) -> Reading:
    """Return the curves of whole traces; rows are made of them at the sizes of other results."""
    block, alone = answer.block_bytes, len(answer.tenants) == 1
    curves = [
        Curve(
            ALL if alone else curve.tenant,
            curve.policy,
            _hits((point[0] * block, point[1]) for point in curve.points),
        )
        for curve in answer.curves
        if curve.window is None
    ]
    return Reading(
        label=label,
        command="mrc",
        settings={**flat(answer.spec), "mrc.method": answer.method},
        measures=[RATIO],
        rows=[],
        curves=curves,
        workload=_replayed(answer.tenants),
    )


def of_plan(label: str, answer: PlanAnswer) -> Reading:
    """Return what each tenant needs alone and what all need, by partitioner."""
    block, rows = answer.block_bytes, []
    policy = {POLICY: words.setting(answer.spec["cache"]["policy"]["name"])}
    for tenant in answer.tenants:
        if tenant.alone_blocks is not None:
            size = tenant.alone_blocks * block
            keys = {**policy, TENANT: tenant.name, OWN_CACHE: "any size"}
            rows.append(Row(keys, {SMALLEST: size}))
    for one in answer.partitions:
        if one.smallest_blocks is None:
            continue
        size = one.smallest_blocks * block
        keys = {**policy, PARTITION: one.partition, TENANT: ALL}
        rows.append(Row(keys, {SMALLEST: size}))
        for tenant, ratio in zip(answer.tenants, one.hit_ratios or (), strict=False):
            held = {**keys, TENANT: tenant.name, CAPACITY: exact_size(size)}
            rows.append(Row(held, {HIT_RATIO: ratio}))
    return Reading(
        label=label,
        command="plan",
        settings=flat(answer.spec),
        measures=_present([SMALLEST_CACHE, RATIO], rows),
        rows=rows,
        workload={},
        sizes=sorted({one.smallest_blocks * block for one in answer.partitions
                      if one.smallest_blocks is not None}),
    )  # fmt: skip


def _hits(points: Any) -> list[tuple[int, float]]:
    """Return hit ratios by size of pairs of size and miss ratio, ascending, sizes above zero."""
    return [(size, 1.0 - miss) for size, miss in sorted(points) if size > 0]


def _present(measures: Sequence[Measure], rows: Sequence[Row]) -> list[Measure]:
    held = {name for row in rows for name in row.values}
    unique = {one.name: one for one in reversed(measures)}
    return [one for one in measures if one.name in held and unique[one.name] is one]


def _replayed(tenants: Sequence[TenantFacts]) -> Mapping[str, str]:
    return {
        tenant.name: f"{words.count(tenant.requests)} requests, "
        f"{words.size(tenant.read_bytes)} read, {words.size(tenant.write_bytes)} written, "
        f"{words.count(tenant.distinct_blocks)} blocks"
        for tenant in tenants
    }


MEASURED = "measured"
SEPARATION, RECLAIM, OP = "flash.separation", "flash.reclaim", "flash.op"
_DRIVES = [
    Measure(AMPLIFICATION, words.ratio, "low"),
    Measure("extra writes", words.ratio, "low"),
    Measure("flash writes", words.count, "low"),
    Measure("moved pages", words.count, "low"),
    Measure("metadata pages", words.count, "low"),
    Measure("memory per page", words.size, "low"),
]


def of_amplification(label: str, answer: AmplificationAnswer) -> Reading:
    """Return one row per scheme of a drive."""
    rows = [
        Row(
            {
                SEPARATION: words.setting(case.separation),
                RECLAIM: words.setting(case.reclaim),
                OP: words.percent(case.op),
            },
            {
                AMPLIFICATION: case.write_amplification,
                "extra writes": case.extra_writes,
                "flash writes": case.flash_pages,
                "moved pages": case.moved_pages,
                "metadata pages": case.meta_pages,
                "memory per page": case.memory_bytes_per_page,
            },
        )
        for case in answer.cases
    ]
    settings = {
        "flash.capacity": answer.capacity,
        "flash.page": words.size(answer.page_bytes),
        "flash.superblock": words.size(answer.superblock_bytes),
        "flash.reserve": words.count(answer.reserve_superblocks),
        "wa.drive_writes": words.significant(answer.drive_writes, 6),
        "wa.trainer": answer.trainer,
    }
    workload = {
        tenant.name: f"{words.count(tenant.requests)} requests, {words.count(tenant.writes)} writes"
        for tenant in answer.tenants
    }
    return Reading(label, "wa", settings, _DRIVES, rows, workload=workload)


def of_paper(label: str, found: Measured) -> Reading:
    """Return one row per number of a reproduced paper, by figure and name."""
    rows = [
        Row(
            {
                "paper": found.paper,
                "figure": figure_of(name),
                "number": name.removeprefix(f"{figure_of(name)}/"),
            },
            {MEASURED: value},
        )
        for name, value in found.measures.items()
    ]
    settings = {}
    for figure, source in found.figures.items():
        settings[f"{figure}.specs"] = source.specs
        settings[f"{figure}.traces"] = f"{source.traces.kind} {', '.join(source.traces.names)}"
    measure = Measure(MEASURED, lambda value: words.significant(value or 0.0, 6))
    return Reading(label, "reproduce", settings, [measure], rows)


FROM = "from"
_PERIODS = [
    Measure("requests", words.count),
    Measure("requests per s", words.ratio),
    Measure("share of reads", words.percent),
    Measure("mean size", words.size),
    Measure("working set", words.size),
    Measure("sequential", words.percent),
    Measure("overlapped", words.percent),
    Measure("strided", words.percent),
    Measure("random", words.percent),
]


def of_character(label: str, answer: CharacterizeAnswer) -> Reading:
    """Return a row of the whole trace and one per period."""
    rows = [Row({FROM: ALL}, _of_stretch(answer.total))]
    rows += [Row({FROM: f"{one.start_ns / 1e9:g}s"}, _of_stretch(one)) for one in answer.periods]
    settings = {"characterize.every": answer.every}
    if answer.characterizer is not None:
        settings["characterize.characterizer"] = answer.characterizer
    total = answer.total
    workload = {
        answer.path: f"{words.count(total.reads)} reads, {words.count(total.writes)} writes, "
        f"{words.duration(total.end_ns - total.start_ns)}"
    }
    return Reading(label, "characterize", settings, _PERIODS, rows, workload=workload)


def _of_stretch(counts: PeriodCounts | JudgedPeriod) -> dict[str, float]:
    """Return the numbers of a stretch by measure."""
    return {
        "requests": counts.reads + counts.writes,
        "requests per s": counts.rate_per_s,
        "share of reads": counts.read_share,
        "mean size": counts.mean_bytes,
        "working set": counts.working_set_bytes,
        "sequential": counts.classes.sequential,
        "overlapped": counts.classes.overlapped,
        "strided": counts.classes.strided,
        "random": counts.classes.random,
    }


# --- The results of folders.

PLAN_FILE = "plan.json"
EXPECTED = "expected a result folder, which `run`, `compare`, `mrc`, `plan`, `wa`, `characterize`, "
EXPECTED += "`fleet study`, `trace report` and `reproduce` write with `--out`"


def _document(kind: type[Any], command: str) -> Callable[[Path], Any]:
    return lambda file: documents.read(kind, file, f"a result of `{command}`")


# By the file's name: what reads it, and what makes rows of it.
READERS: dict[str, tuple[Callable[[Path], Any], Callable[[str, Any], Reading]]] = {
    results.RESULT_FILE: (_document(RunAnswer, "run"), of_run),
    results.CURVES_FILE: (_document(CurvesAnswer, "mrc"), of_curves),
    PLAN_FILE: (_document(PlanAnswer, "plan"), of_plan),
    results.AMPLIFICATION_FILE: (_document(AmplificationAnswer, "wa"), of_amplification),
    characterized.CHARACTER_FILE: (
        _document(CharacterizeAnswer, "characterize"),
        of_character,
    ),
    measures.FILE: (measures.read, of_paper),
}


# What has a page, but no rows that another result has too.
ALONE = {
    "answers.jsonl": "answers on the volumes of a dataset",
    "study.json": "a study of a fleet",
    "fleet.json": "a plan of a fleet",
    "workload.json": "the workload of a trace",
}


def read(folder: Path, label: str | None = None) -> list[Reading]:
    """Return every result of a folder, labelled by the folder's name unless a label is given.

    Errors: `SpecError` where there is none, or where one is damaged.
    """
    if not folder.is_dir():
        kind = "a file" if folder.exists() else "no such folder"
        raise SpecError(f"{folder}: found {kind}, {EXPECTED}")
    files = [folder / name for name in READERS if (folder / name).exists()]
    if not files:
        alone = next((what for name, what in ALONE.items() if (folder / name).exists()), None)
        if alone is not None:
            raise SpecError(
                f"{folder}: found {alone}, expected a result that shares measures with others; "
                f"`cachewright report {folder}` makes its page alone"
            )
        raise SpecError(f"{folder}: found no result, {EXPECTED}")
    label = folder.resolve().name if label is None else label
    readings = []
    for file in files:
        load, rows_of = READERS[file.name]
        found = load(file)
        with documents.whole(file):
            readings.append(rows_of(label, found))
    return readings


def read_all(folders: Sequence[Path]) -> list[Reading]:
    """Return the results of several folders under labels that tell them apart.

    Errors: `SpecError`, as `read`.
    """
    found: list[Reading] = []
    for folder, label in zip(folders, labels(folders), strict=True):
        several = read(folder, label)
        if len(several) > 1:
            several = [_named(one) for one in several]
        found += several
    return found


def _named(reading: Reading) -> Reading:
    return replace(reading, label=f"{reading.label} ({reading.command})")


def labels(folders: Sequence[Path]) -> list[str]:
    """Return the shortest ends of paths that differ from each other; equal paths are numbered."""
    parts = [folder.resolve().parts for folder in folders]
    named = []
    for place, own in enumerate(parts):
        others = [other for at, other in enumerate(parts) if at != place and other != own]
        length = 1
        while length < len(own) and any(other[-length:] == own[-length:] for other in others):
            length += 1
        named.append("/".join(own[-length:]))
    return [
        f"{name} ({named[:place].count(name) + 1})" if named.count(name) > 1 else name
        for place, name in enumerate(named)
    ]
