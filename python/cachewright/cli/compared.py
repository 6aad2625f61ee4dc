"""The tables of a result: workload, tenants of a single case, pivots and rankings of several.

For: `run` and `compare`. Must never know: how results are made. Of more cases than fit, the best
are shown and the rest are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright import summary, timing, verdict, words
from cachewright.answers import CacheDrive, Case, RunAnswer, TenantFacts
from cachewright.cli import noted, output, timed
from cachewright.cli.tables import Column, table

TENANT_COLUMNS = 6


def show(answer: RunAnswer) -> None:
    """Print everything worth knowing of a result."""
    _workload(answer)
    output.kept(answer)
    if len(answer.cases) == 1:
        _single(answer.cases[0])
        return
    for pivot in summary.pivots(answer):
        if len(pivot.partitions) > 1:
            _pivot(pivot)
    for ranking in summary.rankings(answer):
        _ranking(answer, ranking)
    more = (flash_conclusion(answer), timed.conclusion(answer))
    for sentence in (*verdict.sentences(answer), *more):
        if sentence:
            output.say(sentence)


def flash_conclusion(answer: RunAnswer) -> str:
    """Return which case writes least to flash; nothing without a drive or a choice."""
    best = summary.fewest_flash_writes(answer)
    if best is None or best.flash is None or len(answer.cases) < 2:
        return ""
    return (
        f"fewest flash writes: {summary.label(best, answer.varied)}: "
        f"{words.count(best.flash.flash_pages)} pages, "
        f"write amplification {words.ratio(best.flash.write_amplification)}, "
        f"hit ratio {words.ratio(summary.hit_ratio(best))}"
    )


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
    )
    output.say()
    noted.of_tenants(tenants)
    for tenant in tenants:
        _times(tenant)


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
    keys = [key for key in case.settings if key != summary.CAPACITY]
    title = f"{summary.label(case, keys)}, {words.size(summary.capacity_bytes(case))}"
    tenants = case.tenants if len(case.tenants) > 1 else ()
    lines: list[summary.Line] = [*tenants, case.total]
    held = [words.size(line.occupancy_blocks * case.block_bytes) for line in tenants]
    quotas = [words.size(line.quota_blocks * case.block_bytes) for line in tenants]
    columns = [
        Column("tenant", [*(line.name for line in tenants), "all"], numeric=False),
        Column("accesses", [words.count(line.accesses) for line in lines]),
        *_measures(lines),
    ]
    if any(map(summary.has_goal, tenants)):
        goals = [summary.goal(line, case.block_bytes) for line in tenants]
        columns.append(Column("goal", [*goals, words.NOTHING]))
    columns.append(Column("occupancy", [*held, words.NOTHING]))
    columns.append(Column("quota", [*quotas, words.NOTHING]))
    table(title, columns)
    if case.flash:
        _drive(case.flash)
    if case.timing:
        timed.show(case)


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


def _measures(
    lines: Sequence[summary.Line], ranking: summary.Ranking | None = None
) -> list[Column]:
    columns = []
    for measure in summary.measures(lines):
        shown = [measure.shown(line) for line in lines]
        best: set[int] = set()
        if ranking is not None:
            if not measure.moves:
                best = ranking.best([measure.of(line) for line in lines], measure.highest)
            shown = shown[: ranking.shown]
        columns.append(Column(measure.header, shown, best=best))
    return columns


def _by_kind(ranking: summary.Ranking) -> list[Column]:
    """Return the response times of reads and writes apart, of cases on devices."""
    totals = [case.timing.total for case in ranking.cases if case.timing]
    if len(totals) < len(ranking.cases):
        return []
    columns = []
    for header, values in timing.by_kind(totals):
        shown = [words.duration(value) for value in values[: ranking.shown]]
        columns.append(Column(header, shown, best=ranking.best(values, highest=False)))
    return columns


def _device_measures(ranking: summary.Ranking) -> list[Column]:
    """Return slowdowns, and what a drive with a data cache wrote, of cases that have them."""
    columns = []
    for header, of, show in summary.DEVICE_MEASURES:
        values = [of(case) for case in ranking.cases]
        if any(value is not None for value in values):
            best = ranking.best(values, highest=False)
            columns.append(Column(header, [show(v) for v in values[: ranking.shown]], best=best))
    return columns


def _flash_measures(ranking: summary.Ranking) -> list[Column]:
    columns = []
    for header, of, show in summary.FLASH_MEASURES:
        values = [of(case.flash) if case.flash else None for case in ranking.cases]
        best = ranking.best(values, highest=False)
        columns.append(Column(header, [show(v) for v in values[: ranking.shown]], best=best))
    return columns


def _pivot(pivot: summary.Pivot) -> None:
    columns = [Column("policy", pivot.policies, numeric=False)]
    for index, partition in enumerate(pivot.partitions):
        shown = [words.ratio(line[index]) for line in pivot.ratios]
        columns.append(Column(partition, shown, best=pivot.best[index]))
    table(f"{pivot.title}: hit ratio by policy and partition", columns)


def _ranking(answer: RunAnswer, ranking: summary.Ranking) -> None:
    cases = ranking.cases[: ranking.shown]
    columns = [Column("", [str(rank) for rank in range(1, len(cases) + 1)])]
    columns.append(Column("policy", [summary.policy_label(c) for c in cases], numeric=False))
    partitions = [summary.value(c, summary.PARTITION) for c in cases]
    columns.append(Column("partition", partitions, numeric=False))
    for key in summary.flash_keys(answer):
        named = [summary.value(case, key) for case in cases]
        columns.append(Column(key.removeprefix(summary.FLASH), named, numeric=False))
    columns += _measures([case.total for case in ranking.cases], ranking)
    columns += _by_kind(ranking)
    columns += _device_measures(ranking)
    if summary.has_flash(ranking.cases):
        columns += _flash_measures(ranking)
    names = [tenant.name for tenant in answer.tenants]
    if 1 < len(names) <= TENANT_COLUMNS:
        for index, name in enumerate(names):
            values = [case.tenants[index].hit_ratio for case in ranking.cases]
            shown = [words.ratio(v) for v in values[: ranking.shown]]
            columns.append(Column(name, shown, best=ranking.best(values, highest=True)))
    table(f"{ranking.title}: ranked by {ranking.ranked_by}", columns)
    _unsteady([case.flash for case in ranking.cases if case.flash])
    left_out = len(ranking.cases) - ranking.shown
    if left_out:
        output.say(f"{words.count(left_out)} more not shown; --csv, --json and --out have all\n")
