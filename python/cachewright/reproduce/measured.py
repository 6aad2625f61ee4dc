"""The numbers of a reproduced paper as one flat document: `measures.json`.

For: writing, reading, comparing and keeping what a run measured, each number under the name
`figure/[table/]row/column`. Must never know: any paper, how anything is measured, claims. Every
figure says from which spec and traces its numbers come, so that figures run one at a time can be
kept together. Numbers have the units of their tables; shares are ratios.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cachewright import words
from cachewright._native import SpecError, __version__
from cachewright.documents import dump, load, load_all
from cachewright.reproduce import specs
from cachewright.reproduce.specs import Setup, Workload

FILE = "measures.json"
SCHEMA = 1
# The figure that tables of all figures together are of.
ALL = "all"
# Numbers nearer to each other than this share of themselves are the same.
SAME = 1e-9


@dataclass(frozen=True, kw_only=True)
class Traces:
    """The traces that a figure's numbers come from."""

    # `trace` of reference, `given` of a folder, `bundled` or `quick`.
    kind: str
    names: tuple[str, ...]
    # Name of the folder of given traces; absent for others.
    folder: str | None = None


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a figure's numbers come from."""

    # Version of Cachewright.
    cachewright: str
    # Digest of the specs.
    specs: str
    traces: Traces


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A table as it was shown."""

    # What tells it from others of its figure; empty for the main one.
    name: str
    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    # By column: the rows that are best.
    best: tuple[tuple[int, ...], ...]
    # How many columns name a row.
    texts: int

    @property
    def even(self) -> bool:
        """Whether every row has as many cells as there are headers, and `best` as many columns."""
        width = len(self.headers)
        return len(self.best) == width and all(len(row) == width for row in self.rows)


@dataclass
class Measured:
    """What was measured for a paper: numbers by name, tables by figure, where figures are from."""

    paper: str
    figures: dict[str, Provenance] = field(default_factory=dict)
    measures: dict[str, float] = field(default_factory=dict)
    tables: dict[str, tuple[Shown, ...]] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether all numbers are of full size: reference traces or given volumes."""
        return all(one.traces.kind in specs.WHOLE for one in self.figures.values())

    def of(self, figure: str) -> dict[str, float]:
        """Return the numbers of a figure."""
        return {name: value for name, value in self.measures.items() if figure_of(name) == figure}

    def write(self, path: Path) -> Path:
        """Write the document and return its path."""
        document = {
            "schema_version": SCHEMA,
            "paper": self.paper,
            "figures": dump(self.figures),
            "measures": self.measures,
            "tables": dump(self.tables),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8")
        return path

    def taking(self, other: Measured) -> Measured:
        """Return these results with every figure of other results in place of its own."""
        found = Measured(self.paper, self.figures | other.figures)
        for kept in (self, other):
            names = [name for name in kept.figures if kept is other or name not in other.figures]
            for name in names:
                found.measures |= kept.of(name)
                found.tables |= {key: value for key, value in kept.tables.items() if key == name}
        found.figures = dict(sorted(found.figures.items()))
        found.measures = dict(sorted(found.measures.items()))
        found.tables = dict(sorted(found.tables.items()))
        return found


@dataclass(frozen=True)
class Change:
    """A number that is not what it was: absent before, absent now, or another."""

    name: str
    before: float | None
    now: float | None

    def row(self) -> list[str]:
        """Return the change as cells: name, before, now, by how much."""
        before, now = (
            words.NOTHING if value is None else words.significant(value, 5)
            for value in (self.before, self.now)
        )
        known = self.before and self.now is not None
        by = words.change(self.now or 0.0, self.before or 0.0) if known else words.NOTHING
        return [self.name, before, now, by]


def figure_of(name: str) -> str:
    """Return the figure that a measure is of."""
    return name.partition("/")[0]


def provenance(setup: Setup, figure: str, workloads: Sequence[Workload]) -> Provenance:
    """Return where a figure's numbers come from: program, spec, the traces of its study."""
    names = tuple(one.name for one in workloads)
    traces = Traces(kind=setup.kind, names=names)
    if setup.traces is not None:
        traces = Traces(kind=setup.kind, names=names, folder=setup.traces.name)
    said = digest(setup.folder, figure)
    return Provenance(cachewright=__version__, specs=said, traces=traces)


def digest(folder: Path, figure: str) -> str:
    """Return a digest of what `setup.toml` and a figure's spec say, whatever their comments."""
    said = hashlib.sha256()
    for name in (specs.SETUP, f"{figure}.toml"):
        path = folder / name
        document = specs.toml(path) if path.is_file() else {}
        said.update(json.dumps(document, sort_keys=True, default=str).encode())
    return said.hexdigest()[:16]


def unique(pairs: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return measures by name; a name that is taken gets a number. What is not finite is left out.

    Names in order, so that a file of them changes only where numbers do.
    """
    found: dict[str, float] = {}
    for name, value in pairs:
        if not math.isfinite(value):
            continue
        own, count = name, 1
        while own in found:
            count += 1
            own = f"{name} ({count})"
        found[own] = value
    return dict(sorted(found.items()))


def read(path: Path) -> Measured:
    """Return the document in a file. Errors: `SpecError` for another document or version."""
    expected = f"expected the {FILE} of `cachewright reproduce`"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"{path}: {words.reason(error)}; {expected}") from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{path}: found no JSON ({error}), {expected}") from None
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != SCHEMA:
        raise SpecError(f"{path}: `schema_version`: found `{version}`, expected {SCHEMA}")
    for key, kind in (("paper", str), ("figures", dict), ("measures", dict), ("tables", dict)):
        if not isinstance(document.get(key), kind):
            raise SpecError(f"{path}: found no `{key}`, {expected}")
    for name, value in document["measures"].items():
        if not is_number(value):
            raise SpecError(f"{path}: `{name}`: found `{value}`, expected a number")
    figures = {}
    for figure, where in document["figures"].items():
        refused = f"{path}: `figures`: `{figure}`: found no traces, {expected}"
        figures[figure] = _provenance(where, refused)
    tables = {}
    for figure, shown in document["tables"].items():
        refused = f"{path}: `tables`: `{figure}`: found no list of tables, {expected}"
        tables[figure] = _tables(shown, refused)
    return Measured(document["paper"], figures, document["measures"], tables)


def is_number(value: object) -> bool:
    """Return whether a value is a number that a measure can have: none that is not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _provenance(where: object, refused: str) -> Provenance:
    try:
        return load(Provenance, where)
    except SpecError:
        raise SpecError(refused) from None


def _tables(shown: object, refused: str) -> tuple[Shown, ...]:
    """Return tables that have all that a page draws, as many cells in each row as headers."""
    try:
        found = load_all(Shown, shown)
    except SpecError:
        raise SpecError(refused) from None
    if not all(one.even for one in found):
        raise SpecError(refused)
    return found


def changes(before: Measured, now: Measured) -> list[Change]:
    """Return what differs of the figures that both have; a new figure is no change."""
    both = [name for name in now.figures if name in before.figures]
    found = []
    for figure in both:
        old, new = before.of(figure), now.of(figure)
        for name in sorted({*old, *new}):
            if not _same(old.get(name), new.get(name)):
                found.append(Change(name, old.get(name), new.get(name)))
    return found


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=SAME, abs_tol=1e-12)


def stale(kept: Measured, folder: Path) -> list[str]:
    """Return the figures whose spec says something else than when they were run."""
    return [
        name
        for name, where in kept.figures.items()
        if name != ALL and where.specs != digest(folder, name)
    ]


def with_nearest(measure: str, known: Mapping[str, float]) -> str:
    """Return a measure with the nearest known name, for messages."""
    import difflib

    near = difflib.get_close_matches(measure, known, 1)
    return f"`{measure}`" + (f" (nearest: `{near[0]}`)" if near else "")
