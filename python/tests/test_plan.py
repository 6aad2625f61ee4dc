"""The command `plan` and `cachewright.plan`.

For: `cachewright.cli.plan`. Must never know: how sizes are tried.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Command

import cachewright


@pytest.fixture
def stack(traces: Path) -> Path:
    """Return a stack of two loops: 20 blocks and 50 blocks."""
    for name, blocks, laps in (("loop20", 20, 50), ("loop50", 50, 20)):
        rows = [f"1,R,{n % blocks * 4096},4096,{n * 10}" for n in range(blocks * laps)]
        (traces / f"{name}.csv").write_text("\n".join(rows) + "\n")
    tenants = "".join(
        f'[[tenant]]\nname = "{name}"\ntrace = "{name}.csv"\ngoal_hit_ratio = 0.5\n'
        for name in ("loop20", "loop50")
    )
    path = traces / "plan.toml"
    path.write_text(f'[cache]\ncapacity = "1MiB"\n[replay]\ninterval = "1ms"\n{tenants}')
    return path


def test_plan_names_what_each_needs_alone_and_together(stack: Path, command: Command) -> None:
    answer = command("plan", str(stack), "--precision", "0.000001")
    assert answer.status == 0, answer.err
    assert "together: 280KiB" in answer.out
    lines = {line.split()[0]: line for line in answer.out.splitlines() if line.split()}
    assert "80KiB" in lines["loop20"]
    assert "200KiB" in lines["loop50"]
    assert "400KiB" in lines["equal"]
    assert "1.43 x" in lines["equal"]
    assert {"soft-qos", "soft-qos-x", "hull", "equal", "shared"} <= set(lines)
    assert "280KiB under soft-qos-x is the smallest cache that meets" in answer.out
    assert "that meets 2 goals" in answer.out
    document = json.loads(command("plan", str(stack), "--partition", "equal", "--json").out)
    assert [tenant["alone_blocks"] for tenant in document["tenants"]] == [20, 50]
    assert document["partitions"][0]["quota_blocks"] == [50, 50]


def test_plan_says_when_a_goal_is_beyond_any_cache(stack: Path, command: Command) -> None:
    words = ["plan", str(stack), "--set", "tenant.loop50.goal_hit_ratio=0.99"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    sentence = (
        "loop50: no cache size meets the goal 0.9900; the best achievable hit ratio is 0.9500"
    )
    assert sentence in answer.out
    assert "no size" in answer.out
    assert "No cache size meets every goal (2 goals) under soft-qos, soft-qos-x" in answer.out


def test_plan_refuses_a_stack_without_goals(traces: Path, command: Command) -> None:
    stack = traces / "bare.toml"
    stack.write_text('[cache]\ncapacity = "1MiB"\n[[tenant]]\nname = "a"\ntrace = "a.csv"\n')
    answer = command("plan", str(stack))
    assert answer.status == 2
    assert "found no goal, expected `goal_hit_ratio`" in answer.err
    with pytest.raises(cachewright.SpecError, match="found no goal"):
        cachewright.plan(stack)


def test_a_tenant_without_a_goal_is_best_effort(stack: Path, command: Command) -> None:
    text = stack.read_text()
    stack.write_text(text[: text.rindex("goal_hit_ratio")])
    answer = command("plan", stack, "--partition", "equal,soft-qos-x", "--out", "kept")
    assert answer.status == 0, answer.err
    assert "note: best effort, without a goal: loop50" in answer.err
    lines = [line.split() for line in answer.out.splitlines()]
    assert ["loop50", "best", "effort", "-", "0.9500"] in lines
    assert "together: 80KiB" in answer.out
    assert "under soft-qos-x is the smallest cache that meets 1 goal. " in answer.out
    assert "Next is equal with " in answer.out
    assert answer.out.splitlines()[-2] == "result: kept"
    kept = json.loads(Path("kept/plan.json").read_text())
    assert kept["best"] == "soft-qos-x"
    assert len(kept["partitions"][0]["hit_ratios"]) == 2
    other = command("plan", stack, "--set", "name=other", "--partition", "equal", "--out", "kept")
    assert other.status == 2
    assert "found the result of `plan` (" in other.err


def test_plan_writes_its_page(stack: Path, command: Command) -> None:
    answer = command("plan", stack, "--partition", "equal", "--report")
    assert answer.status == 0, answer.err
    assert "report: results/plan-plan/report.html" in answer.out
    assert "<h1>plan: plan</h1>" in Path("results/plan-plan/report.html").read_text()
    assert Path("results/plan-plan/plan.json").exists()


def test_a_fleet_file_without_its_option_is_refused_by_it(traces: Path, command: Command) -> None:
    Path("fleet.toml").write_text("[hosts]\ncount = 2\n")
    answer = command("plan", "fleet.toml")
    assert answer.status == 2
    assert "fleet.toml: found `[hosts]`, a fleet file; expected `--fleet` with it" in answer.err
