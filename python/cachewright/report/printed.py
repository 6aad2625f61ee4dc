"""Figures for print: as wide as a column of text, with text of its size.

For: figures of papers as SVG, PDF or PNG. Must never know: what figures show. Units: millimetres
and points (1/72 inch). A chart's axes and labels take what its font needs, so that the width of a
panel follows from drawings: each corrects the panel by what the last was too wide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from cachewright._native import SpecError

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


def styled(chart: Any, style: PrintStyle, legends: bool) -> Any:
    """Return a themed chart with text of the style's size and its legends under the panels."""
    size = style.font_points
    chart = chart.configure_axis(
        **_kept(chart, "axis"), labelFontSize=size, titleFontSize=size, titleFontWeight="normal",
        labelOverlap=True, tickSize=3, titlePadding=3, labelPadding=2,
    )  # fmt: skip
    chart = chart.configure_title(
        **_kept(chart, "title"), fontSize=size, anchor="start", offset=4
    )  # fmt: skip
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
