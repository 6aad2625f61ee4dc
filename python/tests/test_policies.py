"""Policies written in Python take part in runs like any other: equal to those in Rust.

For: `cachewright.policies` and the examples on the bundled traces. Must never know: how Rust
policies work.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cachewright
from cachewright.examples import FifoCache, LruCache

ROOT = Path(__file__).parents[2]
DATA = ROOT / "data"
SPECS = ROOT / "specs"
NAMES = ("oltp", "mail", "web", "lu")
BUILT_IN = {"python:LruCache": "lru", "python:FifoCache": "fifo"}
BOTH = ["lru", LruCache, "fifo", FifoCache]


def bundled(stop: str = "2s", **cache: Any) -> dict[str, Any]:
    """Return a stack of the first seconds of the bundled traces, which hold trims."""
    tenants = [{"name": n, "trace": str(DATA / f"{n}.csv.zst"), "stop": stop} for n in NAMES]
    table = {"capacity": "16MiB", **cache}
    replay = {"interval": "250ms", "windows": 4, "curves": False}
    return {"name": "bundled", "cache": table, "replay": replay, "tenant": tenants}


def answers(result: cachewright.Result) -> dict[tuple[str, str], Any]:
    """Return what each case found, by its policy and its other settings."""
    series: dict[int, list[Any]] = {}
    for row in result.series.to_dicts():
        series.setdefault(row.pop("case"), []).append(row)
    found = {}
    for case in result.document["cases"]:
        settings = {k: v for k, v in case["settings"].items() if k != "cache.policy"}
        facts = {k: v for k, v in case.items() if k not in ("case", "settings")}
        key = case["settings"]["cache.policy"], json.dumps(settings, sort_keys=True)
        found[key] = (facts, series.get(case["case"]))
    return found


def assert_equal_to_rust(result: cachewright.Result, cases: int) -> None:
    """Check that every case of a Python policy is the built-in one's to the last number."""
    found = answers(result)
    assert len(found) == cases
    for (policy, settings), facts in found.items():
        if policy in BUILT_IN:
            assert facts == found[BUILT_IN[policy], settings], (policy, settings)
    assert all(case["total"]["accesses"] > 0 for case in result.document["cases"])


def test_every_partition_gives_the_counts_of_rust() -> None:
    vary = {"policy": ["lru", LruCache], "partition": ["shared", "equal", "hull"]}
    assert_equal_to_rust(cachewright.compare(bundled("4s", capacity="48MiB"), vary), 6)


def test_the_whole_mail_trace_under_hull_gives_the_hits_of_rust() -> None:
    stack = bundled("100%", partition="hull", capacity="128MiB")
    stack["tenant"] = [tenant for tenant in stack["tenant"] if tenant["name"] == "mail"]
    result = cachewright.compare(stack, {"policy": ["lru", LruCache]})
    assert_equal_to_rust(result, 2)
    assert result.cases["accesses"][0] == 337_561


@pytest.mark.parametrize("write", ["write-back", "write-through", "write-around", "read-only"])
def test_write_modes_and_partitions_give_the_counts_of_rust(write: str) -> None:
    vary = {"policy": BOTH, "partition": ["shared", "equal", "hull"]}
    assert_equal_to_rust(cachewright.compare(bundled(write=write), vary), 12)


def test_trims_and_warmup_give_the_counts_of_rust() -> None:
    vary = {"policy": BOTH, "cache.trim": ["drop", "ignore"], "replay.warmup": ["0s", "1s"]}
    result = cachewright.compare(bundled(), vary)
    assert_equal_to_rust(result, 16)
    assert any(case["total"]["invalidations"] for case in result.document["cases"])


def test_goals_and_closed_loops_give_the_counts_of_rust() -> None:
    stack = bundled(partition="soft-qos")
    stack["tenant"][1]["goal_hit_ratio"] = 0.5
    vary = {"policy": BOTH, "replay.loop": ["open", "closed"]}
    assert_equal_to_rust(cachewright.compare(stack, vary), 8)


@pytest.mark.parametrize("spec", ["tiered", "flash-cache", "ssd"])
def test_devices_give_the_times_of_rust(spec: str) -> None:
    vary = {"policy": ["lru", LruCache], "partition": ["shared", "hull"]}
    settings = {"replay.stop": "1s", "replay.interval": "200ms", "cache.capacity": "8MiB"}
    if spec == "flash-cache":
        settings["flash.superblock"] = "64KiB"
    result = cachewright.compare(SPECS / f"{spec}.toml", vary, settings=settings)
    assert_equal_to_rust(result, 4)


def test_the_number_of_threads_changes_nothing() -> None:
    vary = {"policy": [LruCache, FifoCache], "partition": ["equal", "hull"]}
    one, four = (cachewright.compare(bundled(), vary, threads=n).document for n in (1, 4))
    assert one == four


@pytest.mark.parametrize("policy", ["python:own.py:Own", type("Own", (), {})])
def test_curves_say_that_they_run_no_policy_of_python(traces: Path, policy: Any) -> None:
    with pytest.raises(cachewright.SpecError, match="Own`, expected names of policies that are"):
        cachewright.mrc("a.csv", [policy])
