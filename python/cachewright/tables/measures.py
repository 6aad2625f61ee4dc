"""The numbers of a reproduced paper as one flat document: `measures.json`.

`cachewright reproduce` writes it; `report` and `view` read it without knowing any paper. Each
number has the name `figure/[table/]row/column` and the unit of its table; shares are ratios. Every
figure says from which spec and traces its numbers come, so that figures run one at a time can be
kept together.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cachewright import words
from cachewright._native import SpecError
from cachewright.documents import dump, load, load_all

FILE = "measures.json"
SCHEMA = 1
GIVEN = "given"
# Kinds of traces of full size: those of reference, and volumes that were given.
WHOLE = ("trace", GIVEN)


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
        return all(one.traces.kind in WHOLE for one in self.figures.values())

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


def figure_of(name: str) -> str:
    """Return the figure that a measure is of."""
    return name.partition("/")[0]


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
