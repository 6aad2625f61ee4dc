"""Which case is called best: goals first, then capacity by capacity.

For: `cachewright.tables.summary`. Must never know: how results are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from filled import filled

from cachewright.answers import RunAnswer
from cachewright.tables import summary

BLOCK = 4096


def _case(
    number: int, policy: str, blocks: int, ratio: float, goals: tuple[int, int] | None = None
) -> dict[str, Any]:
    total: dict[str, Any] = {"hit_ratio": ratio}
    if goals is not None:
        total["goals_met"], total["goals"] = goals
    settings = {"cache.policy": policy, "cache.partition": "equal"}
    settings["cache.capacity"] = f"{blocks * BLOCK // 1024}KiB"
    return {
        "case": number,
        "settings": settings,
        "capacity_blocks": blocks,
        "block_bytes": BLOCK,
        "total": total,
        "tenants": [],
    }


def _document(
    *cases: dict[str, Any], varied: Sequence[str] = ("cache.policy", "cache.capacity")
) -> RunAnswer:
    return filled(RunAnswer, {"cases": list(cases), "varied": list(varied)})


def test_a_case_that_meets_more_goals_is_better_than_one_that_hits_more() -> None:
    document = _document(
        _case(0, "lru", 32, 0.9, goals=(0, 1)),
        _case(1, "arc", 32, 0.4, goals=(1, 1)),
    )
    assert summary.best_case(document).case == 1
    (ranking,) = summary.rankings(document)
    assert [case.case for case in ranking.cases] == [1, 0]
    assert ranking.ranked_by == "goals met, then hit ratio"
    (sentence,) = summary.sentences(document)
    assert sentence == (
        "best: arc, 128KiB: 1 of 1 goal met, hit ratio 0.4000; lru, 128KiB hits more but not where "
        "goals ask for it: 0 of 1 goal met, hit ratio 0.9000"
    )


def test_the_smallest_cache_that_meets_all_goals_is_the_choice() -> None:
    document = _document(
        _case(0, "lru", 32, 0.3, goals=(1, 2)),
        _case(1, "arc", 64, 0.5, goals=(2, 2)),
        _case(2, "lru", 64, 0.6, goals=(1, 2)),
        _case(3, "arc", 128, 0.8, goals=(2, 2)),
        _case(4, "belady", 32, 0.7, goals=(2, 2)),
    )
    chosen = summary.choice(document)
    assert chosen is not None
    assert chosen.case == 1
    first, *rest = summary.sentences(document)
    assert first == (
        "smallest cache that meets all goals: capacity 256KiB, arc: 2 of 2 goals met, "
        "hit ratio 0.5000"
    )
    assert [line.split(": ")[0] for line in rest] == [
        "best at capacity 128KiB",
        "best at capacity 256KiB",
        "best at capacity 512KiB",
    ]


def test_goals_that_no_choice_meets_are_said_to_be_missed() -> None:
    document = _document(
        _case(0, "lru", 32, 0.3, goals=(0, 2)),
        _case(1, "lru", 64, 0.5, goals=(1, 2)),
        _case(2, "belady", 64, 0.7, goals=(2, 2)),
    )
    assert summary.sentences(document)[0] == (
        "no case meets all goals; nearest: lru, 256KiB: 1 of 2 goals met, hit ratio 0.5000; "
        "the bound belady, 256KiB meets all"
    )


def test_without_goals_every_capacity_has_a_best_and_none_is_the_choice() -> None:
    document = _document(
        _case(0, "lru", 32, 0.3),
        _case(1, "arc", 32, 0.4),
        _case(2, "lru", 64, 0.6),
        _case(3, "arc", 64, 0.5),
    )
    assert summary.choice(document) is None
    assert summary.sentences(document) == [
        "best at capacity 128KiB: arc: hit ratio 0.4000, 0.1000 above the worst (lru)",
        "best at capacity 256KiB: lru: hit ratio 0.6000, 0.1000 above the worst (arc)",
    ]
    assert summary.named(document) == "the case with the highest hit ratio, lru, 256KiB"


def test_a_sweep_of_capacities_alone_names_no_best() -> None:
    cases = (_case(0, "lru", 32, 0.3), _case(1, "lru", 64, 0.4))
    document = _document(*cases, varied=["cache.capacity"])
    assert summary.sentences(document) == [
        "capacity 128KiB: hit ratio 0.3000; capacity 256KiB: hit ratio 0.4000"
    ]


def _caused(name: str, misses: int, by: list[int], **causes: int) -> dict[str, Any]:
    own = {**causes, "pushed_out": sum(by), "pushed_out_by": by}
    own["pushed_out_ns"] = [misses * 1000 for misses in by]
    return {"name": name, "misses": misses, "causes": own}


def test_causes_of_misses_are_a_matrix_of_tenants_without_empty_columns() -> None:
    case = _case(0, "lru", 32, 0.5)
    case["tenants"] = [
        _caused("db", 70, [0, 30], first_use=10, capacity=30),
        _caused("web", 25, [0, 0], first_use=25),
    ]
    (found,) = _document(case).cases
    table = summary.causes(found)
    assert table is not None
    written = {column.heading: column.cells for column in table.written()}
    assert written == {
        "tenant": ["db", "web"],
        "misses": ["70", "25"],
        "first use": ["10", "25"],
        "capacity": ["30", "0"],
        "pushed out by web": ["30", "0"],
        "time for others": ["30us", "0ns"],
    }


def test_without_causes_there_is_no_table_of_them() -> None:
    case = _case(0, "lru", 32, 0.5)
    case["tenants"] = [{"name": "db", "misses": 70}]
    assert summary.causes(_document(case).cases[0]) is None
