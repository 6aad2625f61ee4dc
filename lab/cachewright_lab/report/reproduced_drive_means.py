"""Means over seeds and mixes, for what a paper on data caches shows.

For: `cachewright_lab.report.reproduced_drive` and the modules beside it. Must never know: papers,
HTML. Times and slowdowns of mixes are orders of magnitude apart, so that their mean is the
geometric one.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from cachewright import words
from cachewright_lab.reproduce.drive_mixes import DriveMixes, Outcome
from cachewright_lab.reproduce.drive_specs import DriveFigure, Mix, Scheme

Measure = Callable[[Outcome], float]
Mean = Callable[[Sequence[float]], float]


def by_seed(
    what: DriveMixes, figure: DriveFigure, mix: Mix, scheme: Scheme, measure: Measure
) -> list[float]:
    """Return a measure of a mix under a scheme: one value, or one for each seed of its models."""
    return [measure(one) for one in what.found(figure, mix, scheme)]


def slowest(
    what: DriveMixes, figure: DriveFigure, mixes: Sequence[Mix], scheme: Scheme
) -> list[float]:
    """Return the max slowdown of every mix, seeds averaged."""
    return [mean(by_seed(what, figure, mix, scheme, lambda one: one.max_slowdown)) for mix in mixes]


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 without values."""
    return sum(values) / max(len(values), 1)


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean; 0 without values, or where one of them is 0."""
    return statistics.geometric_mean(values) if values and min(values) > 0 else 0.0


def over_mixes(values: Sequence[Sequence[float]], how: Mean) -> list[float]:
    """Return the means over mixes, one for each seed."""
    seeds = max(len(one) for one in values)
    return [how([one[min(seed, len(one) - 1)] for one in values]) for seed in range(seeds)]


def left_out(values: Sequence[float], how: Mean) -> tuple[float, float]:
    """Return the least and the greatest mean of all values but one."""
    means = [how([*values[:place], *values[place + 1 :]]) for place in range(len(values))]
    return min(means), max(means)


def cell(values: Sequence[float]) -> str:
    """Return the mean, with the least and the greatest of several."""
    text = words.significant(mean(values))
    if len(values) == 1:
        return text
    ends = f"{words.significant(min(values))} to {words.significant(max(values))}"
    return words.Number(f"{text} ({ends})", mean(values))
