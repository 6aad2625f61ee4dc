"""Several results aligned: tables of the measures that they share, settings that differ, curves.

For: whatever shows results beside each other. Must never know: files, commands, how anything is
drawn. Nothing is computed again: a number is one of a result, or lies on one of its curves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cachewright._native import SpecError
from cachewright.side_by_side.reading import Curve, Measure, Reading, Row

# Sizes at which results that are curves alone are compared.
GRID = 9
# Settings of a tenant that only one result has say nothing that the workloads do not.
TENANTS = "tenant."


@dataclass(frozen=True)
class MeasureTable:
    """One measure: a row per thing measured, a column per result; None where it has no number.

    `keys` names what tells the rows apart. `matched` counts rows that two results share.
    """

    measure: Measure
    keys: Sequence[str]
    labels: Sequence[str]
    rows: Sequence[tuple[tuple[str, ...], tuple[float | None, ...]]]

    @property
    def matched(self) -> int:
        """How many rows have a number in at least two results."""
        return sum(_count(values) > 1 for _, values in self.rows)


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
    def differences(self) -> list[tuple[str, list[str | None]]]:
        """Settings that differ: the key, and each result's value; None where it has no such key.

        Keys that vary within a result are those of the rows instead.
        """
        constant = self._unlike(self._constants(), self.keys)
        constant = [(key, values) for key, values in constant if len(set(values) - {None}) > 1]
        hidden = [*self.keys, *(key for key, _ in constant)]
        return constant + self._unlike([one.settings for one in self.readings], hidden)

    @cached_property
    def workloads(self) -> list[tuple[str, list[str | None]]]:
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
            [(tuple(key[at] for at in used), tuple(line)) for key, line in ordered],
        )

    def _unlike(
        self, settings: Sequence[Mapping[str, str]], varied: Sequence[str]
    ) -> list[tuple[str, list[str | None]]]:
        names = dict.fromkeys(key for one in settings for key in one)
        found: list[tuple[str, list[str | None]]] = []
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
