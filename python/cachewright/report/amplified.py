"""The report of `wa`: which figures it has, and the page around them.

For: write amplification over drive writes, by scheme, how well lifetimes were predicted, lifetimes
per stream. Must never know: how it is measured. Units: drive writes, pages; write amplification is
flash writes per write of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

import altair as alt

from cachewright import amplification, words
from cachewright.amplification import Case
from cachewright.answers import AmplificationAnswer, DriveTenantFacts
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.page import html_table, marked, whole_page
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series, distinct, extent
from cachewright.summary import best_index

if TYPE_CHECKING:
    from cachewright.amplification import AmplificationFrames

# Lines and panels that can still be told apart.
LINES, PANELS = 8, 8
# What schemes are ranked by; the least is best.
RANKED: tuple[tuple[str, Callable[[Case], float], Callable[[float], str]], ...] = (
    ("write amplification", lambda case: case.write_amplification, words.ratio),
    ("extra writes per host write", lambda case: case.extra_writes, words.ratio),
    (
        "write amplification, last drive write",
        lambda case: case.last_write_amplification,
        words.ratio,
    ),
    ("moved pages", lambda case: case.moved_pages, words.count),
    ("metadata bytes per page", lambda case: case.metadata_bytes_per_page, words.significant),
)
# Measures of predictions of which more is better.
BETTER_HIGH = ("accuracy", "precision", "recall", "f1")


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
    tiles = [
        ("flash writes per host write", words.ratio(best.write_amplification)),
        ("extra writes per host write", words.ratio(best.extra_writes)),
        ("metadata bytes per page", words.significant(best.metadata_bytes_per_page)),
    ]
    shown = "".join(f"<div><b>{escape(v)}</b><span>{escape(n)}</span></div>" for n, v in tiles)
    name = f"{amplification.label(best)} at {words.percent(best.op)} over-provisioning"
    notes = "".join(f"<li>{escape(warning)}</li>" for warning in result.warnings)
    return whole_page(
        f"{result.name}: write amplification",
        [
            f"<h1>{escape(result.name)}: write amplification</h1>",
            f'<p class="lead">{escape(facts[:1].upper() + facts[1:])}</p>',
            f'<ul class="note">{notes}</ul>' if notes else "",
            f'<section class="best"><p>Best: <strong>{escape(name)}</strong></p>'
            f'<div class="tiles">{shown}</div></section>',
            *(_ranking(answer, op, cases) for op, cases in groups),
            *(_predictions(op, cases) for op, cases in groups),
            *drawn,
            _traces(answer.tenants),
            f"<footer>Cachewright {escape(answer.cachewright)}</footer>",
        ],
    )


def _ranking(answer: AmplificationAnswer, op: float, cases: Sequence[Case]) -> str:
    columns = [
        [escape(amplification.separation(case)) for case in cases],
        [escape(case.reclaim) for case in cases],
    ]
    for _, of, show in RANKED:
        choices = [None if case.bound else of(case) for case in cases]
        best = best_index(choices, highest=False)
        columns.append(marked([show(of(case)) for case in cases], best))
    columns.append([amplification.dram(answer, case) for case in cases])
    columns.append([words.percent(amplification.miss_share(case)) for case in cases])
    spreads = [case.erases for case in cases]
    columns.append([f"{e.min:.0f} to {e.max:.0f}, mean {e.mean:.1f}" for e in spreads])
    rows = [list(row) for row in zip(*columns, strict=True)]
    names = [name for name, _, _ in RANKED]
    headers = ["separation", "reclaim", *names, "memory per TB", "metadata misses"]
    headers.append("erases per superblock")
    title = f"Ranked, over-provisioning {words.percent(op)}"
    return f"<section><h2>{escape(title)}</h2>{html_table(headers, rows, 2)}</section>"


def _predictions(op: float, cases: Sequence[Case]) -> str:
    """Return table V of Shiro's paper for the schemes that predict; nothing if none does."""
    found = amplification.predicting(cases)
    if not found:
        return ""
    judged = [case.classifier for case in found if case.classifier]
    columns = [
        [escape(amplification.separation(case)) for case in found],
        [escape(case.reclaim) for case in found],
        [words.count(one.judged) for one in judged],
    ]
    for key, of in amplification.MEASURES:
        values = [of(one) for one in judged]
        best = best_index(values, highest=True) if key in BETTER_HIGH else set()
        columns.append(marked([words.percent(value) for value in values], best))
    headers = ["separation", "reclaim", "judged", "accuracy", "precision", "recall", "F1"]
    headers += ["always the more frequent", "called short", "were short"]
    columns.append([amplification.thresholds(one) for one in judged])
    rows = [list(row) for row in zip(*columns, strict=True)]
    headers.append("short is up to: least / middle / most")
    title = f"Predictions of short lifetimes, over-provisioning {words.percent(op)}"
    return f"<section><h2>{escape(title)}</h2>{html_table(headers, rows, 2)}</section>"


def _traces(tenants: Sequence[DriveTenantFacts]) -> str:
    rows = [
        [
            escape(t.name),
            escape(t.part),
            escape(t.trace),
            *map(words.count, (t.requests, t.writes, t.trims, t.skipped_bad)),
        ]
        for t in tenants
    ]
    headers = ["tenant", "part", "trace", "requests", "writes", "trims", "malformed, skipped"]
    return f"<section><h2>Traces</h2>{html_table(headers, rows, 3)}</section>"
