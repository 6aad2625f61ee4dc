"""Lines, dots and bars that answer a pointer, and what they say.

For: every chart. Must never know: results, files, HTML. Tooltips say a human title and a value with
its unit; the browser makes the texts from the numbers, so that a row is stored once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from cachewright import words
from cachewright.report.plots import (
    GREY,
    PANEL_HEIGHT,
    STEP,
    Panel,
    Rows,
    Series,
    data,
    distinct,
    extent,
)

POINT_SIZE, DOT_SIZE = 40, 80
LINE_WIDTH = 1.6
# Room around the marks of a plot, as a share of what they span.
MARGIN = 0.05
# The share of a curve's fall that is left out at its flat start.
BENT = 0.05
WORKING_SET = "working set"
_BINARY = (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10))
_TIMES = (("s", 1e3), ("ms", 1.0), ("us", 1e-3))
# Formats of numbers that need no unit.
FORMATS = {"ratio": ".4f", "percent": ".1%", "share": ".6~%", "count": ",", "number": ",.4~r"}


def size_text(value: str) -> str:
    """Return the expression that writes a size in bytes in binary units."""
    parts = []
    for unit, shift in _BINARY:
        scaled = f"{value} / {1 << shift}"
        digits = f"format({scaled}, {value} % {1 << shift} ? '.3~r' : 'd')"
        parts.append(f"{value} >= {1 << shift} ? {digits} + '{unit}' : ")
    return "".join(parts) + f"format({value}, '.3~r') + 'B'"


def milliseconds_text(value: str) -> str:
    """Return the expression that writes a time in milliseconds in a fitting unit."""
    parts = [
        f"{value} >= {scale} ? format({value} / {scale}, ',.3~r') + '{unit}' : "
        for unit, scale in _TIMES
    ]
    return "".join(parts) + f"format(1e6 * {value}, '.3~r') + 'ns'"


def seconds_text(value: str) -> str:
    """Return the expression that writes a point in time in seconds."""
    return f"format({value}, ',.5~r') + ' s'"


# The same in words, for those who do not see the figure.
_WORDS: dict[str, Callable[[float], str]] = {
    "ratio": words.ratio,
    "percent": words.percent,
    "count": words.count,
    "number": lambda value: words.significant(value, 4),
    "size": words.size,
    "milliseconds": lambda value: words.duration(1e6 * value),
}
TEXTS = {"size": size_text, "milliseconds": milliseconds_text, "seconds": seconds_text}
SIZE_LABEL, MILLISECONDS_LABEL = size_text("datum.value"), milliseconds_text("datum.value")


@dataclass(frozen=True)
class Tip:
    """One line of a tooltip: its title, the field, and what kind of number it is (or `text`)."""

    title: str
    field: str
    kind: str = "text"


def tipped(chart: alt.Chart, tips: Sequence[Tip]) -> alt.Chart:
    """Return the chart with tooltips."""
    shown = []
    for tip in tips:
        if tip.kind in TEXTS:
            text = f"{tip.field}_text"
            expression = TEXTS[tip.kind](f"datum.{tip.field}")
            chart = chart.transform_calculate(**{text: expression})
            shown.append(alt.Tooltip(f"{text}:N", title=tip.title))
        elif tip.kind in FORMATS:
            shown.append(alt.Tooltip(f"{tip.field}:Q", title=tip.title, format=FORMATS[tip.kind]))
        else:
            shown.append(alt.Tooltip(f"{tip.field}:N", title=tip.title))
    return chart.encode(tooltip=shown)


def reading(rows: Rows, tips: Sequence[Tip]) -> str:
    """Return between what values the last field of a tooltip lies, in words."""
    tip = tips[-1]
    values = [row[tip.field] for row in rows if row.get(tip.field) is not None]
    if tip.kind not in _WORDS or not values:
        return ""
    low, high = (_WORDS[tip.kind](value) for value in (min(values), max(values)))
    return f"{tip.title[:1].upper()}{tip.title[1:]} from {low} to {high}."


def lines(
    rows: Rows,
    series: Series,
    x: alt.X,
    y: alt.Y,
    tips: Sequence[Tip],
    *,
    title: str = "",
    height: int = PANEL_HEIGHT,
    points: bool = False,
    interpolate: Any = alt.Undefined,
    encodings: Sequence[Any] = (),
    below: Sequence[alt.Chart] = (),
    above: Sequence[alt.Chart] = (),
) -> Panel:
    """Draw a line per name of a series; the point nearest to the pointer says its values.

    `points` shows all of them. `encodings` are further ones of lines and points; `below` and
    `above` are layers under and over the lines.
    """
    rows = sorted(rows, key=lambda row: row[series.field] not in series.grey)
    base = alt.Chart(data(rows)).encode(x, y, series.colour(), *encodings)
    line = base.mark_line(strokeWidth=LINE_WIDTH, interpolate=interpolate)
    dots = alt.Chart(data(rows)).encode(x, y, series.colour())
    if series.shaped:
        dots = dots.encode(series.shape())
    near = tipped(dots.mark_point(filled=True, size=POINT_SIZE, opacity=1), tips)
    says, drawn = reading(rows, tips), [*below, line, *above]
    return Panel(drawn, near, height, title, series.field, quiet=not points, says=says)


def layers(
    rows: Rows,
    series: Series,
    x: alt.X,
    y: alt.Y,
    tips: Sequence[Tip],
    *,
    height: int = PANEL_HEIGHT,
) -> Panel:
    """Draw an area per name of a series, one on the other, in the order of the series."""
    order = {name: at for at, name in enumerate(series.names)}
    ranked = [{**row, "order": order[row[series.field]]} for row in rows]
    areas = alt.Chart(data(ranked)).mark_area(opacity=0.85)
    areas = areas.encode(x, y.stack("zero"), series.colour(), alt.Order("order:Q"))
    return Panel([tipped(areas, tips)], None, height, "", series.field, says=reading(rows, tips))


def around(values: Iterable[float | None]) -> alt.Scale:
    """Return a scale with room around the values, so that no mark lies on the edge of the plot."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    room = MARGIN * ((high - low) or abs(high) or 1.0)
    # What is never negative gets no axis below zero.
    least = min(low, max(low - room, 0.0)) if low >= 0 else low - room
    return alt.Scale(domain=[least, high + room], zero=False, nice=True)


def dots(
    rows: Rows,
    series: Series,
    x: alt.X,
    y: alt.Y,
    tips: Sequence[Tip],
    *,
    title: str = "",
    height: int = 0,
    encodings: Sequence[Any] = (),
) -> Panel:
    """Draw a dot per row; the one nearest to the pointer says its values.

    Without a height the panel has a row for each name of `y`.
    """
    chart = alt.Chart(data(rows)).encode(x, y, series.colour(), *encodings)
    if series.shaped:
        chart = chart.encode(series.shape())
    near = tipped(chart.mark_point(filled=True, size=DOT_SIZE, opacity=0.9), tips)
    names, says = 0 if height else _names(rows, y), reading(rows, tips)
    height = height or STEP * (names + 1)
    return Panel([], near, height, title, series.field, says=says, names=names)


def bars(
    rows: Rows,
    series: Series,
    x: alt.X,
    y: alt.Y,
    tips: Sequence[Tip],
    *,
    title: str = "",
    step: int = STEP,
    encodings: Sequence[Any] = (),
) -> Panel:
    """Draw bars in the colours of a series, `step` high for each name of `y`."""
    chart = alt.Chart(data(rows)).encode(x, y, series.colour(), *encodings)
    drawn = tipped(chart.mark_bar(), tips)
    names, says = _names(rows, y), reading(rows, tips)
    height = step * names + STEP // 4
    return Panel([drawn], None, height, title, series.field, says=says, names=names)


def _names(rows: Rows, y: alt.Y) -> int:
    encoding: Any = y.to_dict()
    return len(distinct(rows, encoding["field"]))


def row_names(name: str, order: Sequence[str], *, grid: bool = False) -> alt.Y:
    """Return the axis of rows, which have names."""
    return alt.Y(f"{name}:N").sort(list(order)).title(None).axis(grid=grid)


def size_axis(title: str, values: Sequence[float]) -> alt.Axis:
    """Return an axis of sizes in bytes with labels in binary units."""
    return alt.Axis(title=title, labelExpr=SIZE_LABEL, grid=False, values=list(values))


def sizes(field: str, title: str, low: int, high: int, at_most: int = 9) -> alt.X:
    """Return the logarithmic axis of sizes in bytes from `low` to `high`."""
    axis = size_axis(title, powers(low, high, at_most))
    scale = alt.Scale(type="log", base=2, nice=False, domain=extent([low, high]), clamp=True)
    return alt.X(f"{field}:Q", axis=axis, scale=scale)


def rules(x: alt.X, field: str, labels: Mapping[int, str]) -> list[alt.Chart]:
    """Return dotted lines across the panel at some sizes, each with its label at its top."""
    at = [{field: size, "label": label} for size, label in labels.items()]
    chart = alt.Chart(data(at))
    rule = chart.mark_rule(color=GREY, strokeDash=[2, 3], strokeWidth=1).encode(x)
    text = chart.mark_text(color=GREY, angle=270, align="right", baseline="bottom", dy=-2, dx=-2)
    return [rule, text.encode(x, y=alt.value(0), text="label:N")]


def bend(rows: Rows, line: str, size: str, miss: str, shown: Sequence[int] = ()) -> int:
    """Return the size from which on curves are worth drawing.

    It is the largest at which every line still has its first miss ratio, or nearly: a
    twentieth of its fall is let go. Sizes to be `shown` are not left out.
    """
    flat = []
    for name in distinct(rows, line):
        own = sorted((row[size], row[miss]) for row in rows if row[line] == name)
        top, fall = own[0][1], own[0][1] - min(value for _, value in own)
        flat.append(max(at for at, value in own if top - value <= BENT * fall))
    first = min(row[size] for row in rows)
    low = max(first, min([*flat, *shown]))
    return int(low) if low < max(row[size] for row in rows) else int(first)


def powers(low: int, high: int, at_most: int = 9) -> list[int]:
    """Return powers of two from `low` to `high`, thinned to a limit; both where there is none."""
    first, last = (max(low, 1) - 1).bit_length(), max(high, 1).bit_length() - 1
    if first > last:
        return [low, high]
    step = -(-(last - first + 1) // at_most)
    return [1 << power for power in range(first, last + 1, step)]


def decades(low: float, high: float, at_most: int = 12) -> list[float]:
    """Return powers of ten about `low` to `high`, with their halves and fifths where few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = [10.0**power for power in range(first, last + 1)]
    parts = (1, 2, 5) if 3 * len(powers) <= at_most else (1,)
    found = [part * power for power in powers for part in parts]
    return [value for value in found if powers[0] <= value <= powers[-1]]


def size_ticks(top: float) -> list[int]:
    """Return multiples of a power of two from zero to `top`, four to eight of them."""
    step = 1 << max(0, max(int(top) // 4, 1).bit_length() - 1)
    return list(range(0, int(top) + 1, step))
