"""A paper's claims as a table: claim, paper, ours, whether it is met.

For: the head of a reproduced paper's page, of its Markdown, and the last words in the terminal.
Must never know: any paper, how claims are judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cachewright import words
from cachewright.tables import Html, html, of_texts
from cachewright_lab.report.tables import Table, plain
from cachewright_lab.reproduce.claims import Judged

HEADERS = ("claim", "paper", "ours", "verdict")
# How a verdict looks on the page.
MARKS = {"met": "good", "missed": "bad"}
STATUSES = ("met", "missed", "holds in small", "differs in small", "untested", "not run")
SEVERAL = {"holds in small": "hold in small", "differs in small": "differ in small"}
SMALL = "Small synthetic traces show that everything works; only reference traces or yours judge."


def table(found: Sequence[Judged]) -> Table:
    """Return the claims as a table of text."""
    rows = [
        [
            f"{one.claim.claim} ({one.claim.source})",
            one.claim.paper,
            one.shown,
            one.verdict,
        ]
        for one in found
    ]
    return plain("", "Claims of the paper", list(HEADERS), rows, len(HEADERS))


def short(found: Sequence[Judged]) -> Table:
    """Return the claims by their names, for narrow places."""
    rows = [[one.claim.name, one.claim.paper, one.shown, one.status] for one in found]
    return plain("", "Claims of the paper", list(HEADERS), rows, len(HEADERS))


def summary(found: Sequence[Judged]) -> str:
    """Return how many claims there are of each status, in a sentence."""
    counts = [(status, sum(one.status == status for one in found)) for status in STATUSES]
    said = ", ".join(
        f"{count} {status if count == 1 else SEVERAL.get(status, status)}"
        for status, count in counts
        if count
    )
    small = any(one.status.endswith("in small") for one in found)
    return f"{words.counted(len(found), 'claim')}: {said}" + (f". {SMALL}" if small else "")


def section(found: Sequence[Judged]) -> str:
    """Return the claims as HTML; how one is read and what counts as met stand below its words."""
    if not found:
        return ""
    rows = []
    said = ""
    for one in found:
        claim = one.claim
        # A sentence about several figures stands once.
        sentence = f"the same, {claim.name}" if claim.claim == said else claim.claim
        said = claim.claim
        status, colon, reason = one.verdict.partition(" because ")
        bound = f"met: {claim.bound()}" if claim.bound() else ""
        notes = "".join(
            f'<span class="note">{escape(text)}</span>' for text in (claim.reading, bound) if text
        )
        why = f'<span class="note">because {escape(reason)}</span>' if colon else ""
        rows.append(
            [
                Html(f"{escape(sentence)} <small>({escape(claim.source)})</small>{notes}"),
                claim.paper,
                one.shown,
                Html(f'<b class="{MARKS.get(one.status, "open")}">{escape(status)}</b>{why}'),
            ]
        )
    drawn = html(of_texts("", HEADERS, rows, len(HEADERS)))
    return (
        f'<section class="claims"><h2>Claims of the paper</h2>'
        f"<p>{escape(summary(found))}</p>{drawn}</section>"
    )
