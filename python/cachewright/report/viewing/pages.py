"""The pages of `view`: the list of results, one result, several side by side, curves overlaid.

For: HTML of what a reader asks for. Must never know: sockets. Pages load nothing from elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from cachewright.report import compared as beside
from cachewright.report import single
from cachewright.report.page import STYLE, whole_page
from cachewright.report.viewing.catalogue import Entry, described
from cachewright.report.viewing.gist import MOST
from cachewright.tables import side_by_side

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'self'"
)
BACK = '<nav><a href="/">All results</a></nav>'
PAPER_PAGE = "index.html"
OWN_STYLE = """
form { margin: 12px 0; }
.tools { display: flex; flex-wrap: wrap; gap: 8px; margin: 12px 0; position: sticky; top: 0;
  background: var(--paper); padding: 6px 0; }
input[type=search] { flex: 1 1 240px; font: inherit; padding: 5px 8px; color: inherit;
  background: var(--paper); border: 1px solid var(--line); border-radius: 4px; }
.tools button { font: inherit; padding: 5px 12px; color: inherit; background: var(--tint);
  border: 1px solid var(--line); border-radius: 4px; cursor: pointer; }
a { color: var(--accent); }
#results td { white-space: normal; overflow-wrap: anywhere; vertical-align: top; }
@media (max-width: 640px) {
  thead { display: none; }
  #results tr { display: block; border-bottom: 1px solid var(--line); padding: 6px 0; }
  #results td { display: block; border: 0; padding: 1px 0; }
}
"""


def listing(root: Path, entries: Sequence[Entry]) -> str:
    """Return the page of all results with a filter, and what to do with the chosen ones."""
    shown = [*map(described, entries[:MOST]), *entries[MOST:]]
    rows = "".join(_row(entry) for entry in shown)
    empty = "" if entries else "<p>No results below this folder.</p>"
    script = (files("cachewright.report.viewing") / "list.js").read_text(encoding="utf-8")
    names = ("", "result", "best", "commands", "policies", "sizes", "changed")
    head = "".join(f"<th>{name}</th>" for name in names)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(str(root))}: results</title>\n<style>{STYLE}{OWN_STYLE}</style>\n"
        f"</head>\n<body>\n<main>\n<h1>Results</h1>\n"
        f'<p class="lead">{escape(str(root))}: <span id="count">{len(entries)} of '
        f"{len(entries)}</span></p>{empty}\n"
        '<form method="get">\n<div class="tools">'
        '<input id="filter" type="search" placeholder="Filter by path or command" '
        'aria-label="Filter by path or command">'
        '<button formaction="/compare">Set side by side</button>'
        '<button formaction="/curves">Overlay curves</button></div>\n'
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f'<tbody id="results">{rows}</tbody></table></div>\n</form>\n</main>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _row(entry: Entry) -> str:
    name = escape(entry.name, quote=True)
    commands = ", ".join(entry.commands)
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.changed_s))
    held = [
        escape("; ".join(dict.fromkeys(text for text in texts if text)), quote=True)
        for texts in zip(*(found[1:] for found in entry.gists), strict=True)
    ]
    compared, sizes, best = held or [""] * 3
    return (
        f'<tr data-text="{name.lower()} {commands} {" ".join(held).lower()}">'
        f'<td><input type="checkbox" name="at" value="{name}" aria-label="choose {name}"></td>'
        f'<td><a href="/result?at={quote(entry.name, safe="")}">{name}</a></td>'
        f"<td>{best}</td><td>{commands}</td><td>{compared}</td><td>{sizes}</td>"
        f"<td>{changed}</td></tr>"
    )


def one(entry: Entry) -> str:
    """Return the page of one result. Errors: `SpecError` where it is damaged."""
    paper = entry.folder / PAPER_PAGE
    if entry.commands == ("reproduce",) and paper.is_file():
        return _linked(paper.read_text(encoding="utf-8", errors="replace"))
    return _linked(single.drawn(entry.folder)[0])


def compared(entries: Sequence[Entry]) -> str:
    """Return the page of several results. Errors: `SpecError` where they share nothing."""
    return _linked(beside.page(side_by_side.Comparison.of(_readings(entries))))


def curves(entries: Sequence[Entry]) -> str:
    """Return the page of the results' curves in one figure. Errors: `SpecError` without curves."""
    return _linked(beside.curves_page(_readings([entry for entry in entries if entry.curves])))


def refused(sentence: str) -> str:
    """Return the page that says why there is no other."""
    return whole_page("view", [BACK, "<h1>Not shown</h1>", f"<p>{escape(sentence)}</p>"])


def _readings(entries: Sequence[Entry]) -> list[side_by_side.Reading]:
    return side_by_side.read_all([entry.folder for entry in entries])


def _linked(page: str) -> str:
    """Return a page with the way back to the list at its top."""
    return page.replace("<main>", f"<main>\n{BACK}", 1)
