"""The page of a study of a fleet: distributions over volumes, and shares of volumes won.

For: `report.html` of `fleet study`. Must never know: how a volume is measured. A curve of a
distribution shows for each share of volumes the value that they stay below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import altair as alt

from cachewright import documents, words
from cachewright.answers import StudyAnswer
from cachewright.fleet import study
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.page import answered, heading, section, whole_page
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series, distinct
from cachewright.tables import Column, Table, html, of_texts, studied

SHARE = "share of volumes"
TIED = "several alike"


Volumes = Sequence[Mapping[str, Any]]


def write(found: study.Study, path: Path) -> Path:
    """Write the page and return its path. Errors: `OSError`."""
    from cachewright import targets

    targets.write_whole(path, drawn(found.folder)[0])
    return path


def drawn(folder: Path) -> tuple[str, list[Figure]]:
    """Return the page of a study's folder and its figures.

    Errors: `SpecError` for a damaged one.
    """
    import polars as pl

    expected = "a result of `fleet study`"
    document: Any = documents.dump(documents.read(StudyAnswer, folder / study.STUDY, expected))
    with documents.whole(folder / study.VOLUMES):
        volumes = pl.read_parquet(folder / study.VOLUMES).to_dicts()
        return page(document, volumes), figures(document)


def page(document: dict[str, Any], volumes: Volumes) -> str:
    """Return the whole page; `volumes` are its rows of volumes."""
    won = wins(document)
    parts: list[str | Figure] = [
        f"<h1>{escape(document['name'])}</h1>",
        f'<p class="lead">{escape(lead(document))}</p>',
        answered(studied.conclusion(document)),
        *figures(document),
        section(by_volume(document, volumes)) if volumes else "",
        section(classes(document)),
        *(_folded(table) for table in (won, distributions(document))),
        _failures(document),
        f"<footer>Cachewright {escape(document['cachewright'])}</footer>",
    ]
    return whole_page(f"{document['name']}: study of a fleet", parts)


def _folded(table: Table[Any]) -> str:
    """Return a long table that a reader opens."""
    rows = words.counted(len(table.rows), "row")
    folded = f"<details><summary>{rows}</summary>{html(table)}</details>"
    return f"<section><h2>{escape(heading(table))}</h2>{folded}</section>"


def _wins_of_all(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in document["wins"] if one["volume_class"] == study.ALL]


def by_volume(document: dict[str, Any], volumes: Volumes) -> Table[Mapping[str, Any]]:
    """Return a row per volume: what it is like, and which policy is best at each size."""
    columns: list[Column[Mapping[str, Any]]] = [
        Column("volume", lambda one: one["volume"]),
        Column("class", lambda one: one["class"]),
        Column("requests", lambda one: one["requests"], words.count),
        Column("reads", lambda one: one["read_share"], words.percent),
        Column("working set", lambda one: one["working_set_bytes"], words.size),
    ]
    columns += [
        Column(f"best at {size}", _named(f"best at {size}")) for size in document["plan"]["sizes"]
    ]
    drive = document["plan"]["drive"]
    columns += [
        Column(f"amplification, {name}", _named(f"amplification {name}"), words.ratio, "low")
        for name in (drive["separations"] if drive else ())
    ]
    return Table("volumes", columns, volumes, by_row=True)


def _named(key: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda one: one.get(key)


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
    if document["wins"]:
        caption = "Share of volumes on which a policy alone has the highest hit ratio."
        found.append(Figure("wins", "Which policy wins", caption, _wins_plot(document)))
    hits = _quantile_rows(document, "hit_ratio", "policy")
    if hits:
        caption = "The share of volumes whose hit ratio is at most a value, by cache size."
        plot = spread_plot(hits, "policy", "hit ratio", document["plan"]["sizes"])
        found.append(Figure("hit-ratios", "Hit ratios over the volumes", caption, plot))
    drives = _quantile_rows(document, "write_amplification", "separation")
    if drives:
        caption = "The share of volumes whose write amplification is at most a value."
        plot = spread_plot(drives, "separation", "write amplification", [""])
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


def spread_plot(rows: Rows, name: str, title: str, sizes: list[str]) -> Plot:
    """Return the shares of volumes up to each value, a line per `name`, a panel per size."""
    series = Series(name, distinct(rows, name), name, shaped=True)
    x = alt.X("value:Q").scale(zero=False, nice=True).title(title)
    y = alt.Y("share:Q").scale(domain=[0, 1]).title(SHARE).axis(format="%")
    tips = [
        marks.Tip(name, name),
        marks.Tip(SHARE, "share", "percent"),
        marks.Tip(f"{title} of at most", "value", "ratio"),
    ]
    # Lines go up with the share: by the value alone volumes of one value would be out of order.
    upwards = alt.Order("share:Q")
    panels = [
        marks.lines(
            [row for row in rows if row["size"] == size], series, x, y, tips, title=size,
            height=PANEL_HEIGHT + 40, points=True, encodings=[upwards],
        )
        for size in sizes
    ]  # fmt: skip
    return Plot(panels, [series], columns=2 if len(panels) > 1 else 1)


def _wins_plot(document: dict[str, Any]) -> Plot:
    """Return a bar per size, cut into the shares of volumes that each policy wins."""
    rows: Rows = [
        {**one, "order": at, "share": one["win_share"]}
        for at, one in enumerate(_wins_of_all(document))
    ]
    # What no policy wins alone, several have the same highest hit ratio of.
    for size in distinct(rows, "size"):
        left = 1.0 - sum(row["share"] for row in rows if row["size"] == size)
        if left > 1e-9:
            tied = {"size": size, "policy": TIED, "order": len(rows), "share": left}
            rows.append({**tied, "mean_loss": 0.0})
    names = distinct(rows, "policy")
    series = Series("policy", names, "policy", "box", grey=[TIED] if TIED in names else [])
    x = alt.X("share:Q").scale(domain=[0, 1]).title(SHARE).axis(format="%")
    y = marks.row_names("size", document["plan"]["sizes"])
    tips = [
        marks.Tip("policy", "policy"),
        marks.Tip("cache size", "size"),
        marks.Tip("mean loss", "mean_loss", "ratio"),
        marks.Tip("best on", "share", "percent"),
    ]
    bars = marks.bars(rows, series, x, y, tips, encodings=[alt.Order("order:Q")])
    return Plot([bars], [series])


def _failures(document: dict[str, Any]) -> str:
    rows = [[one["name"], one["error"]] for one in (*document["failed"], *document["unread"])]
    return section(of_texts("without an answer", ["name", "error"], rows, 2)) if rows else ""
