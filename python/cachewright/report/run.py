"""The page of a run: conclusion, tables, figures, workload, settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from cachewright import tables, words
from cachewright.answers import RunAnswer, TenantFacts
from cachewright.report.page import note, section, whole_page
from cachewright.tables import Column, Table, html, ranking, summary, timing
from cachewright.tables.ranking import Rank

if TYPE_CHECKING:
    from cachewright.report.figure import Figure
    from cachewright.results import RunFrames


def figures(result: RunFrames) -> list[Figure]:
    """Return the figures that a run has data for, in the order of the page."""
    from cachewright.report import charts, timed

    against = timed.amplification(result)
    first = [against] if against else []
    return [*first, *charts.all_figures(result), *timed.figures(result)]


def page(result: RunFrames, drawn: Sequence[Figure], rank_by: str | None = None) -> str:
    """Return the whole page. Errors: `SpecError` for what cannot be ranked by."""
    answer = result.answer
    rank = ranking.rank_of(answer, rank_by)
    several = len(answer.cases) > 1
    parts: list[str | Figure] = [
        f"<h1>{escape(result.name)}</h1>",
        f'<p class="lead">{escape(_workload_sentence(answer))}</p>',
        _headline(answer, rank),
        *map(note, filter(None, [*summary.goals_not_judged(answer), summary.unequal_work(answer)])),
        *drawn[:1],
        _conclusions(answer, rank) if several else "",
        '<div class="row">',
        *(section(pivot, after=_left_out(pivot)) for pivot in summary.pivots(answer)),
        "</div>",
        *drawn[1:],
        *(_ranking(answer, ranked) for ranked in summary.rankings(answer, rank) if several),
        _best_tenants(answer, rank),
        _best_causes(answer, rank),
        _responses(answer),
        _workload(answer),
        _settings(answer),
        f"<footer>Cachewright {escape(answer.cachewright)}</footer>",
    ]
    return whole_page(f"{result.name}: cache report", parts)


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


def _headline(answer: RunAnswer, rank: Rank) -> str:
    best = summary.best_case(answer, rank)
    tiles = [
        ("hit ratio", words.percent(best.total.hit_ratio)),
        ("read hit ratio", words.percent(best.total.read_hit_ratio)),
        ("cache writes", words.count(best.total.cache_writes)),
        ("write-backs", words.count(best.total.writebacks)),
    ]
    if best.flash:
        tiles.append(("write amplification", words.ratio(best.flash.write_amplification)))
        tiles.append(("flash writes", words.count(best.flash.flash_pages)))
    if best.timing and (in_pages := ranking.amplification(best)) is not None:
        tiles.append(("write amplification, in pages", words.ratio(in_pages)))
    if (in_bytes := ranking.amplification_in_bytes(best)) is not None:
        tiles.append((ranking.IN_BYTES, words.ratio(in_bytes)))
    if best.total.mean_response_ns is not None:
        tiles.append(("mean response", words.duration(best.total.mean_response_ns)))
    drawn = "".join(
        f"<div><b>{escape(value)}</b><span>{name}</span></div>" for name, value in tiles
    )
    said = summary.conclusion(answer, rank)
    if len(answer.cases) > 1:
        what = f"<p><strong>{escape(said)}</strong></p>"
        drawn = "" if summary.choice(answer, rank) is None else drawn
    else:
        label = escape(summary.label(best, answer.varied or list(best.settings)))
        what = f"<p>One case: <strong>{label}</strong></p>"
        what += f"<p>{escape(said)}</p>" if said else ""
    tiles_drawn = f'<div class="tiles">{drawn}</div>' if drawn else ""
    return f'<section class="best">{what}{tiles_drawn}</section>'


def _conclusions(answer: RunAnswer, rank: Rank) -> str:
    """Return which case is best by capacity and by other measures."""
    found = ""
    for line in summary.sentences(answer, rank):
        head, colon, rest = line.partition(": ")
        found += f"<li><strong>{escape(head)}</strong>{colon}{escape(rest)}</li>"
    title = f"The best of {words.counted(len(answer.cases), 'combination')}"
    return f"<section><h2>{title}</h2><ul>{found}</ul></section>" if found else ""


def _ranking(answer: RunAnswer, ranked: summary.Ranking) -> str:
    table = summary.ranked(answer, ranked)
    return section(table, after=_left_out(table))


def _left_out(table: Table[Any]) -> str:
    """Return how many rows a table does not show."""
    return note(f"{table.left_out} more are in result.json.") if table.left_out else ""


def _best_tenants(answer: RunAnswer, rank: Rank) -> str:
    several = len(answer.cases) > 1
    title = f"Tenants in {summary.named(answer, rank)}" if several else "Tenants"
    return section(summary.tenants(summary.best_case(answer, rank)), title)


def _best_causes(answer: RunAnswer, rank: Rank) -> str:
    """Return why the tenants of the best case missed, where the stack asks for it."""
    table = summary.causes(summary.best_case(answer, rank))
    return section(table, "Causes of misses") if table else ""


def _responses(answer: RunAnswer) -> str:
    """Return what the fastest case waited for, and what its devices did."""
    case = summary.fastest(answer)
    if case is None:
        return ""
    of_case = " in the fastest case" if len(answer.cases) > 1 else ""
    found = timing.of(case)
    channels, energy = timing.channels(found), timing.energy(case)
    drawn = html(timing.devices(found))
    if store := timing.store(found):
        drawn += html(tables.facts("flash", store))
    if channels:
        drawn += html(channels)
    parts = [section(timing.responses(case), f"Response times{of_case}", after=drawn)]
    if energy:
        whole = "".join(f"<p>{escape(text)}</p>" for _, text in timing.energy_fact(found))
        parts.append(section(energy, f"Energy{of_case}", before=whole))
    for name, drive in timing.drives(case):
        title = "Flash" if name == "drive" else f"Flash of {name}"
        table = tables.facts("", timing.drive_facts(drive))
        parts.append(section(table, f"{title}{of_case}", facts=True))
    return "".join(parts)


def _workload(answer: RunAnswer) -> str:
    table: Table[TenantFacts] = Table(
        "workload",
        [
            Column("tenant", lambda tenant: tenant.name),
            Column("trace", lambda tenant: tenant.trace),
            Column("format", lambda tenant: tenant.format),
            Column("requests", lambda tenant: tenant.requests, words.count),
            Column("reads", _read_share, words.percent),
            Column("read", lambda tenant: tenant.read_bytes, words.size),
            Column("written", lambda tenant: tenant.write_bytes, words.size),
            Column("distinct blocks", lambda tenant: tenant.distinct_blocks, words.count),
            Column("span", lambda tenant: tenant.span_ns, words.duration),
            Column("malformed, skipped", lambda tenant: tenant.skipped_bad, words.count),
            Column("no request, skipped", lambda tenant: tenant.skipped_irrelevant, words.count),
            Column("out of order", lambda tenant: tenant.out_of_order, words.count),
        ],
        answer.tenants,
    )
    examples = [
        f"<li>{escape(tenant.name)}: {escape(example)}</li>"
        for tenant in answer.tenants
        if tenant.skipped_bad
        for example in tenant.skipped_examples
    ]
    listed = f'<ul class="note">{"".join(examples)}</ul>' if examples else ""
    return section(table, after=listed)


def _read_share(tenant: TenantFacts) -> float | None:
    return tenant.reads / tenant.requests if tenant.requests else None


def _settings(answer: RunAnswer) -> str:
    text = json.dumps(answer.spec, indent=2, ensure_ascii=False)
    return (
        "<section><h2>Settings in full</h2><details><summary>show</summary>"
        f"<pre>{escape(text)}</pre></details></section>"
    )
