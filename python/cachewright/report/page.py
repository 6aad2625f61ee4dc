"""The report as one HTML page: conclusion, tables, figures, workload, settings.

For: everything between figures and browser. Must never know: how figures are drawn. No script,
font or image is from elsewhere; light and dark follow the reader's system.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from cachewright import drives, summary, timing, verdict, words
from cachewright.answers import Case, CaseTenant, RunAnswer, Timing
from cachewright.report.live import POLICY, WITHOUT_SCRIPTS, scripts
from cachewright.report.style import STYLE

if TYPE_CHECKING:
    from cachewright.report.figure import Figure
    from cachewright.results import RunFrames

TENANT_COLUMNS = 8


def page(result: RunFrames, figures: Sequence[Figure]) -> str:
    """Return the whole page."""
    answer = result.answer
    several = len(answer.cases) > 1
    parts: list[str | Figure] = [
        f"<h1>{escape(result.name)}</h1>",
        f'<p class="lead">{escape(_workload_sentence(answer))}</p>',
        _headline(answer),
        '<div class="row">',
        *([_pivot(p) for p in summary.pivots(answer) if len(p.partitions) > 1]),
        "</div>",
        *figures,
        *([_ranking(answer, ranking) for ranking in summary.rankings(answer)]),
        _best_tenants(answer, several),
        _responses(answer),
        _workload(answer),
        _settings(answer),
        f"<footer>Cachewright {escape(answer.cachewright)}</footer>",
    ]
    return whole_page(f"{result.name}: cache report", parts)


def whole_page(title: str, parts: Sequence[str | Figure]) -> str:
    """Return a page of these parts, the empty ones left out; with figures, what draws them too."""
    shown = [part if isinstance(part, str) else part.section() for part in parts]
    live = any(not isinstance(part, str) for part in parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n{WITHOUT_SCRIPTS}</head>\n"
        "<body>\n<main>\n" + "\n".join(part for part in shown if part) + "\n</main>\n"
        f"{scripts() if live else ''}</body>\n</html>\n"
    )


def _workload_sentence(answer: RunAnswer) -> str:
    whole = answer.workload
    return (
        f"{words.counted(len(answer.tenants), 'tenant')}, "
        f"{words.counted(whole.requests, 'request')}, "
        f"{words.count(whole.block_accesses)} block accesses, "
        f"working set {words.size(whole.working_set_bytes)}, "
        f"{words.duration(whole.span_ns)} of trace"
        f"{_warmup(answer)}"
    )


def _warmup(answer: RunAnswer) -> str:
    """Return from when on results count, if that is later than the start."""
    warmup = answer.spec.get("replay", {}).get("warmup", "0s")
    return "" if warmup == "0s" else f"; what arrives in the first {warmup} warms the cache only"


def _headline(answer: RunAnswer) -> str:
    best = summary.best_case(answer)
    tiles = [
        ("hit ratio", words.percent(best.total.hit_ratio)),
        ("read hit ratio", words.percent(best.total.read_hit_ratio)),
        ("cache writes", words.count(best.total.cache_writes)),
        ("write-backs", words.count(best.total.writebacks)),
    ]
    if best.flash:
        tiles.append(("F/U on flash", words.ratio(best.flash.write_amplification)))
        tiles.append(("flash writes", words.count(best.flash.flash_pages)))
    if best.total.mean_response_ns is not None:
        tiles.append(("mean response", words.duration(best.total.mean_response_ns)))
    drawn = "".join(
        f"<div><b>{escape(value)}</b><span>{name}</span></div>" for name, value in tiles
    )
    if len(answer.cases) > 1:
        what = f"<p>{words.count(len(answer.cases))} combinations</p>"
        for line in verdict.sentences(answer):
            head, colon, rest = line.partition(": ")
            what += f"<p><strong>{escape(head)}</strong>{colon}{escape(rest)}</p>"
        drawn = "" if verdict.choice(answer) is None else drawn
    else:
        label = escape(summary.label(best, answer.varied or list(best.settings)))
        what = f"<p>One case: <strong>{label}</strong></p>"
    tiles_drawn = f'<div class="tiles">{drawn}</div>' if drawn else ""
    return f'<section class="best">{what}{tiles_drawn}</section>'


def html_table(headers: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int) -> str:
    """Return a table of cells that are HTML already; the first columns are text."""

    def cell(tag: str, index: int, content: str) -> str:
        kind = "" if index < text_columns else ' class="n"'
        return f"<{tag}{kind}>{content}</{tag}>"

    head = "".join(cell("th", index, escape(name)) for index, name in enumerate(headers))
    body = "".join(
        "<tr>" + "".join(cell("td", index, item) for index, item in enumerate(row)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def marked(shown: Sequence[str], best: set[int]) -> list[str]:
    """Return the cells of a column as HTML with the best of them marked."""
    return [
        f'<b class="top">{escape(text)}</b>' if index in best else escape(text)
        for index, text in enumerate(shown)
    ]


def _pivot(pivot: summary.Pivot) -> str:
    columns = [
        marked([words.ratio(line[index]) for line in pivot.ratios], pivot.best[index])
        for index in range(len(pivot.partitions))
    ]
    names = [escape(policy) for policy in pivot.policies]
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    title = f"Hit ratio, {pivot.title}"
    return (
        f"<section><h2>{escape(title)}</h2>"
        + html_table(["policy", *pivot.partitions], rows, 1)
        + ("</section>")
    )


def _ranking(answer: RunAnswer, ranking: summary.Ranking) -> str:
    if len(answer.cases) < 2:
        return ""
    cases = ranking.cases
    shown = cases[: ranking.shown]
    headers = ["", "policy", "partition"]
    columns = [
        [str(rank) for rank in range(1, len(shown) + 1)],
        [escape(summary.policy_label(case)) for case in shown],
        [escape(summary.value(case, summary.PARTITION)) for case in shown],
    ]
    for key in summary.flash_keys(answer):
        headers.append(key.removeprefix(summary.FLASH))
        columns.append([escape(summary.value(case, key)) for case in shown])
    text_columns = len(headers)
    totals = [case.total for case in cases]
    for measure in summary.measures(totals):
        headers.append(measure.header)
        best: set[int] = set()
        if not measure.moves:
            best = ranking.best([measure.of(total) for total in totals], measure.highest)
        columns.append(marked([measure.shown(t) for t in totals[: ranking.shown]], best))
    for name, of, show in summary.FLASH_MEASURES:
        values = [of(case.flash) if case.flash else None for case in cases]
        if any(value is not None for value in values):
            headers.append(name)
            best = ranking.best(values, highest=False)
            columns.append(marked([show(v) for v in values[: ranking.shown]], best))
    for name, of_case, show in summary.DEVICE_MEASURES:
        values = [of_case(case) for case in cases]
        if any(value is not None for value in values):
            headers.append(name)
            best = ranking.best(values, highest=False)
            columns.append(marked([show(v) for v in values[: ranking.shown]], best))
    names = [tenant.name for tenant in answer.tenants]
    if 1 < len(names) <= TENANT_COLUMNS:
        for index, name in enumerate(names):
            ratios = [case.tenants[index].hit_ratio for case in cases]
            headers.append(name)
            texts = [words.ratio(v) for v in ratios[: ranking.shown]]
            columns.append(marked(texts, ranking.best(ratios, highest=True)))
    rows = [list(row) for row in zip(*columns, strict=True)]
    left_out = len(cases) - len(shown)
    more = f'<p class="note">{left_out} more are in result.json.</p>' if left_out else ""
    title = f"Ranked by {ranking.ranked_by}, {ranking.title}"
    drawn = html_table(headers, rows, text_columns)
    return f"<section><h2>{escape(title)}</h2>{drawn}{more}</section>"


def _best_tenants(answer: RunAnswer, several: bool) -> str:
    best = summary.best_case(answer)
    measures = summary.measures([*best.tenants, best.total])
    goals = any(map(summary.has_goal, best.tenants))
    states = any(line.states for line in best.tenants)

    def numbers(name: str, line: summary.Line) -> list[str]:
        shown = [measure.shown(line) for measure in measures]
        return [escape(name), words.count(line.accesses), *shown]

    rows = [
        [
            *numbers(line.name, line),
            *([summary.goal(line, best.block_bytes)] if goals else []),
            words.size(line.occupancy_blocks * best.block_bytes),
            words.size(line.quota_blocks * best.block_bytes),
            *([_states(line)] if states else []),
        ]
        for line in best.tenants
    ]
    unknown = [words.NOTHING] * (2 + goals + states)
    rows.append([*numbers("all", best.total), *unknown])
    headers = ["tenant", "accesses", *(measure.header for measure in measures)]
    headers += ["goal"] if goals else []
    title = escape(f"Tenants in {verdict.named(answer)}") if several else "Tenants"
    headers += ["held at the end", "quota at the end"]
    headers += ["supply / demand / stable"] if states else []
    return f"<section><h2>{title}</h2>{html_table(headers, rows, 1)}</section>"


def _responses(answer: RunAnswer) -> str:
    case = timing.fastest(answer)
    if case is None:
        return ""
    headers = ["tenant", "requests", *(name for name, _ in timing.PERCENTILES), "per second"]
    lines = timing.lines(case)
    slowdowns = any(line.slowdown is not None for line in lines)
    rows = [
        [
            escape(line.name),
            words.count(line.requests),
            *(words.duration(of(line)) for _, of in timing.PERCENTILES),
            words.short(line.throughput_per_s),
            *([timing.slowdown(line)] if slowdowns else []),
        ]
        for line in lines
    ]
    headers += ["slowdown"] if slowdowns else []
    devices = [
        [
            escape(device.name),
            escape(str(device.model)),
            words.count(device.reads),
            words.count(device.writes),
            words.percent(device.busy),
            words.significant(device.mean_inside),
        ]
        for device in timing.of(case).devices
    ]
    flash = [[escape(name), escape(text)] for name, text in timing.store(timing.of(case))]
    several = len(answer.cases) > 1
    title = "Response times in the fastest case" if several else "Response times"
    return (
        f"<section><h2>{title}</h2>{html_table(headers, rows, 1)}"
        + html_table(["device", "model", "reads", "writes", "busy", "mean inside"], devices, 2)
        + (html_table(["flash", "what it did"], flash, 2) if flash else "")
        + _channels(timing.of(case))
        + "</section>"
        + _drives(case, several)
    )


def _channels(found: Timing) -> str:
    groups = timing.channel_groups(found)
    if len(groups) < 2:
        return ""
    rows = [
        [
            group.label,
            escape(group.owners),
            words.size(group.group.bytes_per_s),
            words.percent(group.busy),
            words.percent(group.dies_working),
            words.percent(group.dies_cleaning),
        ]
        for group in groups
    ]
    headers = ["channels", "tenants", "per second", "busy", "dies at work", "cleaning"]
    return html_table(headers, rows, 2)


def _drives(case: Case, several: bool) -> str:
    of_case = " in the fastest case" if several else ""
    parts = []
    energy = [[escape(cell) for cell in row] for row in drives.energy_rows(case)]
    if energy:
        whole = "".join(f"<p>{escape(text)}</p>" for _, text in drives.energy_fact(timing.of(case)))
        drawn = html_table(drives.ENERGY_HEADERS, energy, 2)
        parts.append(f"<section><h2>Energy{of_case}</h2>{whole}{drawn}</section>")
    for name, drive in drives.drives(case):
        rows = [[escape(key), escape(text)] for key, text in drives.facts(drive)]
        title = "Flash" if name == "drive" else f"Flash of {name}"
        drawn = f'<div class="facts">{html_table(["", ""], rows, 2)}</div>'
        parts.append(f"<section><h2>{escape(title)}{of_case}</h2>{drawn}</section>")
    return "".join(parts)


def _states(line: CaseTenant) -> str:
    """Return the shares of windows in each state of a tenant that has a quota of its own."""
    states = line.states
    if states is None:
        return words.NOTHING
    return " / ".join(map(words.percent, (states.supply, states.demand, states.stable)))


def _workload(answer: RunAnswer) -> str:
    rows = [
        [
            escape(t.name),
            escape(t.trace),
            escape(t.format),
            words.count(t.requests),
            words.percent(t.reads / t.requests if t.requests else None),
            words.size(t.read_bytes),
            words.size(t.write_bytes),
            words.count(t.distinct_blocks),
            words.duration(t.span_ns),
            words.count(t.skipped_bad),
            words.count(t.skipped_irrelevant),
            words.count(t.out_of_order),
        ]
        for t in answer.tenants
    ]
    headers = ["tenant", "trace", "format", "requests", "reads", "read", "written"]
    headers += ["distinct blocks", "span", "malformed, skipped", "no request, skipped"]
    headers += ["out of order"]
    examples = [
        f"<li>{escape(t.name)}: {escape(example)}</li>"
        for t in answer.tenants
        if t.skipped_bad
        for example in t.skipped_examples
    ]
    listed = f'<ul class="note">{"".join(examples)}</ul>' if examples else ""
    return f"<section><h2>Workload</h2>{html_table(headers, rows, 3)}{listed}</section>"


def _settings(answer: RunAnswer) -> str:
    text = json.dumps(answer.spec, indent=2, ensure_ascii=False)
    return (
        "<section><h2>Settings in full</h2><details><summary>show</summary>"
        f"<pre>{escape(text)}</pre></details></section>"
    )
