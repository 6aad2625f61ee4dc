"""Traps: what makes each a trap, tables by hand, and the harness in small, twice the same bytes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import cachewright
from cachewright_lab import traps
from cachewright_lab.study import Row, write_blocks
from cachewright_lab.traps import PROGRAMME, Trap, schemes, stack_of, table

BLOCKS, COUNT = 256, 20_000


def misses(trap: Trap, folder: Path, policy: str, seed: int = 1) -> int:
    stack = stack_of(trap, folder, seed)
    return cachewright.run(stack, settings={"cache.policy": policy}).answer.cases[0].total.misses


def of(kind: str, count: int = COUNT) -> Trap:
    return Trap(kind, BLOCKS, count)


def test_lru_never_hits_a_loop_above_the_cache_and_belady_the_known_share(folder: Path) -> None:
    trap = of("loop-above")
    assert misses(trap, folder, "lru") == COUNT
    # Once the cache is full a loop of n blocks hits (c - 1) times in n - 1 requests.
    loop = BLOCKS + BLOCKS // 16
    hits = (COUNT - loop) * (BLOCKS - 1) / (loop - 1)
    assert COUNT - misses(trap, folder, "belady") == pytest.approx(hits, rel=0.02)


def test_a_scan_costs_lru_the_re_used_half_and_belady_nothing(folder: Path) -> None:
    trap = of("scan-between-bursts")
    rounds = COUNT / (3 * BLOCKS)
    scanned = rounds * BLOCKS
    known = BLOCKS / 2
    assert misses(trap, folder, "belady-bypass") == pytest.approx(scanned + known, rel=0.03)
    # Four requests for each on average: a burst leaves out e^-4 of the re-used blocks.
    again = rounds * known * (1 - math.exp(-4))
    assert misses(trap, folder, "lru") == pytest.approx(scanned + again, rel=0.03)


def test_lru_follows_a_hand_over_that_counts_miss(folder: Path) -> None:
    trap = of("hand-over")
    sets = COUNT / (4 * BLOCKS)
    lru = misses(trap, folder, "lru")
    assert lru == pytest.approx((sets + 1) * BLOCKS / 2, rel=0.05), "each block once"
    assert misses(trap, folder, "lfu") > 2 * lru


def test_a_flood_leaves_lru_little_of_what_is_re_used(folder: Path) -> None:
    trap = of("one-hit-flood")
    flood = 0.75 * COUNT
    assert misses(trap, folder, "belady-bypass") == pytest.approx(flood, rel=0.03)
    assert misses(trap, folder, "lru") > 1.07 * flood


def test_a_tenant_that_returns_finds_its_blocks_only_in_a_share_of_its_own(folder: Path) -> None:
    stack = stack_of(Trap("idle-return", BLOCKS, COUNT, 1000), folder, 1)
    found = {}
    for partition in ("shared", "equal"):
        case = cachewright.run(stack, settings={"cache.partition": partition}).answer.cases[0]
        steady, returning = case.tenants
        assert (steady.name, returning.name) == ("steady", "returning")
        found[partition] = returning.misses
    assert found["equal"] == BLOCKS // 2, "half a cache holds all of its blocks"
    assert found["shared"] > 2 * found["equal"], "of four times that it is back, it finds few"


def test_the_larger_period_makes_the_longer_trace() -> None:
    names = [trap.name for trap in traps.traps("policies", quick=False)]
    assert names[:4] == [f"alternation {each}C" for each in ("0.5", "2", "16", "100")]
    trap = of("alternation").lasting(10_000, "x")
    assert (trap.name, trap.period, trap.count) == ("alternation x", 10_000, 60_000)
    assert trap.aimed_at == "policies"


def test_every_spec_is_aimed_at_schemes_and_new_schemes_take_part() -> None:
    kinds = {
        trap.kind
        for stage in ("policies", "partitioners", "separations")
        for trap in traps.traps(stage, quick=False)
    }
    assert len(kinds) == len(list(traps.SPECS.glob("trap-*.toml"))) == 10
    assert {*traps.STATIC_POLICIES, "belady", "duel-x"} <= {*schemes("policies")}
    assert {"icache-x", "opt", "shared"} <= {*schemes("partitions")}
    assert {*traps.STATIC_SEPARATIONS, "fk", "shiro-x"} <= {*schemes("separations")}


def test_a_table_has_means_and_the_worst_seed() -> None:
    found = {"lru": ((10, 20), (30, 40)), "arc": ((5, 30), (15, 10))}
    rows = [
        Row(trap, f"seed {seed}", scheme, {"misses": float(value)}, seed=seed)
        for scheme, of_traps in found.items()
        for trap, values in zip(("a", "b"), of_traps, strict=True)
        for seed, value in enumerate(values, 1)
    ]
    # 5/10 and 30/20; 15/30 and 10/40.
    assert table(rows, "misses", lambda values: values["lru"]) == (
        "| scheme | a | b | worst (where) | mean |\n|---|--:|--:|--:|--:|\n"
        "| `lru` (static) | 1.00 | 1.00 | 1.00 (b, seed 2) | 1.00 |\n"
        "| `arc` | 1.00 | 0.38 | 1.50 (a, seed 2) | 0.69 |"
    )


def test_the_harness_runs_in_small_and_repeats_itself(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def kept(name: str, *words: str) -> dict[str, bytes]:
        given = ["--quick", "--seeds", "1", "--out", str(folder / name), *words]
        assert PROGRAMME.main(given) == 0
        return {path.name: path.read_bytes() for path in (folder / name).glob("*.json")}

    every = kept("one")
    shown = capsys.readouterr().out
    assert sorted(every) == ["partitioners.json", "policies.json", "separations.json"]
    # The same seeds give the same bytes.
    again = kept("two", "--only", "policies")
    assert again["policies.json"] == every["policies.json"]
    for scheme in ("duel-x", "icache-x", "shiro-x", "best constant share", "belady", "opt", "fk"):
        bound = " (bound)" if scheme in ("best constant share", "belady", "opt", "fk") else ""
        assert f"| `{scheme}`{bound} |" in shown


def test_the_page_has_every_block(folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(traps.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    names = ("misses beside lru", "misses beside the best", "many seeds", "slowdowns")
    names += ("slowdowns beside the best", "amplification", "amplification beside the best")
    write_blocks(page, dict.fromkeys(names, "| a |"))
