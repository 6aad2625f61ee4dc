"""A reproduced paper as one page, as tables for the terminal, and as Markdown.

For: our numbers beside the paper's, figure by figure, whatever the study. Must never know: how they
were measured, any paper. What a figure shows is the study's own: a module of `STUDIES` with
`shared`, `shown`, `sentences` and `notes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from cachewright import words
from cachewright.report import reproduced_amplified, reproduced_drive, reproduced_mixes
from cachewright.report.page import figure_section, html_table, marked, whole_page
from cachewright.report.parts import Table
from cachewright.reproduce import Study
from cachewright.reproduce.specs import FigureSpec, Setup

STUDIES: dict[str, Any] = {
    "write-amplification": reproduced_amplified,
    "mixes": reproduced_mixes,
    "drive-mixes": reproduced_drive,
}
# Longer claims of a paper are sentences.
TILE = 20
KINDS = {
    "bundled": "the reference traces are absent (set CACHEWRIGHT_SHARED): bundled and synthetic "
    "traces instead, whose numbers are no reproduction",
    "quick": "small synthetic traces: numbers that show that everything works, no reproduction",
}


def remarks(setup: Setup) -> list[str]:
    """Return what to know of the traces before the numbers."""
    return [KINDS[setup.kind]] if setup.kind in KINDS else []


def tables(what: Study) -> list[Table]:
    """Return every table: those of all figures together, then those of each."""
    found: list[Table] = list(_study(what).shared(what))
    for figure in what.figures:
        found += [one for one in _study(what).shown(what, figure) if isinstance(one, Table)]
    return found


def sentences(what: Study) -> list[str]:
    """Return what the figures say in a sentence each, our numbers beside the paper's."""
    return [text for figure in what.figures for text in _study(what).sentences(what, figure)]


def markdown(what: Study) -> str:
    """Return all tables as Markdown, the best of a column bold."""
    parts = []
    for one in tables(what):
        lines = [f"### {one.heading}", "", _line(one.headers), "|" + "---|" * len(one.headers)]
        for place, row in enumerate(one.rows):
            cells = [
                f"**{cell}**" if place in best else cell
                for cell, best in zip(row, one.best, strict=True)
            ]
            lines.append(_line(cells))
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, *sentences(what)]) + "\n"


def write(what: Study, path: Path) -> Path:
    """Write the page and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_page(what), encoding="utf-8")
    return path


def _study(what: Study) -> Any:
    return STUDIES[what.setup.study]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _page(what: Study) -> str:
    setup, study = what.setup, _study(what)
    notes = [*remarks(setup), setup.machine, *study.notes(what)]
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    parts = [
        "<h1>Our numbers beside the paper's</h1>",
        f'<p class="lead">{escape(setup.paper)}</p>',
        f'<ul class="note">{listed}</ul>',
        *(_section(one) for one in study.shared(what)),
    ]
    for figure in what.figures:
        parts.append(_beside(figure, study.sentences(what, figure)))
        for one in study.shown(what, figure):
            parts.append(_section(one) if isinstance(one, Table) else figure_section(one))
    return whole_page("Our numbers beside the paper's", parts)


def _beside(figure: FigureSpec, sentences: Sequence[str]) -> str:
    """Return a figure's head: what the paper has, and what ours says."""
    claims = {str(key): _claim(value) for key, value in figure.paper.items()}
    tiles = "".join(
        f"<div><b>{escape(value)}</b><span>{escape(key)}</span></div>"
        for key, value in claims.items()
        if len(value) <= TILE
    )
    said = "".join(
        f"<p>{escape(key)}: {escape(value)}</p>"
        for key, value in claims.items()
        if len(value) > TILE
    )
    head = f"<p>The paper ({escape(figure.source)}):</p>" if claims else ""
    tiles = f'<div class="tiles">{tiles}</div>' if tiles else ""
    ours = "".join(f"<p>{escape(text)}</p>" for text in sentences)
    return f"<section><h2>{escape(figure.title)}</h2>{head}{tiles}{said}{ours}</section>"


def _claim(value: Any) -> str:
    return words.percent(value) if isinstance(value, float) and value <= 1 else str(value)


def _section(one: Table) -> str:
    columns = [
        marked([row[index] for row in one.rows], one.best[index])
        for index in range(len(one.headers))
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return (
        f"<section><h3>{escape(one.title)}</h3>{html_table(one.headers, rows, one.texts)}</section>"
    )
