"""A reproduced paper as one page, as tables for the terminal, and as Markdown.

Our numbers stand beside the paper's, figure by figure. What a figure shows is its kind's own. The
numbers of its tables are the paper's measures, by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from cachewright import words
from cachewright.report.figure import Figure
from cachewright.report.page import whole_page
from cachewright.tables import html
from cachewright.tables.measures import Measured, Shown
from cachewright_lab.report import claimed
from cachewright_lab.report.tables import Table
from cachewright_lab.reproduce import KINDS, Kind, Study, parts
from cachewright_lab.reproduce.claims import Judged
from cachewright_lab.reproduce.measured import ALL, provenance, unique
from cachewright_lab.reproduce.specs import FigureSpec, Setup, Workload

TRACES = {
    "bundled": "the reference traces are absent (set CACHEWRIGHT_SHARED): bundled and synthetic "
    "traces instead, whose numbers are no reproduction",
    "quick": "small synthetic traces: numbers that show that everything works, no reproduction",
}


def remarks(setup: Setup) -> list[str]:
    """Return what to know of the traces before the numbers."""
    if setup.traces is None:
        return [TRACES[setup.kind]] if setup.kind in TRACES else []
    there = ", ".join(one.name for one in setup.workloads)
    lines = [
        f"the volumes of {setup.traces.name} stand for {there}; goals and sizes are the spec's"
    ]
    if setup.absent:
        absent = ", ".join(setup.absent)
        lines.append(f"no volume stands for {absent}: figures and mixes of them are left out")
    return lines


def tables(what: Study) -> list[Table]:
    """Return every table: those of all figures together, then those of each."""
    found: list[Table] = []
    for name, part in parts(what):
        found += KINDS[name].shared(part)
    for study, part, figure in _each(what):
        found += [one for one in study.shown(part, figure) if isinstance(one, Table)]
    return found


def measured(what: Study, *, every: bool) -> Measured:
    """Return every number of the tables by name, with where each figure comes from.

    Tables of all figures together count only where `every` figure was run.
    """
    found = Measured(what.setup.folder.name)
    pairs: list[tuple[str, float]] = []
    drawn = [
        (figure.name, workloads_of(part, figure), _tables_of(study.shown(part, figure)))
        for study, part, figure in _each(what)
    ]
    if every:
        together = [one for name, part in parts(what) for one in KINDS[name].shared(part)]
        named = {one.name: one for _, part in parts(what) for one in workloads_of(part)}
        drawn.append((ALL, list(named.values()), together))
    for figure, workloads, own in drawn:
        found.figures[figure] = provenance(what.setup, figure, workloads)
        found.tables[figure] = tuple(_kept(one) for one in own)
        pairs += [(f"{figure}/{name}", value) for one in own for name, value in one.measures()]
    found.measures = unique(pairs)
    return found


def workloads_of(part: Study, figure: FigureSpec | None = None) -> Sequence[Workload]:
    """Return the traces of a figure or a study: its own where it has some beside the paper's."""
    alone: Sequence[Workload] = getattr(figure, "own", ())
    shared: Sequence[Workload] = getattr(part, "workloads", part.setup.workloads)
    return alone or shared


def _tables_of(shown: Sequence[Table | Figure]) -> list[Table]:
    return [one for one in shown if isinstance(one, Table)]


def _kept(one: Table) -> Shown:
    return Shown(
        name=one.name,
        title=one.title,
        headers=tuple(one.headers),
        rows=tuple(tuple(str(cell) for cell in row) for row in one.rows),
        best=tuple(tuple(sorted(places)) for places in one.best),
        texts=one.texts,
    )


def markdown(what: Study, claims: Sequence[Judged]) -> str:
    """Return the claims and all tables as Markdown, the best of a column bold."""
    found = [claimed.table(claims)] if claims else []
    drawn = [f"### {one.heading}\n\n{one.markdown()}" for one in [*found, *tables(what)]]
    return "\n\n".join(drawn) + "\n"


def write(what: Study, claims: Sequence[Judged], path: Path) -> Path:
    """Write the page and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_page(what, claims), encoding="utf-8")
    return path


def _each(what: Study) -> Iterator[tuple[Kind, Study, FigureSpec]]:
    """Give every figure in order, with the study it is of and the module that draws it."""
    found = [(name, part, figure) for name, part in parts(what) for figure in part.figures]
    for name, part, figure in sorted(found, key=lambda one: one[2].place):
        yield KINDS[name], part, figure


def _page(what: Study, claims: Sequence[Judged]) -> str:
    setup, known = what.setup, [(KINDS[name], part) for name, part in parts(what)]
    notes = [*remarks(setup), setup.machine]
    notes += [note for study, part in known for note in study.notes(part)]
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    drawn: list[str | Figure] = [
        "<h1>Our numbers beside the paper's</h1>",
        f'<p class="lead">{escape(setup.paper)}</p>',
        claimed.section(claims),
        f'<ul class="note">{listed}</ul>',
        _contents(what),
        *(_section(one) for study, part in known for one in study.shared(part)),
    ]
    for study, part, figure in _each(what):
        drawn.append(_head(figure))
        for one in study.shown(part, figure):
            drawn.append(_section(one) if isinstance(one, Table) else one)
    return whole_page("Our numbers beside the paper's", drawn)


def _contents(what: Study) -> str:
    """Return links to the figures; nothing for a page of one."""
    links = [
        f'<li><a href="#{escape(figure.name, quote=True)}">{escape(figure.title)}</a></li>'
        for _, _, figure in _each(what)
    ]
    return f"<nav><h2>Figures</h2><ol>{''.join(links)}</ol></nav>" if len(links) > 1 else ""


def _head(figure: FigureSpec) -> str:
    """Return a figure's head: its title, which links lead to, and what the paper has."""
    said = "; ".join(f"{key}: {_claim(value)}" for key, value in figure.paper.items())
    note = (
        f'<p class="note">The paper ({escape(figure.source)}). {escape(said)}</p>' if said else ""
    )
    place = escape(figure.name, quote=True)
    return f'<section id="{place}"><h2>{escape(figure.title)}</h2>{note}</section>'


def _claim(value: Any) -> str:
    return words.percent(value) if isinstance(value, float) and abs(value) <= 1 else str(value)


def _section(one: Table) -> str:
    return f"<section><h3>{escape(one.title)}</h3>{html(one.drawn)}</section>"
