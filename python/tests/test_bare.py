"""`run` and `compare` on traces without a stack file, and `all` among their values.

For: `cachewright.stack` and `cachewright.cli.sources`. Must never know: how cases are run.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

import cachewright
from cachewright.stack import USUAL_CAPACITIES, USUAL_POLICIES, of_traces
from cachewright.traces import TraceOptions


def _document(command: Command, *words: str) -> dict[str, Any]:
    answer = command(*words, "--json")
    assert answer.status == 0, answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def _settings(document: dict[str, Any], key: str) -> list[str]:
    return list(dict.fromkeys(case["settings"][f"cache.{key}"] for case in document["cases"]))


def test_a_trace_runs_as_the_same_stack_would(stack: Path, command: Command) -> None:
    alone = 'name = "a"\n[cache]\ncapacity = "512KiB"\npolicy = "arc"\n[[tenant]]\n'
    (stack.parent / "alone.toml").write_text(f'{alone}name = "a"\ntrace = "a.csv"\n')
    expected = _document(command, "run", "alone.toml")
    found = _document(command, "run", "a.csv", "--policy", "arc", "--capacity", "512KiB")
    assert found["cases"][0]["total"] == expected["cases"][0]["total"]
    assert found["workload"] == expected["workload"]


def test_several_traces_are_a_tenant_each(traces: Path, command: Command) -> None:
    found = _document(
        command,
        "compare",
        "a.csv",
        "b.csv",
        "--policy",
        "lru,arc",
        "--partition",
        "shared,hull",
        "--capacity",
        "256KiB,10%wss",
    )
    assert [tenant["name"] for tenant in found["tenants"]] == ["a", "b"]
    assert found["name"] == "a-b"
    assert len(found["cases"]) == 2 * 2 * 2
    assert _settings(found, "capacity") == ["256KiB", "10%wss"]


def test_what_is_not_given_is_chosen_and_said(traces: Path, command: Command) -> None:
    answer = command("compare", "a.csv")
    assert answer.status == 0, answer.err
    assert "--policy chooses others" in answer.err
    assert "--capacity chooses others" in answer.err
    quiet = command("compare", "a.csv", "--quiet")
    assert (quiet.out, quiet.err) == (answer.out, "")
    found = _document(command, "compare", "a.csv")
    assert _settings(found, "policy") == list(USUAL_POLICIES)
    assert _settings(found, "capacity") == list(USUAL_CAPACITIES)
    assert set(USUAL_POLICIES) <= {entry.name for entry in cachewright.list("policies")}
    one = command("run", "a.csv")
    assert "capacity 10%wss" in one.err
    assert "lru, shared" in one.out
    given = command("run", "a.csv", "--set", "cache.capacity=64KiB")
    assert (given.status, given.err) == (0, "")


def test_options_of_the_cache_are_short_for_set_and_vary(stack: Path, command: Command) -> None:
    short = command("run", "stack.toml", "--policy", "arc", "--block", "8KiB", "--json")
    long = command("run", "stack.toml", "--set", "policy=arc", "--set", "block=8KiB", "--json")
    assert short.out == long.out
    short = command("compare", "stack.toml", "--policy", "lru,arc", "--json")
    long = command("compare", "stack.toml", "--vary", "policy=lru,arc", "--json")
    assert short.out == long.out
    both = _document(
        command, "compare", "stack.toml", "--vary", "cache.policy=lru", "--policy", "arc"
    )
    assert _settings(both, "policy") == ["lru", "arc"]


def test_traces_are_opened_as_their_options_say(traces: Path, command: Command) -> None:
    text = (traces / "a.csv").read_text()
    (traces / "both.csv").write_text(text + (traces / "b.csv").read_text())
    found = _document(command, "run", "both.csv", "--volume", "1", "--on-bad-record", "skip")
    assert found["cases"][0]["total"]["requests"] == text.count("\n")
    wrong = command("run", "both.csv", "--format", "msr")
    assert wrong.status == 2
    assert "both.csv" in wrong.err


@pytest.mark.parametrize("words", [["--policy", "all"], ["--vary", "policy=all"]])
def test_all_is_every_policy_that_can_run_here(
    stack: Path, command: Command, words: list[str]
) -> None:
    answer = command("compare", "stack.toml", *words, "--json")
    assert answer.status == 0, answer.err
    names = _settings(json.loads(answer.out), "policy")
    entries = {entry.name: entry.needs for entry in cachewright.list("policies")}
    assert names == [name for name, needs in entries.items() if "model" not in needs]
    left_out = [line for line in answer.err.splitlines() if "policy=all leaves out" in line]
    assert [line.split()[4] for line in left_out] == [
        f"{name}:" for name, needs in entries.items() if "model" in needs
    ]
    assert all("expected" in line for line in left_out)


def test_all_leaves_out_what_a_closed_loop_cannot_run(stack: Path, command: Command) -> None:
    words = ["compare", "stack.toml", "--policy", "all", "--partition", "all", "--set"]
    answer = command(*words, "replay.loop=closed", "--json")
    assert answer.status == 0, answer.err
    document = json.loads(answer.out)
    assert "belady" not in _settings(document, "policy")
    assert "policy=all leaves out belady: " in answer.err
    assert "hull" in _settings(document, "partition")
    assert "partition=all leaves out soft-qos: " in answer.err
    assert len(document["cases"]) == len(_settings(document, "policy")) * len(
        _settings(document, "partition")
    )


def test_all_names_no_policy_twice(stack: Path, command: Command) -> None:
    names = _settings(_document(command, "compare", "stack.toml", "--policy", "arc,all"), "policy")
    assert names[0] == "arc"
    assert len(names) == len(set(names))


def test_a_policy_that_knows_the_future_is_never_called_best(stack: Path, command: Command) -> None:
    answer = command("compare", "stack.toml", "--policy", "fifo,benefit-oracle,belady")
    assert "benefit-oracle (bound)" in answer.out
    assert "best: fifo" in answer.out


def test_names_of_tenants_are_their_own() -> None:
    stack = of_traces(["x/a.csv", "y/a.csv.gz", "all.csv", ".csv", "b"], TraceOptions())
    names = [tenant["name"] for tenant in stack["tenant"]]
    assert names == ["a", "a-2", "all-2", "trace", "b"]
    assert stack["name"] == "a-a-2-all-2-and-more"


def test_csv_has_plain_numbers_of_every_tenant(stack: Path, command: Command) -> None:
    words = ["compare", "stack.toml", "--policy", "lru,arc"]
    answer = command(*words, "--csv")
    assert (answer.status, answer.err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    document = _document(command, *words)
    assert [(row["cache.policy"], row["tenant"]) for row in rows] == [
        (policy, tenant) for policy in ("lru", "arc") for tenant in ("a", "b", "all")
    ]
    for case, row in zip(document["cases"], rows[2::3], strict=True):
        assert int(row["accesses"]) == case["total"]["accesses"]
        assert float(row["hit_ratio"]) == case["total"]["hit_ratio"]
        assert int(row["capacity_bytes"]) == 512 << 10


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        (["mrc", "a.csv"], ["tenant", "size_bytes", "miss_ratio"]),
        (["characterize", "a.csv"], ["period", "reads", "classes_sequential"]),
        (["list", "policies"], ["name", "doc", "needs"]),
        (["check", "stack.toml"], ["key", "value"]),
        (
            ["wa", "a.csv", "--superblock", "16KiB", "--op", "50%", "--separation", "none,sepbit"],
            ["separation", "op", "write_amplification"],
        ),
        (
            [
                "plan",
                "stack.toml",
                "--partition",
                "equal",
                "--set",
                "tenant.a.goal_hit_ratio=0.5",
                "--set",
                "tenant.b.goal_hit_ratio=0.4",
            ],
            ["partition", "tenant", "hit_ratio", "quota_blocks"],
        ),
    ],
    ids=lambda value: value[0],
)
def test_every_table_is_csv_when_asked(
    stack: Path, command: Command, words: list[str], columns: list[str]
) -> None:
    answer = command(*words, "--csv", "--quiet")
    assert (answer.status, answer.err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert rows
    assert set(columns) <= set(rows[0])
    assert all(None not in row and None not in row.values() for row in rows)
