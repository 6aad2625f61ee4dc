"""Mixes at loads that devices carry: the search for a load, the stacks, losses worked by hand."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from cachewright_lab import mixes
from cachewright_lab.mixes import Judged, Load
from cachewright_lab.study import Mix, Row, Volume

# Work of the busiest device at factor 1.
WORK = 1.6


def queueing(factor: float) -> Load:
    """Return a load on a device with one queue: the slowdown is 1 / (1 - busy)."""
    busy = WORK / factor
    return Load(factor, 1 / (1 - busy) if busy < 1 else 1e4, "auto", busy, 60 * factor)


def never_slow(factor: float) -> Load:
    return Load(factor, 1.05, "dp", WORK / factor, 60 * factor)


def in_bursts(factor: float) -> Load:
    return Load(factor, 30.0, "equal", WORK / factor, 60 * factor)


def test_a_load_is_found_by_bisection() -> None:
    # At factor 8 the device is busy for 0.2 of the time: 70 % are at 8 x 0.2 / 0.7 = 2.286, and the
    # slowdown there is 1 / 0.3 = 3.33.
    (only,) = mixes.searched(WORK / 8, queueing)
    assert (only.factor, round(only.slowdown, 2)) == (2.286, 3.33)
    assert mixes.chosen([only]) == only

    # Twice as slow for the same work: 6.67 at 2.286 is too much, so that the load becomes slower by
    # 4 (2.43 at 9.144, near).
    tried = mixes.searched(
        WORK / 8, lambda one: Load(one, 2 * queueing(one).slowdown, "dp", 0.5, 60.0)
    )
    assert [one.factor for one in tried] == [2.286, 9.144]
    # From there on it lies between a load that is too fast and one that is too slow.
    tried = mixes.searched(
        WORK / 8, lambda one: Load(one, 7.0 if one < 5 else 1.3, "dp", WORK / one, 60.0)
    )
    assert [one.factor for one in tried] == [2.286, 9.144, 4.572, 6.466, 5.437, 4.986]
    # None of them is near. The middle is 3: 1.3 is 2.31 times below it, 7.0 is 2.33 times above.
    found = mixes.chosen(tried)
    assert found is not None
    assert (found.factor, found.slowdown) == (9.144, 1.3)


def test_what_has_no_load_stands_apart_with_its_reason() -> None:
    never = mixes.searched(WORK / 8, never_slow)
    assert len(never) == mixes.STEPS
    assert mixes.chosen(never) is None
    assert mixes.reason(never) == (
        "tenants hardly slow each other down: the least slowdown is 1.05 at most, at 70 % busy"
    )
    bursts = mixes.searched(WORK / 8, in_bursts)
    assert mixes.chosen(bursts) is None
    assert mixes.reason(bursts).startswith("bursts overrun the devices: at factor 2.286 ")
    overrun = [Load(1.0, 3.0, "dp", 1.5, 60.0), Load(2.0, 3.0, "dp", 0.95, 60.0)]
    assert mixes.chosen(overrun) is None
    assert mixes.reason(overrun) == "a device is busy 95 % at the slowest load tried"
    light = [Load(0.1, 3.0, "dp", 0.7, 6.0)]
    assert mixes.chosen(light) is None
    assert mixes.reason(light).startswith(
        "too light: with a least slowdown of 3.00 requests arrive"
    )


def volume(name: str, folder: Path) -> Volume:
    return Volume(name, folder / f"{name}.csv", "made")


def test_recordings_of_a_mix_are_stretched_to_one_length(folder: Path) -> None:
    mix = Mix("a+b made", (volume("a", folder), volume("b", folder)))
    own = mixes.stack(mix, "5%wss", [30.0, 10.0], 2.0)
    assert [one["time_scale"] for one in own["tenant"]] == [2.0, 6.0]
    assert own["cache"]["capacity"] == "5%wss"
    # A week is taken at a higher speed.
    own = mixes.stack(mix, "5%wss", [6e5, 60.0], 1.0)
    assert [one["time_scale"] for one in own["tenant"]] == [0.001, 10.0]


def test_a_mix_is_replayed_at_its_load_and_another_scheme_joins(traces: Path) -> None:
    mix = Mix("a+b made", (volume("a", traces), volume("b", traces)))
    judged = Judged(mix, "64KiB", traces / "out" / "a-b")
    tried = judged.search()
    assert all(one.busy > 0 for one in tried)
    # Whatever was found, the load is kept, and counts as it is kept.
    load = {"factor": 4.0, "slowdown": 2.0, "scheme": "equal", "busy": 0.5, "seconds": 60.0}
    (judged.folder / "loads.json").write_text(json.dumps([load]))
    rows = list(judged.rows(["equal", "shared"], closed=False))
    assert [row.scheme for row in rows] == ["equal", "shared"]
    assert rows[0].values["goals"] == 1.0, "an equal division gives what it gives"
    again = list(judged.rows(["equal", "shared", "dp"], closed=False))
    assert again[:2] == rows
    assert again[2].scheme == "dp"
    closed = list(judged.rows(["equal"], closed=True))
    assert closed[0].values["slowdown"] > 0
    goals = list(judged.told())
    assert {row.values["goals"] for row in goals} == {2}
    (judged.folder / "loads.json").write_text(json.dumps([{**load, "busy": 2.0}]))
    assert list(judged.rows(["equal"], closed=False)) == []


def test_mixes_of_ten_minutes_and_of_seeds_stand_apart(folder: Path) -> None:
    for name in ("fresh-queue-711", "fresh-series-731", "fresh-queue-712", "long-farm-761"):
        (folder / f"{name}.csv.zst").write_bytes(b"")
    for name in ("fresh-desktops-841", "fresh-farm-861", "long-backups-751"):
        (folder / f"{name}.csv.zst").write_bytes(b"")
    given = argparse.Namespace(captures=folder, traces=folder / "none", out=folder / "out")
    names = [one.mix.name for one in mixes.judging(given) if one.capacity == "5%wss"]
    cuts = ["judge-oltp+judge-mail cut", "judge-web+judge-file cut"]
    cuts.append("judge-oltp+judge-mail+judge-web+judge-file cut")
    seeds = ["queue+series #1", "desktops+farm #1"]
    assert names == [*cuts, *seeds, "backups+farm of ten minutes"]


def values(slowdown: float, hits: float, goals: float = 1.0) -> dict[str, Any]:
    same = {"mean": 1e6, "p99": 2e6, "writes": 0.5}
    return {"slowdown": slowdown, "hits": hits, "goals": goals, **same}


def test_losses_are_beside_the_best_of_a_mix() -> None:
    rows = [
        Row("m", "5%wss", "auto", values(3.0, 0.2), tenants=2),
        Row("m", "5%wss", "dp", values(2.0, 0.25, 0.5), tenants=2),
        Row("n", "5%wss", "auto", values(2.0, 0.5), tenants=3),
        Row("n", "5%wss", "dp", values(4.0, 0.25), tenants=3),
    ]
    assert mixes.losses(rows, "slowdown")["auto"] == {"m 5%wss": 0.5, "n 5%wss": 0.0}
    # Of hits, the share that is lost: 0.2 in place of 0.25.
    lost = mixes.losses(rows, "hits")
    assert lost["auto"]["m 5%wss"] == pytest.approx(0.2)
    assert lost["dp"]["n 5%wss"] == pytest.approx(0.5)
    # Means of slowdowns are geometric: the root of 1.5 and 1, and of 1 and 2.
    head, _, auto, dp = mixes.losses_table(rows).splitlines()
    assert head.startswith("| partitioner | largest slowdown: worst, mean | mean response: ")
    assert auto.startswith("| `auto` | 50 %, 22.5 % (m 5%wss) | 0 %, 0.0 % (")
    assert auto.endswith("| 5 of 5 |")
    assert dp.startswith("| `dp` | 100 %, 41.4 % (n 5%wss) |")
    assert dp.endswith("| 4 of 5 |")
    table = mixes.values_table(rows, "slowdown").splitlines()
    assert table[2] == "| m, 5%wss | 3.00 | **2.00** |"
    (aim,) = mixes.aims({mixes.OPEN: rows})
    assert (aim.met, aim.found) == (False, 0.5)
    assert aim.about == "worst on m 5%wss; within 15 % on 1 of 2"
