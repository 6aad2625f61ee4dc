"""What a notebook shows of an answer: the conclusion, the table that leads to it, one figure.

A cell that ends with a result shows this in place of the result's name. It is plain HTML with a
figure that stands still, so that it looks the same in every notebook and in its export.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from cachewright._native import SpecError
from cachewright.report.run import figures
from cachewright.tables import html, ranking, summary

if TYPE_CHECKING:
    from cachewright.report.figure import Figure
    from cachewright.results import CurveFrames, RunFrames
    from cachewright.tables import Table


def of_run(result: RunFrames) -> str:
    """Return a run, or a comparison: what to use, the ranking of its capacity, the first figure."""
    answer = result.answer
    rank = ranking.rank_of(answer)
    if len(answer.cases) == 1:
        (case,) = answer.cases
        return _shown(result.name, "", [summary.tenants(case)], figures(result)[:1])
    best = summary.advised(answer, rank)
    ranked = next(one for one in summary.rankings(answer, rank) if best in one.cases)
    tables = [summary.ranked(answer, ranked)]
    return _shown(result.name, summary.conclusion(answer, rank), tables, figures(result)[:1])


def of_curves(found: CurveFrames) -> str:
    """Return miss-ratio curves: their table and their figure."""
    from cachewright.report import curves as drawn
    from cachewright.tables import curves

    tables = curves.by_size(found.answer)[:1]
    return _shown(
        found.answer.name,
        curves.answered(found.answer),
        tables,
        drawn.figures(found.answer)[:1],
    )


def chart(drawn: Sequence[Figure], name: str | None) -> Any:
    """Return a figure as a chart of Altair, the first one or that of a name.

    Errors: `SpecError` for a name that is none, and where there is no figure.
    """
    if not drawn:
        raise SpecError("found nothing to draw, expected several cases or times")
    for figure in drawn:
        if name in (None, figure.name):
            return figure.plot.still().properties(title=figure.title)
    expected = ", ".join(figure.name for figure in drawn)
    raise SpecError(f"chart: found `{name}`, expected one of {expected}")


def _shown(title: str, said: str, tables: Sequence[Table[Any]], drawn: Sequence[Figure]) -> str:
    parts = [f"<p><strong>{escape(title)}</strong></p>" if title else ""]
    parts.append(f"<p>{escape(said)}</p>" if said else "")
    parts += [f"<p>{escape(table.title)}</p>{html(table)}" for table in tables]
    parts += [figure.still() for figure in drawn]
    # The figure's lines take this colour, which a page of reports has by itself.
    return f'<div class="cachewright" style="--line: #9996">{"".join(parts)}</div>'
