"""What `run` and `compare` print: workload, tenants of a single case, rankings of several."""

from __future__ import annotations

from collections.abc import Sequence

from cachewright import tables, words
from cachewright.answers import CacheDrive, Case, ContinuedDecisions, RunAnswer, TenantFacts
from cachewright.cli import noted, output
from cachewright.tables import ranking, summary, timing


def show(answer: RunAnswer, rank_by: str | None = None) -> None:
    """Print a result, ranked. Errors: `SpecError` for what cannot be ranked by."""
    rank = ranking.rank_of(answer, rank_by)
    _workload(answer)
    output.kept(answer)
    if len(answer.cases) == 1:
        _single(answer.cases[0])
        output.conclude(summary.conclusion(answer, rank))
        return
    for pivot in summary.pivots(answer):
        output.show(pivot)
    for ranked in summary.rankings(answer, rank):
        _ranking(answer, ranked)
    more = []
    if rank not in (ranking.AMPLIFICATION, ranking.FLASH_WRITES):
        more.append(summary.fewest_flash_writes_sentence(answer))
    if rank not in (ranking.MEAN, ranking.P99):
        more.append(summary.fastest_sentence(answer))
    for sentence in (*summary.sentences(answer, rank), *more):
        if sentence:
            output.say(sentence)
    output.say()
    output.conclude(summary.conclusion(answer, rank))


def _workload(answer: RunAnswer) -> None:
    whole = answer.workload
    tenants = answer.tenants
    has_times = any(tenant.has_times for tenant in tenants)
    output.say(
        f"{answer.name}: {words.counted(len(tenants), 'tenant')}, "
        f"{words.counted(whole.requests, 'request')}, "
        f"{words.count(whole.block_accesses)} block accesses, "
        f"working set {words.size(whole.working_set_bytes)}, "
        f"{words.duration(whole.span_ns) if has_times else 'no times'}"
        f"{' of trace in a closed loop' if summary.is_closed(answer) and has_times else ''}"
    )
    output.say()
    noted.of_tenants(tenants)
    for tenant in tenants:
        _times(tenant)
    for sentence in (*summary.goals_not_judged(answer), summary.unequal_work(answer)):
        if sentence:
            output.note(sentence)


def _times(tenant: TenantFacts) -> None:
    if tenant.out_of_order:
        counted = words.counted(tenant.out_of_order, "request")
        output.note(f"{tenant.name}: times run backwards: {counted} earlier than one before")
    if not tenant.has_times:
        output.note(
            f"{tenant.name}: the trace has no times: a request per nanosecond is replayed, "
            "so that intervals and rates mean nothing"
        )


def _single(case: Case) -> None:
    output.show(summary.tenants(case))
    if causes := summary.causes(case):
        output.show(causes)
    if case.flash:
        _drive(case.flash)
    if case.timing:
        _timed(case)
    if case.continued:
        _continued(case.continued)


def _continued(found: ContinuedDecisions) -> None:
    """Say whether a replay from a server's state decided as the server did."""
    if found.decided_by_server is None:
        output.say(
            "decisions are not compared with the server's: no state of the next recording "
            "stands beside this one\n"
        )
    elif found.decided == found.decided_by_server:
        output.say(f"decided as the server did to the end of the recording: {found.decided}\n")
    else:
        output.note(
            f"decided otherwise than the server to the end of the recording: {found.decided}, "
            f"and the server {found.decided_by_server}"
        )


def _drive(flash: CacheDrive) -> None:
    size = words.size(flash.logical_pages * flash.page_bytes)
    output.facts(
        [
            ("drive", f"{size}, {words.percent(flash.op)} over-provisioning"),
            ("separation", f"{flash.separation}, {flash.reclaim}"),
            ("written", f"{words.significant(flash.drive_writes)} drive writes"),
            ("write amplification", words.ratio(flash.write_amplification)),
            ("extra writes", words.ratio(flash.extra_writes)),
            ("flash writes", words.counted(flash.flash_pages, "page")),
        ]
    )
    _unsteady([flash])


def _unsteady(drives: Sequence[CacheDrive]) -> None:
    """Say so when a drive was written too little to be in a steady state."""
    few = [flash.drive_writes for flash in drives if not flash.steady]
    if few:
        found = f"{words.significant(min(few))} drive writes"
        expected = "expected at least 10 for a steady state"
        output.note(f"found {found} in {len(few)} of {len(drives)} cases, {expected}")


def _timed(case: Case) -> None:
    """Print what a case's tenants waited, for what, and how its devices were used."""
    found = timing.of(case)
    output.show(timing.responses(case))
    output.show(timing.shares(case))
    output.show(timing.devices(found))
    if channels := timing.channels(found):
        output.show(channels)
    if energy := timing.energy(case):
        output.show(energy)
    for device, drive in timing.drives(case):
        output.show(tables.facts(f"flash: {device}", timing.drive_facts(drive)))
    output.facts(timing.facts(found))


def _ranking(answer: RunAnswer, ranked: summary.Ranking) -> None:
    table = summary.ranked(answer, ranked)
    output.show(table)
    _unsteady([case.flash for case in ranked.cases if case.flash])
    if table.left_out:
        output.say(
            f"{words.count(table.left_out)} more not shown; --csv, --json and --out have all\n"
        )
