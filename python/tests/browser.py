"""An installed Chromium that opens report pages, and what it sees in them.

For: tests of live figures. Must never know: what the figures show. Nothing is waited for by time:
each wait is for a condition, with a guard of the driver against hanging.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
HANG_GUARD_MS = 30 * 60 * 1000
# A page that is being opened has no root element for a moment.
DRAWN = "document.documentElement?.dataset.figures === 'drawn'"
TOOLTIP = """() => {
  const found = document.querySelector("#vg-tooltip-element.visible");
  if (!found) return null;
  const text = (cell) => cell.textContent;
  const rows = [...found.querySelectorAll("tr")];
  return Object.fromEntries(rows.map((row) => [...row.cells].map(text)));
}"""
# What is wrong with figures: not drawn, without marks, wider than the window, or in small print.
FAULTS = """(smallest) => {
  const faults = [], width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) faults.push("the page overflows");
  for (const chart of document.querySelectorAll(".chart")) {
    const name = chart.getAttribute("aria-label");
    if (chart.getAttribute("role") !== "img" || !name) faults.push("unnamed: " + chart.outerHTML);
    const svg = chart.querySelector("svg");
    if (!svg) { faults.push("not drawn: " + name); continue; }
    const shown = svg.getBoundingClientRect();
    if (shown.right > width || shown.width < 200) faults.push("does not fit: " + name);
    const marks = svg.querySelectorAll(".role-mark path");
    if (![...marks].some((mark) => mark.getBBox().width > 0)) faults.push("no marks: " + name);
    const scale = shown.width / svg.viewBox.baseVal.width;
    for (const text of svg.querySelectorAll("text")) {
      const size = parseFloat(getComputedStyle(text).fontSize) * scale;
      if (text.textContent && size < smallest) faults.push(`text of ${size} px: ${name}`);
    }
    for (const text of svg.querySelectorAll("text")) {
      if (/undefined|NaN|null/.test(text.textContent)) faults.push(text.textContent);
    }
  }
  return faults;
}"""


def path_of_chromium() -> str:
    """Return the path of an installed Chromium; skips the test where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"needs one of {', '.join(NAMES)} to open report pages")
    return found


@dataclass
class View:
    """A page in the browser, and what went wrong in it."""

    page: Any
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path) -> View:
        """Open a file and wait until its figures are drawn."""
        self.page.goto(path.as_uri())
        self.page.wait_for_function(DRAWN)
        return self

    def faults(self, smallest: int = 10) -> list[str]:
        """Return what is wrong with the page's figures; their text has a smallest size in px."""
        found: list[str] = self.page.evaluate(FAULTS, smallest)
        return found + self.messages + self.requests[1:]

    def resize(self, width: int) -> None:
        """Change the window's width and wait until everything fits it."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.wait_for_function(f"({FAULTS})(10).length === 0")

    def tooltip_at(self, chart: int, x: Any, y: Any) -> dict[str, str]:
        """Return the tooltip with the pointer at two values of a chart's axes."""
        place = self.page.evaluate(
            """([chart, x, y]) => {
              const element = document.querySelectorAll(".chart")[chart];
              element.scrollIntoView({ block: "center" });
              const box = element.querySelector("svg").getBoundingClientRect();
              const [left, top] = element.view.origin(), padding = element.view.padding();
              const at = (name, value, length) => {
                const scale = element.view.scale(name);
                const place = scale(value) + (scale.bandwidth ? scale.bandwidth() / 2 : 0);
                return Math.min(Math.max(place, 1), length - 1);
              };
              return [
                box.left + padding.left + left + at("x", x, element.view.width()),
                box.top + padding.top + top + at("y", y, element.view.height()),
              ];
            }""",
            [chart, x, y],
        )
        self.page.mouse.move(5, 5)
        self.page.wait_for_function(f"({TOOLTIP})() === null")
        self.page.mouse.move(*place)
        found: dict[str, str] = self.page.wait_for_function(TOOLTIP).json_value()
        return found


@contextmanager
def chromium() -> Iterator[Any]:
    """Give a running Chromium; skips the test where it, or what drives it, is not installed."""
    driver = pytest.importorskip("playwright.sync_api", reason="needs playwright (extra `dev`)")
    path = path_of_chromium()
    # Chromium's own sandbox does not start for root.
    with driver.sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=path, chromium_sandbox=os.getuid() != 0, timeout=HANG_GUARD_MS
        )
        yield browser
        browser.close()


@contextmanager
def window(browser: Any, width: int, scheme: str = "light", **options: Any) -> Iterator[View]:
    """Give a window of a width that prefers a colour scheme."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, **options
    )
    context.set_default_timeout(HANG_GUARD_MS)
    view = View(context.new_page())
    view.page.on("console", lambda said: view.messages.append(f"{said.type}: {said.text}"))
    view.page.on("pageerror", lambda error: view.messages.append(f"error: {error}"))
    view.page.on("request", lambda request: view.requests.append(request.url))
    yield view
    context.close()
