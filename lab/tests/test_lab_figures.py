"""The figures of papers' pages in a real browser: drawn and readable.

Skipped where no Chromium is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, window

from cachewright import cli
from cachewright.report.figure import Figure
from cachewright.report.page import whole_page
from cachewright_lab.report import drive_charts
from cachewright_lab.reproduce import isolation

WIDTHS, SCHEMES = (1280, 400), ("light", "dark")
SPECS = Path(__file__).resolve().parents[1] / "papers"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


def reproduced(to: Path) -> Path:
    line = ["reproduce", "soft-qos", "fig3", "--quick", "--specs", str(SPECS)]
    assert cli.status_of([*line, "--out", str(to.parent / "fig3")]) == 0
    return to.parent / "fig3" / "index.html"


def studies(to: Path) -> Path:
    """Write a page of the charts that only long studies draw."""

    def rows(value: str, numbers: Sequence[float], **names: Sequence[str]) -> list[dict[str, Any]]:
        """Return a row for each combination of names and each number, which is its value too."""
        found = []
        for each in product(*names.values()):
            for at, number in enumerate(numbers):
                row = dict(zip(names, each, strict=True))
                found.append(
                    {**row, "seconds": float(at), "size_bytes": (at + 1) << 20} | {value: number}
                )
        return found

    sizes = [
        {**row, "point": {1: "MBP", 2: "OAP"}.get(at % 4, "")}
        for at, row in enumerate(
            rows("us", [900.0, 400.0, 390.0, 380.0], tenant="ab", all=["alone"])
        )
    ]
    spread = rows("x", [0.1], tenant=["a"]) + rows("x", [0.4], tenant=["b"])
    held = [
        {**row, "size_bytes": row["held"]}
        for row in rows("held", [1 << 20, 3 << 20, 2 << 20], tenant="ab", region=["bucket", "pool"])
    ]
    plots = [
        drive_charts.by_size(sizes, "tenant", "all"),
        drive_charts.scatter(
            [{**row, "y": row["x"] ** 2} for row in spread], "gain", "fall", "tenant"
        ),
        drive_charts.mix_dots(
            rows("value", [2.0], mix=["m1", "m2"], scheme="xy"), "slowdown", ratios=True
        ),
        isolation.throughput(rows("mb", [3.0, 5.0, 4.0], layout="xy", tenant="ab")),
        isolation.measures(
            rows("value", [0.5], measure=["space", "use"], row="12", layout="xy"), "seeds"
        ),
        isolation.regions(held),
    ]
    figures = [Figure(f"f{at}", f"Figure {at}", "A test.", plot) for at, plot in enumerate(plots)]
    to.write_text(whole_page("charts", figures), encoding="utf-8")
    return to


@pytest.mark.parametrize("make", [reproduced, studies])
def test_figures_are_drawn_readably_at_every_width(
    browser: Any, tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path / "page.html")
    for width, scheme in zip(WIDTHS, SCHEMES, strict=True):
        with window(browser, width, scheme) as view:
            assert view.open(path).faults() == []
            assert view.page.locator(".chart").count() > 0
            for other in reversed(WIDTHS):
                view.resize(other)
            assert view.faults() == []
