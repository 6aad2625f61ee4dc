"""What `mrc` found: miss ratios by cache size, a row per size, a column per policy.

The tables are for the terminal and for the page. Sizes come in blocks and are shown in bytes, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cachewright import tables, words
from cachewright.answers import CurveCheck, CurvesAnswer, MissRatioCurve
from cachewright.tables import Column, Table, conclusion, summary

# Size in blocks, miss ratio, low and high end of its interval.
Point = tuple[int, float, float | None, float | None]
Points = dict[int, Point]
ROWS = 12
# Sizes at which policies are compared in words.
COMPARED = 3


def by_size(answer: CurvesAnswer) -> list[Table[int]]:
    """Return a table per tenant and window, its rows sizes in blocks."""
    return [_table(curves, answer) for curves in _groups(answer.curves)]


def conclusions(answer: CurvesAnswer) -> list[str]:
    """Return which policy misses least at some sizes; nothing for one policy.

    The curves are those of all tenants together and of the first window; the sizes are at quarters
    of the grid.
    """
    groups = _groups(answer.curves)
    if not groups or len(groups[0]) < 2:
        return []
    block, whose = answer.block_bytes, groups[0][0].tenant
    sizes = answer.sizes_blocks
    picked = dict.fromkeys(
        sizes[len(sizes) * at // (COMPARED + 1)] for at in range(1, COMPARED + 1)
    )
    lines = []
    for size in picked:
        misses = {c.policy: p[size][1] for c in groups[0] if size in (p := _points(c))}
        if len(set(misses.values())) < 2:
            continue
        best, worst = min(misses, key=misses.__getitem__), max(misses, key=misses.__getitem__)
        of = "" if len(groups) == 1 else f"{whose}, "
        lines.append(
            f"{of}{words.size(size * block)}: {best} misses least, {words.ratio(misses[best])}; "
            f"{worst} most, {words.ratio(misses[worst])}"
        )
    return lines


class Advised(NamedTuple):
    """The size and the policy to use, and the hit ratio that they give."""

    size_blocks: int
    policy: str
    hit_ratio: float


def advised(answer: CurvesAnswer) -> Advised | None:
    """Return the smallest size with nearly all hits of the largest, and the best policy there.

    The curves are those of all tenants together and of the first window. Policies that read the
    future are no choice. None where nothing hits.
    """
    best = _most_hits(answer, bounds=False) or _most_hits(answer, bounds=True)
    most = max((one.hit_ratio for one in best), default=0.0)
    if most <= 0:
        return None
    return next(one for one in best if one.hit_ratio >= conclusion.NEARLY * most)


def answered(answer: CurvesAnswer) -> str:
    """Return in a paragraph which size to use, what half and double give, and what is possible."""
    chosen = advised(answer)
    if chosen is None:
        return "No cache size hits: no block is read again, or all are measured as misses."
    block = answer.block_bytes
    best = _most_hits(answer, bounds=False) or _most_hits(answer, bounds=True)
    size, ratio, most = chosen.size_blocks * block, chosen.hit_ratio, best[-1]
    first = f"At {words.size(size)} {chosen.policy} has a hit ratio of {words.ratio(ratio)}"
    if most.size_blocks > chosen.size_blocks:
        first += f", {words.percent(ratio / most.hit_ratio)} of that of the largest size"
    parts = [first]
    larger = next((one for one in best if one.size_blocks >= 2 * chosen.size_blocks), most)
    parts.append(conclusion.more_hits(size, ratio, larger.size_blocks * block, larger.hit_ratio))
    smaller = [one for one in best if 0 < 2 * one.size_blocks <= chosen.size_blocks]
    if smaller:
        less = words.ratio(ratio - smaller[-1].hit_ratio)
        parts.append(f"{words.size(smaller[-1].size_blocks * block)} hits {less} less")
    for bound in _most_hits(answer, bounds=True):
        if bound.size_blocks == chosen.size_blocks and bound.policy != chosen.policy:
            parts.append(conclusion.of_possible(ratio, bound.policy, bound.hit_ratio))
    return conclusion.paragraph(parts)


def _most_hits(answer: CurvesAnswer, *, bounds: bool) -> list[Advised]:
    """Return the policy that hits most at each size, among bounds or among the others."""
    groups = _groups(answer.curves)
    found: dict[int, Advised] = {}
    for curve in groups[0] if groups else ():
        if (curve.policy.split("(")[0] in summary.bounds()) != bounds:
            continue
        for size, miss, *_ in curve.points:
            if size > 0 and (size not in found or 1 - miss > found[size].hit_ratio):
                found[size] = Advised(size, curve.policy, 1 - miss)
    return [found[size] for size in sorted(found)]


def _groups(curves: Sequence[MissRatioCurve]) -> list[list[MissRatioCurve]]:
    """Return the curves of each tenant and window, a curve per policy."""
    found: dict[tuple[str, int | None], list[MissRatioCurve]] = {}
    for curve in curves:
        found.setdefault((curve.tenant, curve.window), []).append(curve)
    return list(found.values())


def _points(curve: MissRatioCurve) -> Points:
    return {point[0]: point for point in curve.points}


def _table(curves: Sequence[MissRatioCurve], answer: CurvesAnswer) -> Table[int]:
    block, first = answer.block_bytes, curves[0]
    known = {size for curve in curves for size in _points(curve)}
    sizes = _thinned([size for size in answer.sizes_blocks if size in known])
    columns: list[Column[int]] = [
        Column("size", lambda size: size * block, words.size),
        Column("blocks", lambda size: size, words.count),
    ]
    columns += _alone(first) if len(curves) == 1 else [_beside(curve) for curve in curves]
    window = "" if first.window is None else f", window {first.window + 1}"
    methods = list(dict.fromkeys(curve.method for curve in curves))
    of = first.policy if len(curves) == 1 else "miss ratio by policy"
    title = f"{first.tenant}{window}: {of}, {'; '.join(methods)}; "
    title += f"{words.count(first.accesses)} accesses to {words.count(first.distinct)} blocks"
    return Table(title, columns, sizes, by_row=True)


def _alone(curve: MissRatioCurve) -> list[Column[int]]:
    """Return the columns of one policy: miss ratio, interval, a plot."""
    points = _points(curve)
    columns: list[Column[int]] = [Column("miss ratio", lambda size: points[size][1], words.ratio)]
    if any(point[2] is not None for point in points.values()):
        columns.append(Column("interval", lambda size: _interval(points[size]), numeric=True))
    return [*columns, Column("", lambda size: tables.bar(points[size][1]), plot=True)]


def _beside(curve: MissRatioCurve) -> Column[int]:
    """Return the column of one policy of several; the least misses of each size are marked."""
    points = _points(curve)

    def cell(size: int) -> str | None:
        return _cell(points[size]) if size in points else None

    return Column(curve.policy, cell, None, "low", numeric=True)


def _cell(point: Point) -> str:
    """Return a miss ratio, with half its interval where it has one."""
    _, miss, low, high = point
    band = "" if low is None or high is None else f" ±{words.ratio((high - low) / 2)}"
    return words.Number(f"{words.ratio(miss)}{band}", miss)


def _interval(point: Point) -> str:
    low, high = point[2], point[3]
    return words.NOTHING if low is None else f"{words.ratio(low)} to {words.ratio(high)}"


def _thinned(sizes: Sequence[int]) -> list[int]:
    """Return at most `ROWS` sizes, first and last among them, evenly spaced."""
    if len(sizes) <= ROWS:
        return list(sizes)
    step = (len(sizes) - 1) / (ROWS - 1)
    return [sizes[round(index * step)] for index in range(ROWS)]


def checks(answer: CurvesAnswer) -> Table[CurveCheck] | None:
    """Return curves beside exact simulation; None where nothing was verified."""
    if not answer.verify:
        return None
    block = answer.block_bytes
    return Table(
        "compared with exact simulation",
        [
            Column("tenant", lambda check: check.tenant),
            Column("policy", lambda check: check.policy),
            Column("size", lambda check: check.size_blocks * block, words.size),
            Column("curve", lambda check: check.curve, words.ratio),
            Column("exact", lambda check: check.exact, words.ratio),
            Column("error", lambda check: check.error, words.ratio),
        ],
        answer.verify,
    )
