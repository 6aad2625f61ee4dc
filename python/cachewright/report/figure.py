"""A figure of a report: part of a page that is drawn there, or a file of its own.

The page's script draws the live figure; where scripts are off, the page has the same one still. A
file for print is as wide as a column of text, with text of its size, in millimetres and points
(1/72 inch). A chart's axes and labels take what its font needs, so that the width of a panel
follows from drawings: each corrects the panel by what the last was too wide.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from cachewright._native import SpecError
from cachewright.report.plots import COLOURS, Plot, printable

# Pixels between labels, and of the labels at the left: panels under each other begin at one place.
LABEL_GAP, LEFT_EXTENT = 6, 44
INK, LINE, PAPER = "#123456", "#654321", "#fefefe"
PNG_SCALE = 2.0
ON_PAPER = ("#222222", "#d0d0d0", "#ffffff")
VEGA_LITE = "v" + ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
_IDS = re.compile(r"(?<=\bid=\")[^\"]+(?=\")|(?<=url\(#)[^)]+(?=\))")
MM_PER_INCH, POINTS_PER_INCH = 25.4, 72.0
# Widths of a column, of one and a half, and of a page with two columns, as publishers ask for.
WIDTHS_MM = {"column": 85.0, "middle": 114.0, "page": 178.0}
FONT_POINTS = 8.0
NARROWEST_MM, WIDEST_MM = 40.0, 400.0
SMALLEST_POINTS, LARGEST_POINTS = 4.0, 24.0
PNG_PPI = 600
# Drawings until the width is right, and how wrong it may be, in points.
DRAWINGS, NEAR = 6, 0.6
SMALLEST_PANEL = 40
WIDTH = re.compile(r'<svg[^>]*?\bwidth="([\d.]+)"')


@dataclass(frozen=True)
class PrintStyle:
    """The width of a figure in millimetres, and its text's size in points."""

    width_mm: float = WIDTHS_MM["column"]
    font_points: float = FONT_POINTS

    @staticmethod
    def of(width: str | None = None, font: float | None = None) -> PrintStyle | None:
        """Return the style of a width (`column`, `middle`, `page`, `120mm`) and a font size.

        None where neither is given. Errors: `SpecError` for a width or size that no page has.
        """
        if width is None and font is None:
            return None
        millimetres = WIDTHS_MM["column"] if width is None else _millimetres(width)
        points = FONT_POINTS if font is None else font
        if not SMALLEST_POINTS <= points <= LARGEST_POINTS:
            raise SpecError(
                f"--font: found `{points:g}`, expected {SMALLEST_POINTS:g} to {LARGEST_POINTS:g} "
                "points"
            )
        return PrintStyle(millimetres, points)

    @property
    def width_points(self) -> float:
        """The width of the figure in points."""
        return self.width_mm / MM_PER_INCH * POINTS_PER_INCH


def _millimetres(text: str) -> float:
    if text in WIDTHS_MM:
        return WIDTHS_MM[text]
    try:
        found = float(text.removesuffix("mm"))
    except ValueError:
        found = 0.0
    if not (text.endswith("mm") and NARROWEST_MM <= found <= WIDEST_MM):
        names = ", ".join(WIDTHS_MM)
        raise SpecError(
            f"--width: found `{text}`, expected {names}, or {NARROWEST_MM:g}mm to {WIDEST_MM:g}mm"
        )
    return found


@dataclass(frozen=True)
class Figure:
    """One figure: the name of its files, a title and a sentence on how to read it."""

    name: str
    title: str
    caption: str
    plot: Plot

    def section(self) -> str:
        """Return the figure with its title and caption, for a page with the script."""
        charts = "".join(
            f'<div class="panel"><div class="chart" role="img" '
            f'aria-label="{escape(self._label(panel.title, panel.says))}"></div></div>'
            for panel in self.plot.panels
        )
        columns = min(self.plot.columns, len(self.plot.panels))
        return (
            f'<section><h2>{escape(self.title)}</h2><p class="note">{escape(self.caption)}</p>'
            f'<div class="figure"><div class="panels" style="--columns:{columns}">{charts}</div>'
            f'<script type="application/json">{embedded(self.plot.live())}</script>'
            f"<noscript>{self.still()}</noscript></div></section>"
        )

    def save(self, path: Path, style: PrintStyle | None = None) -> None:
        """Write the chart as SVG, PNG or PDF, as the path's suffix says; dark ink on white.

        With a style it is as wide as the style says; a pixel of SVG and PDF is a point then.
        """
        spec = self._themed(*ON_PAPER) if style is None else self._printed(style)
        match path.suffix:
            case ".svg":
                path.write_text(self._svg(spec), encoding="utf-8")
            case ".png":
                # The scale multiplies what the resolution gives.
                scale, ppi = (PNG_SCALE, None) if style is None else (1.0, PNG_PPI)
                png = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=scale, ppi=ppi)
                path.write_bytes(png)
            case _:
                path.write_bytes(vl_convert.vegalite_to_pdf(spec, vl_version=VEGA_LITE))

    def _label(self, panel: str, says: str) -> str:
        """Return what a panel shows, in words."""
        title = f"{self.title}, {panel}" if panel else self.title
        parts = [f"{title}.", self.caption, self.plot.says()]
        return str(printable(" ".join(part for part in [*parts, says] if part)))

    def still(self) -> str:
        """Return the chart as SVG in the page's colours; its ids are its own in the page."""
        svg = self._svg(self._themed(INK, LINE, PAPER))
        svg = svg.replace(INK, "currentColor").replace(LINE, "var(--line)")
        label = escape(self._label("", ""))
        return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)

    def _svg(self, spec: dict[str, Any]) -> str:
        """Return the chart as SVG; its ids, which count on from chart to chart, are its own."""
        numbers: dict[str, int] = {}

        def named(found: re.Match[str]) -> str:
            return f"{escape(self.name)}-{numbers.setdefault(found.group(), len(numbers))}"

        return _IDS.sub(named, vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE))

    def _printed(self, style: PrintStyle) -> dict[str, Any]:
        """Return the chart in the style's width: each drawing corrects the panels' width."""
        columns = min(self.plot.columns, len(self.plot.panels))
        target, width = style.width_points, style.width_points / columns
        spec: dict[str, Any] = {}
        for _ in range(DRAWINGS):
            chart = themed(self.plot.still(round(width)), *ON_PAPER)
            chart = styled(chart, style, bool(self.plot.legends))
            spec = printable(chart.to_dict())
            surplus = width_of(self._svg(spec)) - target
            if abs(surplus) <= NEAR * columns:
                break
            width = max(width - surplus / columns, SMALLEST_PANEL)
        return spec

    def _themed(self, ink: str, line: str, paper: str) -> dict[str, Any]:
        chart = themed(self.plot.still(), ink, line, paper)
        if not self.plot.legends:
            chart = chart.configure_legend(disable=True)
        spec: dict[str, Any] = printable(chart.to_dict())
        return spec


def themed(chart: Any, ink: str, line: str, paper: str) -> Any:
    """Return the chart with text in `ink`, grid in `line`, on `paper`."""
    background = "transparent" if paper == PAPER else paper
    return (
        chart.configure(background=background, font="sans-serif", aria=False)
        .configure_axis(
            labelColor=ink,
            titleColor=ink,
            gridColor=line,
            domainColor=line,
            tickColor=line,
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            labelOverlap=True,
            labelSeparation=LABEL_GAP,
        )
        .configure_axisYQuantitative(minExtent=LEFT_EXTENT)
        .configure_axisYBand(labelLimit=300)
        .configure_axisYPoint(labelLimit=300)
        .configure_legend(
            labelColor=ink, titleColor=ink, labelFontSize=11, titleFontSize=11, symbolLimit=40
        )
        .configure_title(color=ink, fontSize=12, anchor="start")
        .configure_view(stroke=None)
        .configure_range(category=COLOURS)
    )


def embedded(value: Any) -> str:
    """Return a value as JSON that a page can hold in a script: no end of it, no comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def styled(chart: Any, style: PrintStyle, legends: bool) -> Any:
    """Return a themed chart with text of the style's size and its legends under the panels."""
    size = style.font_points
    chart = chart.configure_axis(
        **_kept(chart, "axis"), labelFontSize=size, titleFontSize=size, titleFontWeight="normal",
        labelOverlap=True, labelSeparation=size / 2, tickSize=3, titlePadding=3, labelPadding=2,
    )  # fmt: skip
    chart = chart.configure_title(
        **_kept(chart, "title"), fontSize=size, anchor="start", offset=4
    ).configure_axisYQuantitative(minExtent=0)  # fmt: skip
    if not legends:
        return chart.configure_legend(disable=True)
    columns = max(1, int(style.width_points / (9 * size)))
    return chart.configure_legend(
        **_kept(chart, "legend"), labelFontSize=size, titleFontSize=size, symbolLimit=40,
        orient="bottom", columns=columns, symbolSize=4 * size, labelLimit=style.width_points / 2,
    )  # fmt: skip


def _kept(chart: Any, part: str) -> dict[str, Any]:
    """Return the colours of a part that the theme chose."""
    whole = chart.config.to_dict().get(part, {})
    return {key: value for key, value in whole.items() if key.endswith("Color")}


def width_of(svg: str) -> float:
    """Return the width of a drawing in pixels."""
    found = WIDTH.search(svg)
    return float(found[1]) if found else 0.0
