"""What a notebook shows of an answer: the conclusion, the table that leads to it, one figure.

A cell that ends with a result shows this in place of the result's name. It is plain HTML with a
figure that stands still, so that it looks the same in every notebook and in its export.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import words
from cachewright._native import Error, SpecError
from cachewright.answers import PlanAnswer, TraceInfo, WorkloadAnswer
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.plots import Plot, Rows, Series, distinct
from cachewright.report.run import figures
from cachewright.shown import Shown
from cachewright.tables import facts, html, of_records, ranking, sizing, summary, workload
from cachewright.traces import opened, read_trace

if TYPE_CHECKING:
    from cachewright.results import CurveFrames, RunFrames
    from cachewright.tables import Table
    from cachewright.traces import Trace


FITS = "max-width: 100%; height: auto"
# Requests of a trace that are shown.
SHOWN_REQUESTS = 10


def of_run(result: RunFrames) -> str:
    """Return a run, or a comparison: what to use, the ranking of its capacity, the first figure."""
    answer = result.answer
    rank = ranking.rank_of(answer)
    if len(answer.cases) == 1:
        (case,) = answer.cases
        return _shown(
            result.name,
            summary.conclusion(answer, rank),
            [summary.tenants(case)],
            figures(result)[:1],
        )
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


def of_answer(found: Shown) -> str:
    """Return an answer that is no frame: what a plan needs, or what a trace holds."""
    if isinstance(found, PlanAnswer):
        together = sizing.together(found)
        tables: list[Table[Any]] = [sizing.alone(found)]
        tables += [together] if together else []
        return _shown(found.name, sizing.conclusion(found), tables, _sizes(found))
    if isinstance(found, TraceInfo):
        return _shown(Path(found.path).name, _held(found), [_facts(found)], _rates(found))
    if isinstance(found, WorkloadAnswer):
        from cachewright.report import workload as drawn

        pages = drawn.figures(found)[:1]
        return _shown(
            Path(found.path).name, workload.conclusion(found), [workload.facts(found)], pages
        )
    return f"<pre>{escape(repr(found))}</pre>"


def of_trace(trace: Trace) -> str:
    """Return the first requests of a trace; how it is read, where it cannot be."""
    try:
        frame = read_trace(trace, first=SHOWN_REQUESTS)
        name = opened(trace).name
    except Error as error:
        return f"<pre>{escape(repr(trace))}\n{escape(str(error))}</pre>"
    said = f"the first {words.counted(len(frame), 'request')}"
    return _shown(name, said, [of_records(frame.to_dicts(), frame.columns)], [])


def _held(info: TraceInfo) -> str:
    """Return what a trace holds in a sentence."""
    span = "" if info.span_ns is None else f" in {words.duration(info.span_ns)}"
    return (
        f"{words.counted(info.requests, 'request')}{span}, "
        f"{words.percent(info.read_share)} of them reads; "
        f"working set {words.size(info.working_set_bytes)}"
    )


def _sizes(plan: PlanAnswer) -> list[Figure]:
    """Return the smallest cache of each partitioner as a figure; none where no size is known."""
    rows: Rows = [
        {"partition": one.partition, "size": one.smallest_blocks * plan.block_bytes}
        for one in plan.partitions
        if one.smallest_blocks
    ]
    if not rows:
        return []
    series = Series("partition", distinct(rows, "partition"), "partition", "point", shaped=True)
    x = alt.X("size:Q").axis(labelExpr=marks.SIZE_LABEL).title("smallest cache")
    y = marks.row_names("partition", distinct(rows, "partition"), grid=True)
    tips = [marks.Tip("partition", "partition"), marks.Tip("smallest cache", "size", "size")]
    plot = Plot([marks.dots(rows, series, x, y, tips)], [series])
    return [Figure("smallest-caches", "Smallest cache that meets all goals", "", plot)]


def _rates(info: TraceInfo) -> list[Figure]:
    """Return the requests over time as a figure; none without times."""
    starts = [start for start, *_ in info.rate]
    if len(starts) < 2:
        return []
    period_ns = starts[1] - starts[0]
    seconds = period_ns / 1e9
    whole = workload.whole_periods(starts, period_ns, info.span_ns)
    rows: Rows = [
        {"line": "requests", "time": start / 1e9, "rate": requests / seconds}
        for start, requests, *_ in info.rate[:whole]
    ]
    series = Series("line", ["requests"], "of")
    x = alt.X("time:Q").title("time (s)")
    y = alt.Y("rate:Q").title("requests per second")
    tips = [marks.Tip("time (s)", "time"), marks.Tip("requests per second", "rate")]
    plot = Plot([marks.lines(rows, series, x, y, tips)], [series])
    return [Figure("rate", "Requests over time", "", plot)]


def _facts(info: TraceInfo) -> Table[Any]:
    rate = words.NOTHING if info.rate_per_s is None else words.significant(info.rate_per_s)
    pairs = [
        ("format", info.format),
        ("reads", f"{words.count(info.reads)}, {words.size(info.read_bytes)}"),
        ("writes", f"{words.count(info.writes)}, {words.size(info.write_bytes)}"),
        ("trims", f"{words.count(info.trims)}, {words.size(info.trim_bytes)}"),
        ("blocks", f"{words.count(info.distinct_blocks)} of {words.size(info.block_bytes)}"),
        ("requests per second", rate),
    ]
    return facts("", pairs)


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
    # A cell may be narrower than a figure.
    parts += [figure.still().replace("<svg ", f'<svg style="{FITS}" ', 1) for figure in drawn]
    # The figure's lines take this colour, which a page of reports has by itself.
    return f'<div class="cachewright" style="--line: #9996">{"".join(parts)}</div>'
