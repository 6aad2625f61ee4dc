"""The measures of a row of tenants kept apart, by seed, with the titles under which they are shown.

For: `cachewright_lab.report.reproduced_isolation`. Must never know: how numbers were measured,
tables, HTML. Units: MB/s are millions of bytes; space and bandwidth are shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cachewright_lab.reproduce.isolation import Isolation
from cachewright_lab.reproduce.isolation_measures import Outcome, mean
from cachewright_lab.reproduce.isolation_specs import IsolationSpec, Layout, Point

MB = 1e6
Row = tuple[Point, Layout]


@dataclass(frozen=True)
class Values:
    """The measures of a row, a value per seed."""

    isolation: list[float]
    steadiness: list[float]
    harmonic: list[float]
    space: list[float]
    bandwidth: list[float]
    throughput_mb: list[float]
    hit_ratio: list[float]
    channels: list[float]


@dataclass(frozen=True)
class Measure:
    """One of them, and its title."""

    title: str
    of: Callable[[Values], list[float]]

    def mean(self, values: Values) -> float:
        """Return the mean over seeds."""
        return mean(self.of(values))


ISOLATION = Measure("isolation", lambda values: values.isolation)
STEADINESS = Measure("C_v", lambda values: values.steadiness)
HARMONIC = Measure("harmonic mean", lambda values: values.harmonic)
SPACE = Measure("space", lambda values: values.space)
BANDWIDTH = Measure("bandwidth", lambda values: values.bandwidth)
THROUGHPUT = Measure("MB/s", lambda values: values.throughput_mb)


def values_of(what: Isolation, figure: IsolationSpec, row: Row) -> Values:
    """Return the measures of a row."""
    if what.peak is None:
        raise RuntimeError("nothing was run")
    point, layout = row
    outcomes, peak = what.found(figure, point, layout), what.peak
    pairs = list(zip(outcomes, what.base(figure, point), strict=True))
    return Values(
        isolation=[one.isolation(base) for one, base in pairs],
        steadiness=[one.steadiness for one in outcomes],
        harmonic=[one.harmonic for one in outcomes],
        space=[one.space(_required(one, base)) for one, base in pairs],
        bandwidth=[one.bandwidth(peak) for one in outcomes],
        throughput_mb=[one.throughput / MB for one in outcomes],
        hit_ratio=[one.hit_ratio for one in outcomes],
        channels=[float(one.channels) for one in outcomes],
    )


def _required(one: Outcome, base: Outcome) -> int:
    """Return what tenants require: where all share one pool, as the base layout's division says."""
    own = one.required or base.required
    return own if own is not None else one.allocated
