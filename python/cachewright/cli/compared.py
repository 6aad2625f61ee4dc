"""The tables of a result: workload, tenants of a single case, pivots and rankings of several.

For: `run` and `compare`. Must never know: how results are made. Of more cases than fit, the best
are shown and the rest are counted.
"""

from __future__ import annotations

from typing import Any

from cachewright import summary, timing, verdict, words
from cachewright.cli import output, timed
from cachewright.cli.tables import Column, table
from cachewright.result import Result

TENANT_COLUMNS = 6
SKIPPED_SHOWN = 3


def show(result: Result) -> None:
    """Print everything worth knowing of a result."""
    document = result.document
    _workload(document)
    output.kept(document)
    if len(document["cases"]) == 1:
        _single(document["cases"][0])
        return
    for pivot in summary.pivots(document):
        if len(pivot.partitions) > 1:
            _pivot(pivot)
    for ranking in summary.rankings(document):
        _ranking(document, ranking)
    more = (flash_conclusion(document), timed.conclusion(document))
    for sentence in (*verdict.sentences(document), *more):
        if sentence:
            output.say(sentence)


def flash_conclusion(document: dict[str, Any]) -> str:
    """Return which case writes least to flash; nothing without a drive or a choice."""
    best = summary.fewest_flash_writes(document)
    if best is None or len(document["cases"]) < 2:
        return ""
    return (
        f"fewest flash writes: {summary.label(best, document['varied'])}: "
        f"{words.count(summary.flash_pages(best))} pages, "
        f"write amplification {words.ratio(summary.flash(best, 'write_amplification'))}, "
        f"hit ratio {words.ratio(summary.hit_ratio(best))}"
    )


def _workload(document: dict[str, Any]) -> None:
    whole = document["workload"]
    tenants = document["tenants"]
    has_times = any(tenant.get("has_times", True) for tenant in tenants)
    output.say(
        f"{document['name']}: {words.counted(len(tenants), 'tenant')}, "
        f"{words.counted(whole['requests'], 'request')}, "
        f"{words.count(whole['block_accesses'])} block accesses, "
        f"working set {words.size(whole['working_set_bytes'])}, "
        f"{words.duration(whole['span_ns']) if has_times else 'no times'}"
    )
    output.say()
    for tenant in tenants:
        bad = tenant.get("skipped_bad", 0)
        if bad:
            output.note(f"{tenant['name']}: {words.counted(bad, 'malformed record')} skipped")
            for example in tenant.get("skipped_examples", [])[:SKIPPED_SHOWN]:
                output.note(f"  {example}")
        _times(tenant)


def _times(tenant: dict[str, Any]) -> None:
    late = tenant.get("out_of_order", 0)
    if late:
        counted = words.counted(late, "request")
        output.note(f"{tenant['name']}: times run backwards: {counted} earlier than one before")
    if not tenant.get("has_times", True):
        output.note(
            f"{tenant['name']}: the trace has no times: a request per nanosecond is replayed, "
            "so that intervals and rates mean nothing"
        )


def _single(case: dict[str, Any]) -> None:
    keys = [key for key in case["settings"] if key != summary.CAPACITY]
    title = f"{summary.label(case, keys)}, {words.size(summary.capacity_bytes(case))}"
    lines = [*case["tenants"], {"name": "all", **case["total"]}]
    several = len(case["tenants"]) > 1
    lines = lines if several else lines[-1:]
    table(
        title,
        [
            Column("tenant", [str(line["name"]) for line in lines], numeric=False),
            Column("accesses", [words.count(line["accesses"]) for line in lines]),
            *_measures(lines),
            *_goals(lines),
            Column("occupancy", [_blocks(case, line, "occupancy_blocks") for line in lines]),
            Column("quota", [_blocks(case, line, "quota_blocks") for line in lines]),
        ],
    )
    if "flash" in case:
        _drive(case["flash"])
    if "timing" in case:
        timed.show(case)


def _goals(lines: list[dict[str, Any]]) -> list[Column]:
    if not any("goal_hit_ratio" in line for line in lines):
        return []
    return [Column("goal", [summary.goal(line) for line in lines])]


def _drive(flash: dict[str, Any]) -> None:
    size = words.size(flash["logical_pages"] * flash["page_bytes"])
    output.facts(
        [
            ("drive", f"{size}, {words.percent(flash['op'])} over-provisioning"),
            ("separation", f"{flash['separation']}, {flash['reclaim']}"),
            ("written", f"{words.significant(flash['drive_writes'])} drive writes"),
            ("write amplification", words.ratio(flash["write_amplification"])),
            ("extra writes", words.ratio(flash["extra_writes"])),
            ("flash writes", words.counted(flash["flash_pages"], "page")),
        ]
    )
    _unsteady([flash])


def _unsteady(drives: list[dict[str, Any]]) -> None:
    """Say so when a drive was written too little to be in a steady state."""
    few = [flash["drive_writes"] for flash in drives if not flash["steady"]]
    if few:
        found = f"{words.significant(min(few))} drive writes"
        expected = "expected at least 10 for a steady state"
        output.note(f"found {found} in {len(few)} of {len(drives)} cases, {expected}")


def _blocks(case: dict[str, Any], line: dict[str, Any], key: str) -> str:
    blocks = line.get(key)
    return words.NOTHING if blocks is None else words.size(int(blocks) * int(case["block_bytes"]))


def _measures(lines: list[dict[str, Any]], ranking: summary.Ranking | None = None) -> list[Column]:
    columns = []
    for measure in summary.measures(lines):
        shown = [measure.shown(line) for line in lines]
        best: set[int] = set()
        if ranking is not None:
            if measure.key not in summary.MOVED:
                best = ranking.best([line.get(measure.key) for line in lines], measure.highest)
            shown = shown[: ranking.shown]
        columns.append(Column(measure.header, shown, best=best))
    return columns


def _by_kind(ranking: summary.Ranking) -> list[Column]:
    """Return the response times of reads and writes apart, of cases on devices."""
    if not all(timing.is_timed(case) for case in ranking.cases):
        return []
    columns = []
    for header, values in timing.by_kind([case["timing"]["total"] for case in ranking.cases]):
        shown = [words.duration(value) for value in values[: ranking.shown]]
        columns.append(Column(header, shown, best=ranking.best(values, highest=False)))
    return columns


def _flash_measures(ranking: summary.Ranking) -> list[Column]:
    columns = []
    for header, key, show in summary.FLASH_MEASURES:
        values = [summary.flash(case, key) for case in ranking.cases]
        best = ranking.best(values, highest=False)
        columns.append(Column(header, [show(v) for v in values[: ranking.shown]], best=best))
    return columns


def _pivot(pivot: summary.Pivot) -> None:
    columns = [Column("policy", pivot.policies, numeric=False)]
    for index, partition in enumerate(pivot.partitions):
        shown = [words.ratio(line[index]) for line in pivot.ratios]
        columns.append(Column(partition, shown, best=pivot.best[index]))
    table(f"{pivot.title}: hit ratio by policy and partition", columns)


def _ranking(document: dict[str, Any], ranking: summary.Ranking) -> None:
    cases = ranking.cases[: ranking.shown]
    columns = [Column("", [str(rank) for rank in range(1, len(cases) + 1)])]
    columns.append(Column("policy", [summary.policy_label(c) for c in cases], numeric=False))
    partitions = [summary.value(c, summary.PARTITION) for c in cases]
    columns.append(Column("partition", partitions, numeric=False))
    for key in summary.flash_keys(document):
        named = [summary.value(case, key) for case in cases]
        columns.append(Column(key.removeprefix(summary.FLASH), named, numeric=False))
    columns += _measures([case["total"] for case in ranking.cases], ranking)
    columns += _by_kind(ranking)
    if summary.has_flash(ranking.cases):
        columns += _flash_measures(ranking)
    names = [tenant["name"] for tenant in document["tenants"]]
    if 1 < len(names) <= TENANT_COLUMNS:
        for index, name in enumerate(names):
            values = [case["tenants"][index]["hit_ratio"] for case in ranking.cases]
            shown = [words.ratio(v) for v in values[: ranking.shown]]
            columns.append(Column(name, shown, best=ranking.best(values, highest=True)))
    table(f"{ranking.title}: ranked by {ranking.ranked_by}", columns)
    _unsteady([case["flash"] for case in ranking.cases if "flash" in case])
    left_out = len(ranking.cases) - ranking.shown
    if left_out:
        output.say(f"{words.count(left_out)} more not shown; --csv, --json and --out have all\n")
