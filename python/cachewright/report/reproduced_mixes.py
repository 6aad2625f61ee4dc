"""What a reproduced paper on mixes of applications shows: tables, sentences, charts.

For: `cachewright.report.reproduced`. Must never know: how numbers were measured, HTML. Units: hit
ratios are of block accesses over the whole run; changes are relative; run times are simulated.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from cachewright import words
from cachewright.report import charts, marks
from cachewright.report.figure import Figure
from cachewright.report.figures import series_rows
from cachewright.report.marks import Tip
from cachewright.report.parts import Table, plain
from cachewright.report.plots import PANEL_HEIGHT, Plot, Series, distinct, extent
from cachewright.reproduce.mixes import Case, Division, Mixes, MixSpec
from cachewright.summary import best_index

# Partitions by title that others are set beside.
BASES = ("shared", "equal")
# Partitions drawn over time.
DRAWN = ("shared", "equal", "soft-qos", "soft-qos-x")
NS_PER_S = 1e9
Cases = list[tuple[Division, Case]]


def notes(what: Mixes) -> list[str]:
    """Return what to know before the numbers."""
    found = ["Goals are judged on the hit ratio of the whole run. A goal that is met is marked ✓."]
    if what.divide > 1:
        found.append(f"Sizes of caches are divided by {words.significant(what.divide)}.")
    return found


def shared(what: Mixes) -> list[Table]:
    """Return the tables that belong to all figures: what each mix needs, who meets its goals."""
    rows = []
    for figure in what.figures:
        for size in figure.sizes if figure.shows == "mix" else ():
            cases = what.cases(figure, size)
            rows.append(
                [
                    figure.title,
                    words.size(_capacity(cases)),
                    _needed(what, figure),
                    *(_met(cases, title) for title in _titles(what)),
                ]
            )
    if not rows:
        return []
    headers = ["mix", "cache", "goals need", *_titles(what)]
    return [plain("", "Goals met, of those there are", headers, rows, 1)]


def shown(what: Mixes, figure: MixSpec) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    if figure.shows == "alone":
        return [_alone(what, figure), _alone_chart(what, figure)]
    if figure.shows == "alone-over-time":
        return [_alone_over_time(what, figure)]
    found: list[Table | Figure] = []
    for size in figure.sizes:
        found += [_table(what, figure, size), _dots(what, figure, size)]
    if figure.plan and not what.setup.quick:
        found.append(_planned(what, figure))
    if figure.over_time:
        found += _over_time(what, figure)
    return found


def sentences(what: Mixes, figure: MixSpec) -> list[str]:
    """Return how far the partitions with goals are from those without, in a sentence each."""
    if figure.shows != "mix":
        return []
    found = []
    for size in figure.sizes:
        cases = what.cases(figure, size)
        named = {division.title: case for division, case in cases}
        for title, case in named.items():
            if not title.startswith("soft-qos"):
                continue
            parts = [_beside(case, named[base], base) for base in BASES if base in named]
            place = f"{figure.title}, {words.size(_capacity(cases))}, {title}"
            found.append(f"{place}: {'; '.join(parts)}")
    return found


def _titles(what: Mixes) -> list[str]:
    titles = [one.title for figure in what.figures for one in figure.divisions]
    return list(dict.fromkeys(titles))


def _capacity(cases: Cases) -> int:
    case = cases[0][1]
    return int(case["capacity_blocks"]) * int(case["block_bytes"])


def _needed(what: Mixes, figure: MixSpec) -> str:
    plan = what.found[figure.name].plan
    if plan is None:
        return words.NOTHING
    blocks = plan["smallest_blocks"]
    return "no size" if blocks is None else words.size(blocks * plan["block_bytes"])


def _met(cases: Cases, title: str) -> str:
    for division, case in cases:
        if division.title == title and case["total"].get("goals"):
            return f"{case['total']['goals_met']} of {case['total']['goals']}"
    return words.NOTHING


def _beside(case: Case, base: Case, name: str) -> str:
    """Return the change of the overall hit ratio, and of the tenant that gains most."""
    overall = _change(case["total"]["hit_ratio"], base["total"]["hit_ratio"])
    pairs = list(zip(case["tenants"], base["tenants"], strict=True))
    gains = [own["hit_ratio"] / max(other["hit_ratio"], 1e-9) for own, other in pairs]
    most = gains.index(max(gains))
    tenant, other = pairs[most]
    gain = _change(tenant["hit_ratio"], other["hit_ratio"])
    runs = _change(case["total"]["run_time_ns"], base["total"]["run_time_ns"])
    return f"hit ratio {overall} over {name} ({tenant['name']} {gain}), run time {runs}"


def _change(value: float, base: float) -> str:
    return words.NOTHING if base == 0 else f"{100 * (value / base - 1):+.1f}%"


def _table(what: Mixes, figure: MixSpec, size: float) -> Table:
    """Return a row per partition: hit ratios, goals, run times, movement of quotas."""
    cases = what.cases(figure, size)
    tenants = cases[0][1]["tenants"]
    overall = [case["total"]["hit_ratio"] for _, case in cases]
    columns = [[words.ratio(value) for value in overall]]
    best = [best_index(overall, highest=True)]
    headers = ["partition", "overall"]
    for at, tenant in enumerate(tenants):
        own = [case["tenants"][at] for _, case in cases]
        goal = tenant.get("goal_hit_ratio")
        headers.append(f"{tenant['name']}, goal {goal:g}" if goal is not None else tenant["name"])
        columns.append([words.ratio(one["hit_ratio"]) + _mark(one) for one in own])
        best.append(best_index([one["hit_ratio"] for one in own], highest=True))
    for at, tenant in enumerate(tenants):
        times = [case["tenants"][at]["run_time_ns"] for _, case in cases]
        headers.append(f"{tenant['name']} runs")
        columns.append([f"{time / NS_PER_S:.0f}s" for time in times])
        best.append(best_index(times, highest=False))
    headers += ["moved each time", "turns"]
    columns.append([_share(case["total"].get("moved_mean")) for _, case in cases])
    columns.append([words.count(case["total"].get("turns")) for _, case in cases])
    rows = [[division.title] for division, _ in cases]
    for column in columns:
        for row, text in zip(rows, column, strict=True):
            row.append(text)
    best = [set(), *best, set(), set()]
    title = f"{words.size(_capacity(cases))}; the goals need {_needed(what, figure)}"
    return Table(_title(figure), title, headers, rows, best)


def _mark(tenant: dict[str, Any]) -> str:
    return " ✓" if tenant.get("goal_met") else ""


def _share(value: float | None) -> str:
    return words.NOTHING if value is None else words.percent(value)


def _title(figure: MixSpec) -> str:
    return f"{figure.title} ({figure.source})"


def _planned(what: Mixes, figure: MixSpec) -> Table:
    """Return the smallest cache that meets all goals, by partition."""
    plan = what.found[figure.name].plan or {"partitions": [], "tenants": []}
    needs = [tenant["alone_blocks"] for tenant in plan["tenants"]]
    reached = all(needs)
    smallest = sum(needs) if reached else None
    sized = [("each tenant alone, added up", smallest)]
    # A quota that stays is a cache of the tenant's own.
    sized.append(("equal", max(needs) * len(needs) if reached else None))
    known = zip(figure.plan, plan["partitions"], strict=False)
    sized += [(title, one["smallest_blocks"]) for title, one in known]
    block = int(plan.get("block_bytes", 1))
    rows = [
        [
            title,
            "no size" if blocks is None else words.size(blocks * block),
            f"{words.significant(blocks / smallest)} x" if blocks and smallest else words.NOTHING,
        ]
        for title, blocks in sized
    ]
    headers = ["partition", "smallest cache", "of the goals' need"]
    return plain(_title(figure), "The smallest cache that meets all goals", headers, rows, 1)


def _dots(what: Mixes, figure: MixSpec, size: float) -> Figure:
    cases = what.cases(figure, size)
    rows = [
        {"case": division.title, "tenant": line["name"], "hit_ratio": line["hit_ratio"]}
        for division, case in cases
        for line in [*case["tenants"], {"name": "all", **case["total"]}]
    ]
    capacity = words.size(_capacity(cases))
    title = f"{figure.title}, {capacity}"
    caption = "Hit ratio of each tenant and of all together under each partition."
    return Figure(f"{figure.name}-{capacity}", title, caption, charts.by_tenant(rows))


def _over_time(what: Mixes, figure: MixSpec) -> list[Figure]:
    result = what.found[figure.name].result
    if result is None:
        return []
    chosen = what.cases(figure, figure.sizes[-1])
    labels = {case["case"]: one.title for one, case in chosen if one.title in DRAWN}
    rows = series_rows(result, labels)
    return [
        Figure(
            f"{figure.name}-hits-over-time",
            f"{figure.title}: hit ratio over time",
            "Per tenant, in windows of equal numbers of requests; a better cache ends sooner.",
            charts.hits_over_time([row for row in rows if row["hit_ratio"] is not None]),
        ),
        Figure(
            f"{figure.name}-occupancy",
            f"{figure.title}: cache held over time",
            "At the end of each window; the dashed line is the quota.",
            charts.occupancy(rows),
        ),
    ]


def _alone(what: Mixes, figure: MixSpec) -> Table:
    """Return the hit ratio of each application alone by size."""
    curves = what.found[figure.name].curves
    document = {"latency": []} if curves is None else curves.document
    block = int(document.get("block_bytes", 1))
    lines = document["latency"]
    sizes = [point["size_blocks"] for point in lines[0]["points"]]
    headers = ["cache", *(line["tenant"] for line in lines)]
    rows = [
        [words.size(size * block) if size else "none"]
        + [words.ratio(line["points"][at]["hit_ratio"]) for line in lines]
        for at, size in enumerate(sizes)
    ]
    return plain(_title(figure), "hit ratio of each application alone", headers, rows, 1)


def _alone_chart(what: Mixes, figure: MixSpec) -> Figure:
    curves = what.found[figure.name].curves
    document = {"latency": []} if curves is None else curves.document
    block = int(document.get("block_bytes", 1))
    rows = [
        {
            "application": line["tenant"],
            "size_bytes": point["size_blocks"] * block,
            "hit_ratio": point["hit_ratio"],
        }
        for line in document["latency"]
        for point in line["points"]
        if point["size_blocks"]
    ]
    series = Series("application", distinct(rows, "application"), "application")
    sizes = sorted({row["size_bytes"] for row in rows})
    axis = marks.size_axis("cache", sizes[:: max(1, -(-len(sizes) // 9))])
    scale = alt.Scale(type="log", base=2, nice=False, domain=extent(sizes))
    tips = [Tip("application", "application"), Tip("cache", "size_bytes", "size")]
    x = alt.X("size_bytes:Q", axis=axis, scale=scale)
    y = alt.Y("hit_ratio:Q").scale(domain=[0, 1]).title("hit ratio")
    panel = marks.lines(
        rows, series, x, y, [*tips, charts.HIT_RATIO], height=PANEL_HEIGHT + 60, points=True
    )
    chart = Plot([panel], [series])
    caption = "Each application alone in the cache, read-ahead included."
    return Figure(figure.name, figure.title, caption, chart)


def _alone_over_time(what: Mixes, figure: MixSpec) -> Figure:
    rows: list[dict[str, Any]] = []
    for name, result in what.found[figure.name].alone.items():
        rows += series_rows(result, {result.document["cases"][0]["case"]: name})
    chart = charts.hits_over_time([row for row in rows if row["hit_ratio"] is not None])
    caption = f"Each alone in {words.size(_alone_size(what, figure))}, by windows of requests."
    return Figure(figure.name, figure.title, caption, chart)


def _alone_size(what: Mixes, figure: MixSpec) -> float:
    return figure.sizes[0] * (1 << 20) / what.divide
