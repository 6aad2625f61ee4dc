"""What a figure is made of: panels, the marks that answer a pointer, series and their legends.

For: one description of a figure that a page draws live and a file holds still. Must never know:
results, HTML. A panel is one view without a width: a page gives it the width of its column, a file
a fixed one. Legends are outside the panels, so that panels of a figure line up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as made
from typing import Any

import altair as alt

Rows = list[dict[str, Any]]
Spec = dict[str, Any]

PANEL_WIDTH, PANEL_HEIGHT = 370, 190
WIDE_WIDTH, ROWS_WIDTH = 780, 640
STEP, OFFSET_STEP = 24, 12
# Of panels whose width is given: height by width, and the lowest.
HEIGHT_OF_WIDTH, LOWEST = 0.75, 80
# Height by width of all panels of a file together: with axes and legends those of a slide.
HEIGHT_OF_SLIDE = 0.5
# Okabe and Ito's colours for all kinds of sight, without black; readable on light and dark.
COLOURS = [
    "#0f86c9", "#e07b00", "#109e73", "#cf6ba3", "#8f7a00", "#56b4e9", "#d55e00", "#7c6bd6",
    "#5f9e3d", "#b0532f", "#5b8a8a", "#a8506b", "#6d7f99", "#c2a500", "#3c9dab", "#9a6fb0",
]  # fmt: skip
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
GREY = "#8a8a8a"
# Of lines in the background.
PALE = "rgba(138, 138, 138, 0.5)"
# Lines of one panel that colours still tell apart.
COLOURED = 8
SOLID = (1, 0)
# How much of a mark is left while the legend points at another series, and how large the mark
# nearest to the pointer is drawn.
DIM, NEAR_SIZE = 0.12, 110
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Series:
    """Names of a field that differ in colour, and in shape or dash where asked.

    `mark` is how the legend shows them: `line`, `point` or `box`. The `grey` names have no colour
    of their own and lie behind the others; the pointer names them.
    """

    field: str
    names: Sequence[str]
    title: str = ""
    mark: str = "line"
    shaped: bool = False
    coloured: bool = True
    dashes: Mapping[str, Sequence[int]] = made(default_factory=dict)
    grey: Collection[str] = ()

    @property
    def told_apart(self) -> list[str]:
        """The names with a colour of their own."""
        return [name for name in self.names if name not in self.grey]

    def colour(self) -> alt.Color:
        """Return the encoding of the names by colour."""
        bright = self.told_apart
        behind = [name for name in self.names if name in self.grey]
        colours = [PALE] * len(behind) + [COLOURS[at % len(COLOURS)] for at in range(len(bright))]
        scale = alt.Scale(domain=[*behind, *bright], range=colours)
        colour = alt.Color(f"{self.field}:N", scale=scale).title(self.title or None)
        return colour.legend(values=bright) if behind else colour

    def shape(self) -> alt.Shape:
        """Return the encoding of the names by shape."""
        bright = self.told_apart
        behind = [name for name in self.names if name in self.grey]
        shapes = ["circle"] * len(behind) + [SHAPES[at % len(SHAPES)] for at in range(len(bright))]
        scale = alt.Scale(domain=[*behind, *bright], range=shapes)
        shape = alt.Shape(f"{self.field}:N", scale=scale).title(self.title or None)
        return shape.legend(values=bright) if behind else shape

    def dash(self) -> alt.StrokeDash:
        """Return the encoding of the names by dash; those without one are solid."""
        dashes = [list(self.dashes.get(name, SOLID)) for name in self.names]
        scale = alt.Scale(domain=list(self.names), range=dashes)
        return alt.StrokeDash(f"{self.field}:N", scale=scale).title(self.title or None)

    def legend(self) -> Spec:
        """Return what a page's legend shows."""
        entries = []
        for at, name in enumerate(self.told_apart):
            entry: Spec = {"name": name}
            if self.coloured:
                entry["colour"] = COLOURS[at % len(COLOURS)]
            if self.shaped:
                entry["shape"] = SHAPES[at % len(SHAPES)]
            if name in self.dashes:
                entry["dash"] = list(self.dashes[name])
            entries.append(entry)
        return {"title": self.title, "mark": self.mark, "entries": entries,
                "focus": self.coloured, "grey": len(self.names) - len(entries)}  # fmt: skip


@dataclass(frozen=True)
class Ramp:
    """A colour that grows with a value: its legend's title and the texts of both ends."""

    title: str
    low: str
    high: str

    def legend(self) -> Spec:
        """Return what a page's legend shows."""
        return {"title": self.title, "ramp": [self.low, self.high], "colour": COLOURS[0]}


@dataclass(frozen=True)
class Panel:
    """One view: layers from the lowest up, and marks of which the nearest answers the pointer.

    `near` marks carry the tooltips; a panel without them has tooltips on its layers. `quiet` ones
    are seen only while they are nearest. `series` is the field that the legend brings forward.
    `names` is how many rows with a name the panel has, if it consists of rows.
    """

    layers: Sequence[alt.Chart]
    near: alt.Chart | None = None
    height: int = PANEL_HEIGHT
    title: str = ""
    series: str = ""
    quiet: bool = False
    says: str = ""
    names: int = 0

    def live(self) -> Spec:
        """Return the specification that fills its container and answers the pointer."""
        focus = alt.param(name="focus", value="")
        bright = (focus == "") | (alt.datum[self.series] == focus)
        drawn = [self._lit(layer, bright) for layer in self.layers]
        if self.near is not None:
            drawn.append(self._near(self.near, bright))
        chart = alt.layer(*drawn) if len(drawn) > 1 else drawn[0]
        if self.series:
            chart = chart.add_params(focus)
        spec = chart.properties(width="container", height=self.height).to_dict()
        for key in ("$schema", "config"):
            spec.pop(key, None)
        whole: Spec = printable(_without_legends(spec))
        return whole

    def still(self, width: int, lowest: int = 0, tall: int = 0) -> Any:
        """Return the chart without what answers a pointer, at least `tall`.

        With a `lowest` height a narrow panel is lower than on a page. A panel that consists of
        rows keeps its height.
        """
        drawn = list(self.layers)
        if self.near is not None and not self.quiet:
            drawn.append(self.near)
        chart = alt.layer(*drawn) if len(drawn) > 1 else drawn[0]
        height = self.height if self.names else max(self.height, tall)
        if lowest and not self.names:
            height = min(height, max(lowest, round(HEIGHT_OF_WIDTH * width)))
        chart = chart.properties(width=width, height=height)
        return chart.properties(title=self.title) if self.title else chart

    def width(self, columns: int) -> int:
        """Return the width in a file."""
        if columns > 1:
            return PANEL_WIDTH
        return ROWS_WIDTH if self.names else WIDE_WIDTH

    def _lit(self, layer: alt.Chart, bright: Any) -> alt.Chart:
        if not self.series:
            return layer
        own = _opacity(layer)
        when = alt.when(bright).then(alt.value(own)).otherwise(alt.value(DIM * own))
        return layer.encode(opacity=when)

    def _near(self, layer: alt.Chart, bright: Any) -> alt.Chart:
        near = alt.selection_point(name="near", nearest=True, on="pointerover", clear="pointerout")
        own = 0.0 if self.quiet else _opacity(layer)
        shown = alt.when(near, empty=False).then(alt.value(1))
        if self.series:
            shown = shown.when(bright).then(alt.value(own))
        size = layer.mark.size if isinstance(layer.mark, alt.MarkDef) else NEAR_SIZE
        grown = alt.when(near, empty=False).then(alt.value(NEAR_SIZE)).otherwise(alt.value(size))
        opacity = shown.otherwise(alt.value(DIM * own if self.series else own))
        return layer.encode(opacity=opacity, size=grown).add_params(near)


def _without_legends(spec: Any) -> Any:
    """Return a specification whose marks have no legend: a page draws its own."""
    if isinstance(spec, list):
        return [_without_legends(one) for one in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        key: one if key == "data" else None if key == "legend" else _without_legends(one)
        for key, one in spec.items()
    }


def _opacity(layer: alt.Chart) -> float:
    found = layer.mark.opacity if isinstance(layer.mark, alt.MarkDef) else alt.Undefined
    return float(found) if isinstance(found, int | float) else 1.0


@dataclass(frozen=True)
class Plot:
    """Panels in columns, and the legends of all of them."""

    panels: Sequence[Panel]
    legends: Sequence[Series | Ramp] = ()
    columns: int = 1

    def live(self) -> Spec:
        """Return what a page's script needs to draw the figure."""
        panels = [
            {"title": panel.title, "names": panel.names, "spec": panel.live()}
            for panel in self.panels
        ]
        legends = [legend.legend() for legend in self.legends]
        whole: Spec = printable({"legends": legends, "panels": panels})
        return whole

    def still(self, width: int | None = None) -> Any:
        """Return the whole as one chart with legends; panels are of a fixed or of a given width."""
        lowest = 0 if width is None else LOWEST
        columns = min(self.columns, len(self.panels))
        rows, panels = -(-len(self.panels) // columns), []
        for panel in self.panels:
            own = width or panel.width(columns)
            panels.append(panel.still(own, lowest, round(HEIGHT_OF_SLIDE * columns * own / rows)))
        return panels[0] if len(panels) == 1 else alt.concat(*panels, columns=self.columns)

    def says(self) -> str:
        """Return which series there are, for those who do not see them."""
        named = [one for one in self.legends if isinstance(one, Series)]
        parts = [f"By {one.title}" if one.title else "Shown" for one in named]
        return " ".join(
            f"{part}: {', '.join(one.names)}." for part, one in zip(parts, named, strict=True)
        )


def data(rows: Rows) -> alt.InlineData:
    """Return rows as a chart's data."""
    return alt.InlineData(values=rows)


def distinct(rows: Rows, key: str) -> list[str]:
    """Return the values of a key in their order of first sight."""
    return list(dict.fromkeys(row[key] for row in rows))


def extent(values: Sequence[float]) -> list[float]:
    """Return the least and the greatest value, the domain that panels of a figure share."""
    low, high = min(values), max(values)
    return [low, high] if low < high else [low - 0.5 * abs(low or 1), high + 0.5 * abs(high or 1)]


def printable(value: Any) -> Any:
    """Return a value of what charts can draw: no control or half characters, no infinite number."""
    if isinstance(value, str):
        return UNPRINTABLE.sub(REPLACEMENT, value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {printable(key): printable(item) for key, item in value.items()}
    return [printable(item) for item in value] if isinstance(value, list | tuple) else value
