"""The tables of miss-ratio curves: a row per size, a column per policy.

For: `mrc`. Must never know: how curves are made. Sizes come in blocks and go out in units.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright import words
from cachewright.answers import CurveCheck, CurvesAnswer, MissRatioCurve
from cachewright.cli import noted, output, plots
from cachewright.cli.tables import Column, table
from cachewright.summary import best_index

# Size in blocks, miss ratio, low and high end of its interval.
Point = tuple[int, float, float | None, float | None]
Points = dict[int, Point]
ROWS = 12
# Sizes at which policies are compared in words.
COMPARED = 3


def show(answer: CurvesAnswer) -> None:
    """Print the notes, a table per tenant and window, and what was verified."""
    for sentence in answer.notes:
        output.note(sentence)
    noted.of_tenants(answer.tenants)
    groups = _groups(answer.curves)
    for curves in groups:
        _group(curves, answer)
    if answer.verify:
        _verify(answer.verify, answer.block_bytes)


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


def _groups(curves: Sequence[MissRatioCurve]) -> list[list[MissRatioCurve]]:
    """Return the curves of each tenant and window, a curve per policy."""
    found: dict[tuple[str, int | None], list[MissRatioCurve]] = {}
    for curve in curves:
        found.setdefault((curve.tenant, curve.window), []).append(curve)
    return list(found.values())


def _points(curve: MissRatioCurve) -> Points:
    return {point[0]: point for point in curve.points}


def _group(curves: Sequence[MissRatioCurve], answer: CurvesAnswer) -> None:
    block, first = answer.block_bytes, curves[0]
    known = {size for curve in curves for size in _points(curve)}
    sizes = _thinned([size for size in answer.sizes_blocks if size in known])
    columns = [
        Column("size", [words.size(size * block) for size in sizes]),
        Column("blocks", [words.count(size) for size in sizes]),
    ]
    columns += _alone(first, sizes) if len(curves) == 1 else _beside(curves, sizes)
    window = "" if first.window is None else f", window {first.window + 1}"
    methods = list(dict.fromkeys(curve.method for curve in curves))
    of = first.policy if len(curves) == 1 else "miss ratio by policy"
    title = f"{first.tenant}{window}: {of}, {'; '.join(methods)}; "
    title += f"{words.count(first.accesses)} accesses to {words.count(first.distinct)} blocks"
    table(title, columns)


def _alone(curve: MissRatioCurve, sizes: Sequence[int]) -> list[Column]:
    """Return the columns of one policy: miss ratio, interval, a plot."""
    points = _points(curve)
    found = [points[size] for size in sizes]
    columns = [Column("miss ratio", [words.ratio(point[1]) for point in found])]
    if any(point[2] is not None for point in found):
        columns.append(Column("interval", [_interval(point) for point in found]))
    return [*columns, Column("", [plots.bar(point[1]) for point in found], numeric=False)]


def _beside(curves: Sequence[MissRatioCurve], sizes: Sequence[int]) -> list[Column]:
    """Return a column per policy, the least misses of each size marked."""
    points = [_points(curve) for curve in curves]
    ratios = [[found[size][1] if size in found else None for size in sizes] for found in points]
    best = [best_index([own[row] for own in ratios], highest=False) for row in range(len(sizes))]
    return [
        Column(
            curve.policy,
            [_cell(found.get(size)) for size in sizes],
            best={row for row in range(len(sizes)) if at in best[row]},
        )
        for at, (curve, found) in enumerate(zip(curves, points, strict=True))
    ]


def _cell(point: Point | None) -> str:
    """Return a miss ratio, with half its interval where it has one."""
    if point is None:
        return words.NOTHING
    _, miss, low, high = point
    band = "" if low is None or high is None else f" ±{words.ratio((high - low) / 2)}"
    return f"{words.ratio(miss)}{band}"


def _interval(point: Point) -> str:
    low, high = point[2], point[3]
    return words.NOTHING if low is None else f"{words.ratio(low)} to {words.ratio(high)}"


def _thinned(sizes: Sequence[int]) -> list[int]:
    """Return at most `ROWS` sizes, first and last among them, evenly spaced."""
    if len(sizes) <= ROWS:
        return list(sizes)
    step = (len(sizes) - 1) / (ROWS - 1)
    return [sizes[round(index * step)] for index in range(ROWS)]


def _verify(checks: Sequence[CurveCheck], block: int) -> None:
    table(
        "compared with exact simulation",
        [
            Column("tenant", [c.tenant for c in checks], numeric=False),
            Column("policy", [c.policy for c in checks], numeric=False),
            Column("size", [words.size(c.size_blocks * block) for c in checks]),
            Column("curve", [words.ratio(c.curve) for c in checks]),
            Column("exact", [words.ratio(c.exact) for c in checks]),
            Column("error", [words.ratio(c.error) for c in checks]),
        ],
    )
