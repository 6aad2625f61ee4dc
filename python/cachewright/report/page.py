"""What every page of a report is: one file that loads nothing, with what makes its figures live.

A page has its style, Vega's libraries and the script that draws in itself, once; its policy forbids
to load anything. Light and dark follow the reader's system.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from cachewright.tables import Table, html

if TYPE_CHECKING:
    from cachewright.report.figure import Figure

# Vega makes functions of its expressions, which the policy calls `unsafe-eval`.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
# Where scripts are off, the still figures stand in the place of the live ones.
WITHOUT_SCRIPTS = "<noscript><style>.panels { display: none; }</style></noscript>\n"


def whole_page(title: str, parts: Sequence[str | Figure]) -> str:
    """Return a page of these parts, the empty ones left out; with figures, what draws them too."""
    shown = [part if isinstance(part, str) else part.section() for part in parts]
    live = any(not isinstance(part, str) for part in parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n{WITHOUT_SCRIPTS}</head>\n"
        "<body>\n<main>\n" + "\n".join(part for part in shown if part) + "\n</main>\n"
        f"{_scripts() if live else ''}</body>\n</html>\n"
    )


def section(
    table: Table[Any], title: str = "", *, before: str = "", after: str = "", facts: bool = False
) -> str:
    """Return a table under its title, or under `title`, with HTML before and after it.

    Of `facts` the first column names what the second says.
    """
    drawn = html(table)
    if facts:
        drawn = f'<div class="facts">{drawn}</div>'
    name = escape(title or heading(table))
    return f"<section><h2>{name}</h2>{before}{drawn}{after}</section>"


def heading(table: Table[Any]) -> str:
    """Return a table's title as a heading."""
    return table.title[:1].upper() + table.title[1:]


def answered(paragraph: str, tiles: str = "") -> str:
    """Return the first box of a page: the answer in a paragraph, then numbers in large print."""
    if not paragraph:
        return ""
    numbers = f'<div class="tiles">{tiles}</div>' if tiles else ""
    return f'<section class="best"><p><strong>{escape(paragraph)}</strong></p>{numbers}</section>'


def note(sentence: str) -> str:
    """Return a remark in small print."""
    return f'<p class="note">{escape(sentence)}</p>'


@cache
def _scripts() -> str:
    """Return the scripts of a page with figures."""
    import vl_convert

    from cachewright.report.figure import VEGA_LITE

    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    own = (files("cachewright.report") / "live.js").read_text(encoding="utf-8")
    return f'<script type="module">{library}</script>\n<script type="module">{own}</script>\n'


STYLE = """
:root { --paper: #ffffff; --ink: #1d2126; --soft: #5c6670; --line: #d9dde2; --tint: #f4f6f8;
  --accent: #0b6aa2; --good: #1a7f37; --bad: #b42318; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15181c; --ink: #e4e7ea; --soft: #9aa4ae; --line: #363c44; --tint: #1d2126;
    --accent: #63b5ea; --good: #5bc476; --bad: #f58a80; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 28px 24px 48px; }
@media (max-width: 480px) { main { padding: 20px 14px 40px; } }
h1 { font-size: 26px; margin: 0 0 2px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 34px 0 6px; }
h3 { font-size: 14px; margin: 18px 0 4px; }
p { margin: 0 0 10px; }
.lead, .note { color: var(--soft); }
.note { font-size: 13px; }
.best { background: var(--tint); border-left: 4px solid var(--accent); padding: 14px 18px;
  margin: 18px 0 8px; border-radius: 4px; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px 34px; margin-bottom: 10px; }
.tiles div { display: flex; flex-direction: column; }
.tiles b { font-size: 22px; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: 13px; }
.row { display: flex; flex-wrap: wrap; gap: 0 56px; }
.row > * { min-width: 0; }
.wide { overflow-x: auto; }
.panels { display: grid; gap: 4px 28px; grid-template-columns: 1fr; }
@media (min-width: 760px) {
  .panels { grid-template-columns: repeat(var(--columns, 1), minmax(0, 1fr)); }
}
.panel { min-width: 0; }
.chart { width: 100%; overflow: hidden; }
.figure svg { display: block; max-width: 100%; height: auto; }
.legend { display: flex; flex-wrap: wrap; align-items: center; gap: 2px 12px; font-size: 13px;
  margin: 0 0 6px; }
.legend > * { display: inline-flex; align-items: center; gap: 5px; overflow-wrap: anywhere;
  text-align: left; }
.legend b { color: var(--soft); font-weight: 600; }
.legend small { color: var(--soft); font-size: 12px; }
.legend svg { flex: none; }
.legend button { font: inherit; color: inherit; background: none; border: 0; padding: 3px 2px;
  border-radius: 3px; cursor: pointer; }
.legend button:hover, .legend button[aria-pressed="true"] { background: var(--tint);
  box-shadow: 0 0 0 1px var(--line); }
.legend i { width: 90px; height: 10px; border: 1px solid var(--line);
  background: linear-gradient(to right, transparent, var(--ramp)); }
html #vg-tooltip-element.vg-tooltip { background: var(--paper); color: var(--ink);
  border: 1px solid var(--line); font: 13px/1.4 system-ui, sans-serif; max-width: 300px;
  border-radius: 4px; padding: 6px 9px; }
html #vg-tooltip-element.vg-tooltip td { border: 0; padding: 1px 0; white-space: normal;
  overflow-wrap: anywhere; }
html #vg-tooltip-element.vg-tooltip td.key { color: var(--soft); padding-right: 8px;
  max-width: 120px; }
html #vg-tooltip-element.vg-tooltip td.value { max-width: 180px; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
th.n, td.n { text-align: right; padding: 4px 0 4px 14px; }
th.n + th:not(.n), td.n + td:not(.n) { padding-left: 14px; }
th.n { white-space: normal; }
th.n:not(:empty) { min-width: 60px; }
.facts td { white-space: normal; vertical-align: top; }
.facts td:first-child { white-space: nowrap; color: var(--soft); }
.facts thead { display: none; }
.top { color: var(--accent); }
.claims td { white-space: normal; vertical-align: top; min-width: 90px; }
.claims td:first-child { min-width: 220px; }
.claims .note { display: block; color: var(--soft); }
@media (max-width: 640px) {
  .claims thead { display: none; }
  .claims tr { display: block; border-bottom: 1px solid var(--line); padding: 6px 0; }
  .claims td, .claims td:first-child { display: block; min-width: 0; border: 0; padding: 1px 0; }
  .claims td:nth-child(2)::before { content: "paper: "; color: var(--soft); }
  .claims td:nth-child(3)::before { content: "ours: "; color: var(--soft); }
}
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--soft); }
pre { background: var(--tint); padding: 12px 16px; overflow-x: auto; font-size: 13px;
  border-radius: 4px; }
summary { cursor: pointer; color: var(--accent); }
footer { margin-top: 40px; color: var(--soft); font-size: 13px; }
@media print { details > pre { display: block; } h2 { break-after: avoid; }
  section { break-inside: avoid; } }
"""
