"""A figure of a report: part of a page that is drawn there, or a file of its own.

For: `Figure`, and how a plot becomes HTML, SVG, PNG or PDF. Must never know: what figures show. The
page's script draws the live figure; where scripts are off, the page has the same one still.
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

from cachewright.report import printed
from cachewright.report.plots import COLOURS, Plot, printable
from cachewright.report.printed import PrintStyle

INK, LINE, PAPER = "#123456", "#654321", "#fefefe"
PNG_SCALE = 2.0
ON_PAPER = ("#222222", "#d0d0d0", "#ffffff")
VEGA_LITE = "v" + ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
_IDS = re.compile(r"(?<=\bid=\")[^\"]+(?=\")|(?<=url\(#)[^)]+(?=\))")


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
            f"<noscript>{self._still_svg()}</noscript></div></section>"
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
                scale, ppi = (PNG_SCALE, None) if style is None else (1.0, printed.PNG_PPI)
                png = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=scale, ppi=ppi)
                path.write_bytes(png)
            case _:
                path.write_bytes(vl_convert.vegalite_to_pdf(spec, vl_version=VEGA_LITE))

    def _label(self, panel: str, says: str) -> str:
        """Return what a panel shows, in words."""
        title = f"{self.title}, {panel}" if panel else self.title
        parts = [f"{title}.", self.caption, self.plot.says()]
        return str(printable(" ".join(part for part in [*parts, says] if part)))

    def _still_svg(self) -> str:
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
        for _ in range(printed.DRAWINGS):
            chart = themed(self.plot.still(round(width)), *ON_PAPER)
            chart = printed.styled(chart, style, bool(self.plot.legends))
            spec = printable(chart.to_dict())
            surplus = printed.width_of(self._svg(spec)) - target
            if abs(surplus) <= printed.NEAR * columns:
                break
            width = max(width - surplus / columns, printed.SMALLEST_PANEL)
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
        )
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
