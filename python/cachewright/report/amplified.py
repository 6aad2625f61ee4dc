"""The report of `wa`: which figures it has, and the page around them.

For: write amplification over drive writes, by scheme, how well lifetimes were predicted, lifetimes
per stream. Must never know: how it is measured. Units: drive writes, pages; write amplification is
flash writes per write of the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import altair as alt

from cachewright import words
from cachewright.answers import DriveTenantFacts
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.page import answered, section, whole_page
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series, distinct, extent
from cachewright.tables import Column, Table, amplification
from cachewright.tables.amplification import Case

if TYPE_CHECKING:
    from cachewright.tables.amplification import AmplificationFrames

# Lines and panels that can still be told apart.
LINES, PANELS = 8, 8


def figures(result: AmplificationFrames) -> list[Figure]:
    """Return the figures of the report, in its order."""
    found = []
    for op, cases in amplification.by_op(result.answer):
        name, title = f"op-{op * 100:g}", f"over-provisioning {words.percent(op)}"
        if len(cases) > 1:
            found.append(_bars(name, title, cases))
        found.append(_lines(name, title, cases[:LINES]))
        predicting = amplification.predicting(cases)
        if predicting:
            lines = [(amplification.label(case), case) for case in predicting[:LINES]]
            found.append(accuracy(name, title, lines))
        found.append(_lifetimes(name, title, cases[:PANELS]))
    return found


def _bars(name: str, title: str, cases: Sequence[Case]) -> Figure:
    rows: Rows = [
        {
            "scheme": amplification.label(c),
            "amplification": c.write_amplification,
            "kind": "bound" if c.bound else "scheme",
        }
        for c in cases
    ]
    series = Series("kind", ["scheme", "bound"], "", "box")
    x = alt.X("amplification:Q").title("flash writes per host write")
    y = marks.row_names("scheme", distinct(rows, "scheme"))
    tips = [Tip("scheme", "scheme"), Tip("write amplification", "amplification", "ratio")]
    chart = Plot([marks.bars(rows, series, x, y, tips)], [series])
    caption = "All of the run; a bound knows the future and is no choice."
    return Figure(f"write-amplification-{name}", f"Write amplification, {title}", caption, chart)


def _lines(name: str, title: str, cases: Sequence[Case]) -> Figure:
    rows: Rows = [
        {
            "scheme": amplification.label(case),
            "drive_writes": end,
            "amplification": flash / user,
        }
        for case in cases
        for end, user, flash in case.series
        if user
    ]
    series = Series("scheme", distinct(rows, "scheme"), "scheme")
    y = alt.Y("amplification:Q").title("write amplification in the part")
    tips = [Tip("scheme", "scheme"), Tip("drive writes", "drive_writes", "number")]
    tips.append(Tip("write amplification", "amplification", "ratio"))
    panel = marks.lines(rows, series, _drive_writes(), y, tips, height=PANEL_HEIGHT + 60)
    chart = Plot([panel], [series])
    caption = f"In parts of a drive write; the best {LINES} schemes at most."
    title = f"Over drive writes, {title}"
    return Figure(f"over-drive-writes-{name}", title, caption, chart)


def accuracy(
    name: str,
    title: str,
    cases: Sequence[tuple[str, Case]],
    over: str = "all of the run so far",
) -> Figure:
    """Return accuracy over drive writes, a line per title and case; figure 8 of Shiro's paper."""
    rows: Rows = [
        {
            "scheme": scheme,
            "drive_writes": part.drive_writes,
            "accuracy": part.cumulative_accuracy,
        }
        for scheme, case in cases
        for part in amplification.accuracy_over_time(case)
    ]
    series = Series("scheme", distinct(rows, "scheme"), "scheme")
    y = alt.Y("accuracy:Q").title("accuracy").axis(format="%").scale(zero=False)
    tips = [Tip("scheme", "scheme"), Tip("drive writes", "drive_writes", "number")]
    tips.append(Tip("accuracy", "accuracy", "percent"))
    panel = marks.lines(rows, series, _drive_writes(), y, tips, height=PANEL_HEIGHT + 40)
    chart = Plot([panel], [series])
    caption = (
        f"Share of right predictions of a short or long lifetime in {over}, judged when the page "
        "was written again or trimmed. The axis does not start at zero."
    )
    return Figure(f"accuracy-{name}", f"Accuracy of predictions, {title}", caption, chart)


def _drive_writes() -> alt.X:
    return alt.X("drive_writes:Q").title("drive writes").scale(nice=False)


def _lifetimes(name: str, title: str, cases: Sequence[Case]) -> Figure:
    """One panel per scheme, a line per stream."""
    schemes = [amplification.label(case) for case in cases]
    rows: Rows = []
    for case in cases:
        for stream in case.streams:
            pages = stream.user_pages + stream.moved_pages
            for most, user, moved in stream.lifetimes or ():
                if most is not None:
                    row = {"scheme": amplification.label(case), "stream": str(stream.stream)}
                    rows.append({**row, "lifetime": most, "share": (user + moved) / pages})
    streams = sorted({row["stream"] for row in rows}, key=int)
    series = Series("stream", streams, "stream")
    lifetimes = extent([row["lifetime"] for row in rows] or [1, 2])
    scale = alt.Scale(type="log", base=2, domain=lifetimes, nice=False)
    x = alt.X("lifetime:Q", scale=scale).title("pages left").axis(grid=False)
    shares = extent([0.0, *(row["share"] for row in rows)])
    y = alt.Y("share:Q", scale=alt.Scale(domain=shares, nice=True)).title("share of the stream")
    tips = [
        Tip("scheme", "scheme"),
        Tip("stream", "stream"),
        Tip("pages left", "lifetime", "count"),
    ]
    tips.append(Tip("share of the stream", "share", "percent"))
    panels = [
        marks.lines(
            [row for row in rows if row["scheme"] == scheme], series, x, y.axis(format="%"), tips,
            title=scheme if len(schemes) > 1 else "", points=True,
        )
        for scheme in schemes
    ]  # fmt: skip
    chart = Plot(panels, [series], columns=2 if len(panels) > 1 else 1)
    caption = (
        "Pages written by the host until a page placed on a stream is overwritten, by powers of "
        f"two; pages that stay are left out. The best {PANELS} schemes at most."
    )
    return Figure(f"lifetimes-{name}", f"Lifetimes by stream, {title}", caption, chart)


def page(result: AmplificationFrames, drawn: Sequence[Figure]) -> str:
    """Return the whole page."""
    answer = result.answer
    groups = amplification.by_op(answer)
    best = amplification.best_case(groups[0][1])
    facts = amplification.drive_sentence(answer)
    predictions = [amplification.predictions(op, cases) for op, cases in groups]
    tiles = [
        ("flash pages per host page", words.ratio(best.write_amplification)),
        ("extra pages per host page", words.ratio(best.extra_writes)),
        ("metadata bytes per page", words.significant(best.metadata_bytes_per_page)),
    ]
    shown = "".join(f"<div><b>{escape(v)}</b><span>{escape(n)}</span></div>" for n, v in tiles)
    notes = "".join(f"<li>{escape(warning)}</li>" for warning in result.warnings)
    return whole_page(
        f"{result.name}: write amplification",
        [
            f"<h1>{escape(result.name)}: write amplification</h1>",
            f'<p class="lead">{escape(facts[:1].upper() + facts[1:])}</p>',
            f'<ul class="note">{notes}</ul>' if notes else "",
            answered(amplification.answered(answer), shown),
            *(section(amplification.ranked(answer, op, cases)) for op, cases in groups),
            *(section(found) for found in predictions if found),
            *drawn,
            _traces(answer.tenants),
            f"<footer>Cachewright {escape(answer.cachewright)}</footer>",
        ],
    )


def _traces(tenants: Sequence[DriveTenantFacts]) -> str:
    table: Table[DriveTenantFacts] = Table(
        "traces",
        [
            Column("tenant", lambda tenant: tenant.name),
            Column("part", lambda tenant: tenant.part),
            Column("trace", lambda tenant: tenant.trace),
            Column("requests", lambda tenant: tenant.requests, words.count),
            Column("writes", lambda tenant: tenant.writes, words.count),
            Column("trims", lambda tenant: tenant.trims, words.count),
            Column("malformed, skipped", lambda tenant: tenant.skipped_bad, words.count),
        ],
        tenants,
    )
    return section(table)
