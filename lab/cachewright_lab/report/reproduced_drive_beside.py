"""What a reproduced paper on data caches shows of schemes beside each other: changes, quotients.

For: `cachewright_lab.report.reproduced_drive`. Must never know: how numbers were measured, HTML.
Units: changes are relative, quotients are of max slowdowns. Groups of mixes with as many tenants
stay apart; seeds are averaged before mixes are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cachewright import words
from cachewright.report.figure import Figure
from cachewright.report.parts import Table, plain
from cachewright_lab.report.reproduced_drive_means import (
    by_seed,
    geometric,
    left_out,
    mean,
    over_mixes,
    slowest,
)
from cachewright_lab.reproduce.drive_mixes import DriveMixes, Outcome
from cachewright_lab.reproduce.drive_specs import DriveFigure, Mix, Scheme

# Titles of the schemes that are compared, and of those that they are set beside.
OURS = ("icache", "icache-x")
BESIDE = ("shared", "equal", "costpi", "justitia", "mlcache")
# Numbers of one replay, in the same order under each scheme; nothing where there is none.
Numbers = Callable[[Outcome], Sequence[float | None]]


def max_slowdown(one: Outcome) -> list[float]:
    """Return the max slowdown of a mix, as its only number."""
    return [one.max_slowdown]


def quotients(what: DriveMixes, figure: DriveFigure) -> list[Table]:
    """Return geometric means of max slowdowns by those of others, with leave-one-out ranges."""
    titles = {scheme.title: scheme for scheme in figure.schemes}
    others = [title for title in BESIDE if title in titles]
    rows = []
    for group, mixes in figure.groups():
        for ours in [title for title in OURS if title in titles] if others else []:
            cells = []
            for other in others:
                own = slowest(what, figure, mixes, titles[ours])
                base = slowest(what, figure, mixes, titles[other])
                each = [one / two for one, two in zip(own, base, strict=True)]
                cells.append(words.significant(geometric(each)))
                ends = left_out(each, geometric) if len(each) > 1 else None
                cells += map(words.significant, ends) if ends else [words.NOTHING] * 2
            rows.append([group, ours, *cells])
    if not rows:
        return []
    heads = [
        text
        for other in others
        for text in (f"by {other}", f"{other}, least", f"{other}, greatest")
    ]
    title = "geometric means as quotients, and their range leaving one mix out"
    headers = ["mixes", "scheme", *heads]
    return [plain(figure.heading, title, headers, rows, 2, "quotients", keys=2)]


def changes(
    what: DriveMixes,
    figure: DriveFigure,
    numbers: Numbers,
    name: str = "beside",
) -> list[Table]:
    """Return how far ours are from others: the mean and the greatest fall over mixes or tenants."""
    titles = {scheme.title: scheme for scheme in figure.schemes}
    others = [title for title in BESIDE if title in titles]
    rows = []
    for group, mixes in figure.groups():
        for ours in [title for title in OURS if title in titles]:
            each = [
                _relative(what, figure, mixes, titles[ours], titles[other], numbers)
                for other in others
            ]
            cells = [_signed(pick, one) for one in each for pick in (mean, min)]
            rows.append([group, ours, *cells])
    if not others or not rows:
        return []
    heads = [text for other in others for text in (f"beside {other}", f"{other}, at best")]
    title = f"changes, {figure.where}" + (
        f", {name.removesuffix(', beside')}" if "," in name else ""
    )
    return [plain(figure.heading, title, ["mixes", "scheme", *heads], rows, 2, name)]


def _signed(pick: Callable[[Sequence[float]], float], values: Sequence[float]) -> str:
    return words.signed(pick(values)) if values else words.NOTHING


def _relative(
    what: DriveMixes,
    figure: DriveFigure,
    mixes: Sequence[Mix],
    ours: Scheme,
    other: Scheme,
    numbers: Numbers,
) -> list[float]:
    """Return the changes of every number of every mix, seeds averaged."""
    found = []
    for mix in mixes:
        own, base = (
            [numbers(one) for one in what.found(figure, mix, scheme)] for scheme in (ours, other)
        )
        for place in range(len(own[0])):
            now, before = (_known(one[place] for one in each) for each in (own, base))
            if now is not None and before:
                found.append(now / before - 1)
    return found


def _known(values: Iterable[float | None]) -> float | None:
    """Return the mean of what is known of a number; nothing if nothing is."""
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def summary(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return, for each number of tenants, the mean change from each scheme to each other."""
    found: list[Table | Figure] = []
    for group, mixes in figure.groups():
        rows = []
        for ours in figure.schemes:
            cells = [
                words.NOTHING
                if other is ours
                else _signed(mean, _relative(what, figure, mixes, ours, other, max_slowdown))
                for other in figure.schemes
            ]
            rows.append([ours.title, *cells])
        headers = ["max slowdown of", *(f"beside {one.title}" for one in figure.schemes)]
        paper = _paper_row(figure, group)
        rows += [paper] if paper else []
        title = f"{group}, {figure.where}"
        found.append(plain(figure.heading, title, headers, rows, 1, group))
    seeded = [scheme for scheme in figure.schemes if len(_seeds(what, figure, scheme)) > 1]
    for scheme in seeded:
        found.append(_seed_table(what, figure, scheme))
    return found


def _paper_row(figure: DriveFigure, group: str) -> list[str] | None:
    claims: Any = figure.document.get("claims", {}).get(group)
    if claims is None or not any(scheme.title in claims for scheme in figure.schemes):
        return None
    texts = [f"{claims[s.title]:+} %" if s.title in claims else words.NOTHING
             for s in figure.schemes]  # fmt: skip
    return ["the paper's icache", *texts]


def _seeds(what: DriveMixes, figure: DriveFigure, scheme: Scheme) -> list[Outcome]:
    return what.found(figure, figure.mixes[0], scheme)


def _seed_table(what: DriveMixes, figure: DriveFigure, scheme: Scheme) -> Table:
    """Return the geometric mean of max slowdowns by the seed that models were trained from."""
    rows = []
    for group, mixes in figure.groups():
        each = [by_seed(what, figure, mix, scheme, lambda one: one.max_slowdown) for mix in mixes]
        rows.append(
            [group, *(words.significant(value, 4) for value in over_mixes(each, geometric))]
        )
    count = len(_seeds(what, figure, scheme))
    headers = ["max slowdown, geometric mean", *(f"seed {seed + 1}" for seed in range(count))]
    title = f"{scheme.title} by seed of its models"
    return plain(figure.heading, title, headers, rows, 1, f"seeds of {scheme.title}")
