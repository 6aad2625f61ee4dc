"""The report of `wa`: which figures it has, and the page around them.

For: write amplification over drive writes, by scheme, how well lifetimes were predicted, lifetimes
per stream. Must never know: how it is measured. Units: drive writes, pages; F/U is flash writes per
write of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import amplification, words
from cachewright.report.charts import COLUMNS, PANEL_HEIGHT, PANEL_WIDTH, WIDE_WIDTH
from cachewright.report.figures import Figure
from cachewright.report.page import figure_section, html_table, marked, whole_page
from cachewright.summary import best_index

if TYPE_CHECKING:
    from cachewright.amplification import Amplification

Rows = list[dict[str, Any]]
# Lines and panels that can still be told apart.
LINES, PANELS = 8, 8


def figures(result: Amplification) -> list[Figure]:
    """Return the figures of the report, in its order."""
    found = []
    for op, cases in amplification.by_op(result.document):
        name, title = f"op-{op * 100:g}", f"over-provisioning {words.percent(op)}"
        if len(cases) > 1:
            found.append(_bars(name, title, cases))
        found.append(_lines(name, title, cases[:LINES]))
        predicting = amplification.predicting(cases)
        if predicting:
            found.append(accuracy(name, title, predicting[:LINES]))
        found.append(_lifetimes(name, title, cases[:PANELS]))
    return found


def _bars(name: str, title: str, cases: Rows) -> Figure:
    rows = [
        {
            "scheme": amplification.label(c),
            "amplification": c["write_amplification"],
            "kind": "bound" if c["bound"] else "scheme",
        }
        for c in cases
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(height={"band": 0.7})
        .encode(
            y=alt.Y("scheme:N").sort(None).title(None).axis(labelLimit=300),
            x=alt.X("amplification:Q").title("flash writes per host write (F/U)"),
            color=alt.Color("kind:N").sort(["scheme", "bound"]).title(None),
            tooltip=["scheme:N", alt.Tooltip("amplification:Q", format=".4f")],
        )
        .properties(width=WIDE_WIDTH - 140, height=alt.Step(22))
    )
    caption = "All of the run; a bound knows the future and is no choice."
    return Figure(f"write-amplification-{name}", f"Write amplification, {title}", caption, chart)


def _lines(name: str, title: str, cases: Rows) -> Figure:
    rows = [
        {
            "scheme": amplification.label(case),
            "drive_writes": end,
            "amplification": flash / user,
        }
        for case in cases
        for end, user, flash in case["series"]
        if user
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=1.4)
        .encode(
            x=alt.X("drive_writes:Q").title("drive writes").scale(nice=False),
            y=alt.Y("amplification:Q").title("F/U in the part"),
            color=alt.Color("scheme:N")
            .sort(None)
            .title("scheme")
            .legend(orient="bottom", columns=3, labelLimit=300),
        )
        .properties(width=WIDE_WIDTH, height=PANEL_HEIGHT + 60)
    )
    caption = f"In parts of a drive write; the best {LINES} schemes at most."
    title = f"Over drive writes, {title}"
    return Figure(f"over-drive-writes-{name}", title, caption, chart)


def accuracy(name: str, title: str, cases: Rows, over: str = "all of the run so far") -> Figure:
    """Return accuracy over drive writes, a line per case; figure 8 of Shiro's paper."""
    rows = [
        {
            "scheme": case.get("title") or amplification.label(case),
            "drive_writes": row["drive_writes"],
            "accuracy": row["cumulative_accuracy"],
        }
        for case in cases
        for row in amplification.accuracy_over_time(case)
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=1.4)
        .encode(
            x=alt.X("drive_writes:Q").title("drive writes").scale(nice=False),
            y=alt.Y("accuracy:Q").title("accuracy").axis(format="%").scale(zero=False),
            color=alt.Color("scheme:N")
            .sort(None)
            .title(None)
            .legend(orient="bottom", columns=3, labelLimit=300),
        )
        .properties(width=WIDE_WIDTH, height=PANEL_HEIGHT + 40)
    )
    caption = (
        f"Share of right predictions of a short or long lifetime in {over}, judged when the page "
        "was written again or trimmed. The axis does not start at zero."
    )
    return Figure(f"accuracy-{name}", f"Accuracy of predictions, {title}", caption, chart)


def _lifetimes(name: str, title: str, cases: Rows) -> Figure:
    """One panel per scheme, a line per stream."""
    schemes = [amplification.label(case) for case in cases]
    rows = []
    for case in cases:
        for stream in case["streams"]:
            pages = stream["user_pages"] + stream["moved_pages"]
            for most, user, moved in stream["lifetimes"]:
                if most is not None:
                    row = {"scheme": amplification.label(case), "stream": str(stream["stream"])}
                    rows.append({**row, "lifetime": most, "share": (user + moved) / pages})
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=1.4, point=alt.OverlayMarkDef(filled=True, size=18))
        .encode(
            x=alt.X("lifetime:Q").scale(type="log", base=2).axis(grid=False).title("pages left"),
            y=alt.Y("share:Q").axis(format="%").title("share of the stream"),
            color=alt.Color("stream:N").sort(None).title("stream"),
            tooltip=["stream:N", "lifetime:Q", alt.Tooltip("share:Q", format=".3f")],
        )
        .properties(width=PANEL_WIDTH, height=PANEL_HEIGHT - 30)
        .facet(facet=alt.Facet("scheme:N").sort(schemes).title(None), columns=COLUMNS)
    )
    caption = (
        "Pages written by the host until a page placed on a stream is overwritten, by powers of "
        f"two; pages that stay are left out. The best {PANELS} schemes at most."
    )
    return Figure(f"lifetimes-{name}", f"Lifetimes by stream, {title}", caption, chart)


def page(result: Amplification, drawn: Sequence[Figure]) -> str:
    """Return the whole page."""
    document = result.document
    groups = amplification.by_op(document)
    best = amplification.best_case(groups[0][1])
    facts = amplification.drive_sentence(document)
    tiles = [
        ("flash writes per host write", words.ratio(best["write_amplification"])),
        ("extra writes, (F-U)/U", words.ratio(best["extra_writes"])),
        ("metadata bytes per page", words.significant(best["metadata_bytes_per_page"])),
    ]
    shown = "".join(f"<div><b>{escape(v)}</b><span>{escape(n)}</span></div>" for n, v in tiles)
    name = f"{amplification.label(best)} at {words.percent(best['op'])} over-provisioning"
    notes = "".join(f"<li>{escape(warning)}</li>" for warning in result.warnings)
    return whole_page(
        f"{result.name}: write amplification",
        [
            f"<h1>{escape(result.name)}: write amplification</h1>",
            f'<p class="lead">{escape(facts[:1].upper() + facts[1:])}</p>',
            f'<ul class="note">{notes}</ul>' if notes else "",
            f'<section class="best"><p>Best: <strong>{escape(name)}</strong></p>'
            f'<div class="tiles">{shown}</div></section>',
            *(_ranking(op, cases) for op, cases in groups),
            *(_predictions(op, cases) for op, cases in groups),
            *(figure_section(figure) for figure in drawn),
            _traces(document["tenants"]),
            f"<footer>Cachewright {escape(str(document['cachewright']))}</footer>",
        ],
    )


def _ranking(op: float, cases: Rows) -> str:
    columns = [
        [escape(amplification.separation(case)) for case in cases],
        [escape(case["reclaim"]) for case in cases],
    ]
    measures: dict[str, tuple[str, Callable[[float], str]]] = {
        "F/U": ("write_amplification", words.ratio),
        "(F-U)/U": ("extra_writes", words.ratio),
        "F/U, last drive write": ("last_write_amplification", words.ratio),
        "moved pages": ("moved_pages", words.count),
        "bytes per page": ("metadata_bytes_per_page", words.significant),
    }
    for key, show in measures.values():
        choices = [None if case["bound"] else case[key] for case in cases]
        best = best_index(choices, highest=False)
        columns.append(marked([show(case[key]) for case in cases], best))
    columns.append([words.percent(amplification.miss_share(case)) for case in cases])
    spreads = [case["erases"] for case in cases]
    columns.append([f"{e['min']:.0f} to {e['max']:.0f}, mean {e['mean']:.1f}" for e in spreads])
    rows = [list(row) for row in zip(*columns, strict=True)]
    headers = ["separation", "reclaim", *measures, "metadata misses", "erases per superblock"]
    title = f"Ranked, over-provisioning {words.percent(op)}"
    return f"<section><h2>{escape(title)}</h2>{html_table(headers, rows, 2)}</section>"


def _predictions(op: float, cases: Rows) -> str:
    """Return table V of Shiro's paper for the schemes that predict; nothing if none does."""
    found = amplification.predicting(cases)
    if not found:
        return ""
    columns = [
        [escape(amplification.separation(case)) for case in found],
        [escape(case["reclaim"]) for case in found],
        [words.count(case["classifier"]["judged"]) for case in found],
    ]
    for key in amplification.MEASURES:
        values = [case["classifier"][key] for case in found]
        best = best_index(values, highest=True) if key != "majority" else set()
        columns.append(marked([words.percent(value) for value in values], best))
    rows = [list(row) for row in zip(*columns, strict=True)]
    headers = ["separation", "reclaim", "judged", "accuracy", "precision", "recall", "F1"]
    headers.append("always the more frequent")
    title = f"Predictions of short lifetimes, over-provisioning {words.percent(op)}"
    return f"<section><h2>{escape(title)}</h2>{html_table(headers, rows, 2)}</section>"


def _traces(tenants: Rows) -> str:
    rows = [
        [
            escape(str(t["name"])),
            escape(str(t["part"])),
            escape(str(t["trace"])),
            *(words.count(t[key]) for key in ("requests", "writes", "trims", "skipped_bad")),
        ]
        for t in tenants
    ]
    headers = ["tenant", "part", "trace", "requests", "writes", "trims", "malformed, skipped"]
    return f"<section><h2>Traces</h2>{html_table(headers, rows, 3)}</section>"
