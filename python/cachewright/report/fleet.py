"""The page of a study of a fleet: distributions over volumes, and shares of volumes won.

For: `report.html` of `fleet study`. Must never know: how a volume is measured. A curve of a
distribution shows for each share of volumes the value that they stay below.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import altair as alt

from cachewright import words
from cachewright.fleet import study
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.page import answered, section, whole_page
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series, distinct
from cachewright.tables import Column, Table, of_texts, studied

SHARE = "share of volumes"


def write(found: study.Study, path: Path) -> Path:
    """Write the page and return its path. Errors: `OSError`."""
    from cachewright import targets

    targets.write_whole(path, page(found.document))
    return path


def page(document: dict[str, Any]) -> str:
    """Return the whole page."""
    parts: list[str | Figure] = [
        f"<h1>{escape(document['name'])}</h1>",
        f'<p class="lead">{escape(lead(document))}</p>',
        answered(studied.conclusion(document)),
        *figures(document),
        *(section(table) for table in (classes(document), wins(document), distributions(document))),
        _failures(document),
        f"<footer>Cachewright {escape(document['cachewright'])}</footer>",
    ]
    return whole_page(f"{document['name']}: study of a fleet", parts)


def lead(document: dict[str, Any]) -> str:
    """Return what was studied as one sentence."""
    failed = len(document["failed"])
    more = f"; {words.counted(failed, 'volume')} failed" if failed else ""
    return (
        f"{words.counted(document['volumes'], 'volume')}, "
        f"{words.counted(document['requests'], 'request')}, working sets of "
        f"{words.size(document['working_set_bytes'])} together{more}."
    )


def classes(document: dict[str, Any]) -> Table[dict[str, Any]]:
    """Return how many volumes are of each class."""
    whole = document["volumes"]
    return Table(
        "classes of volumes",
        [
            Column("class", lambda one: one["volume_class"]),
            Column("volumes", lambda one: one["volumes"], words.count),
            Column(SHARE, lambda one: one["volumes"] / whole, words.percent),
            Column("requests", lambda one: one["requests"], words.count),
        ],
        document["classes"],
    )


def wins(document: dict[str, Any]) -> Table[dict[str, Any]]:
    """Return on which share of volumes each policy is best."""
    close = words.significant(document["plan"]["close"])
    return Table(
        "which policy wins",
        [
            Column("size", lambda one: one["size"]),
            Column("class", lambda one: one["volume_class"]),
            Column("policy", lambda one: one["policy"]),
            Column("volumes", lambda one: one["volumes"], words.count),
            Column("best on", lambda one: one["win_share"], words.percent),
            Column("equal best on", lambda one: one["tie_share"], words.percent),
            Column(f"within {close} of the best on", lambda one: one["close_share"], words.percent),
            Column("mean loss", lambda one: one["mean_loss"], words.ratio),
            Column("exact on", lambda one: one["exact_share"], words.percent),
        ],
        document["wins"],
    )


def distributions(document: dict[str, Any]) -> Table[dict[str, Any]]:
    """Return how each measure is spread over the volumes."""
    quantiles = [
        Column(f"{100 * share:g} %", _quantile(at), words.significant)
        for at, share in enumerate(study.QUANTILES)
    ]
    return Table(
        "distributions over volumes",
        [
            Column("measure", lambda one: one["measure"]),
            Column("of", _of),
            Column("volumes", lambda one: one["count"], words.count),
            Column("mean", lambda one: one["mean"], words.significant),
            *quantiles,
        ],
        document["distributions"],
    )


def _of(one: dict[str, Any]) -> str:
    return " ".join(str(one[key]) for key in ("size", "policy", "separation") if key in one)


def _quantile(place: int) -> Callable[[dict[str, Any]], float | None]:
    def of(one: dict[str, Any]) -> float | None:
        return one["quantiles"][place][1] if place < len(one["quantiles"]) else None

    return of


def figures(document: dict[str, Any]) -> list[Figure]:
    """Return the figures that the document has numbers for."""
    found = []
    hits = _quantile_rows(document, "hit_ratio", "policy")
    if hits:
        caption = "The hit ratio that each share of volumes stays below, by cache size."
        plot = _spread_plot(hits, "policy", "hit ratio", document["plan"]["sizes"])
        found.append(Figure("hit-ratios", "Hit ratios over the volumes", caption, plot))
    if document["wins"]:
        caption = "Share of volumes on which a policy has the highest hit ratio."
        found.append(Figure("wins", "Which policy wins", caption, _wins_plot(document)))
    drives = _quantile_rows(document, "write_amplification", "separation")
    if drives:
        caption = "The write amplification that each share of volumes stays below."
        plot = _spread_plot(drives, "separation", "write amplification", [""])
        title = "Write amplification over the volumes"
        found.append(Figure("write-amplification", title, caption, plot))
    return found


def _quantile_rows(document: dict[str, Any], measure: str, name: str) -> Rows:
    return [
        {"size": one.get("size", ""), name: one[name], "share": share, "value": value}
        for one in document["distributions"]
        if one["measure"] == measure
        for share, value in one["quantiles"]
    ]


def _spread_plot(rows: Rows, name: str, title: str, sizes: list[str]) -> Plot:
    series = Series(name, distinct(rows, name), name, shaped=True)
    x = alt.X("share:Q").scale(domain=[0, 1]).title(SHARE)
    y = alt.Y("value:Q").scale(zero=False, nice=True).title(title)
    tips = [
        marks.Tip(name, name),
        marks.Tip(SHARE, "share", "ratio"),
        marks.Tip(title, "value", "ratio"),
    ]
    panels = [
        marks.lines(
            [row for row in rows if row["size"] == size], series, x, y, tips, title=size,
            height=PANEL_HEIGHT + 40, points=True,
        )
        for size in sizes
    ]  # fmt: skip
    return Plot(panels, [series], columns=2 if len(panels) > 1 else 1)


def _wins_plot(document: dict[str, Any]) -> Plot:
    rows: Rows = [one for one in document["wins"] if one["volume_class"] == study.ALL]
    series = Series("policy", distinct(rows, "policy"), "policy", "point", shaped=True)
    x = alt.X("win_share:Q").scale(domain=[0, 1]).title(f"best on this {SHARE}")
    y = marks.row_names("size", document["plan"]["sizes"], grid=True)
    tips = [
        marks.Tip("policy", "policy"),
        marks.Tip("cache size", "size"),
        marks.Tip("best on", "win_share", "ratio"),
        marks.Tip("mean loss", "mean_loss", "ratio"),
    ]
    return Plot([marks.dots(rows, series, x, y, tips)], [series])


def _failures(document: dict[str, Any]) -> str:
    rows = [[one["name"], one["error"]] for one in (*document["failed"], *document["unread"])]
    return section(of_texts("without an answer", ["name", "error"], rows, 2)) if rows else ""
