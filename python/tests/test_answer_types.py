"""Documents as classes: what commands return is loaded whole, and written back the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachewright import _native, answers
from cachewright._native import SpecError
from cachewright.documents import dump, load, load_all

STACK = """
name = "two"
[cache]
capacity = "40 blocks"
policy = "lru"
partition = "equal"
[replay]
windows = 4
curves = true
[[tenant]]
name = "a"
trace = "a.csv"
goal_hit_ratio = 0.1
[[tenant]]
name = "b"
trace = "b.csv"
"""
DEVICES = """
[device.cache]
model = "fixed-latency"
[device.backing]
model = "fixed-latency"
[machine]
alone = true
"""
DRIVE = """
[device.ssd]
model = "icache-table1"
blocks = 32
over_provisioning = 0.28
block = "512KiB"
[machine]
system = "ssd"
"""


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """Return the place of a stack file beside two small traces."""
    for name, step in (("a", 7), ("b", 11)):
        lines = (
            f"1,{'RW'[at % 3 == 0]},{at * step % 97 * 4096},4096,{at * 100}\n" for at in range(900)
        )
        (tmp_path / f"{name}.csv").write_text("".join(lines))
    return tmp_path / "stack.toml"


def _whole(kind: type[Any], text: str) -> Any:
    document = json.loads(text)
    found = load(kind, document)
    assert dump(found) == document
    assert json.dumps(dump(found)) == json.dumps(document)
    return found


def _run(stack: Path, text: str) -> answers.RunAnswer:
    none: Any = {"threads": 1, "out": None, "fresh": False, "load": None, "progress": None}
    return _whole(answers.RunAnswer, _native.run(text, str(stack), [], [], **none))


def test_a_run_is_loaded_whole(stack: Path) -> None:
    found = _run(stack, STACK)
    assert found.cases[0].total.accesses == sum(one.accesses for one in found.cases[0].tenants)
    assert found.cases[0].timing is None
    assert found.cases[0].tenants[1].goal_met is None
    closed = STACK.replace("windows = 4", 'windows = 4\nloop = "closed"')
    assert _run(stack, closed).cases[0].total.run_time_ns is not None


def test_a_run_on_flash_is_loaded_whole(stack: Path) -> None:
    flash = '[flash]\nseparation = "none"\nsuperblock = "32KiB"\nreserve = 2\n'
    flash += 'over_provisioning = "200%"\n'
    drive = _run(stack, STACK + flash).cases[0].flash
    assert drive is not None
    assert drive.streams[0].lifetimes is None


def test_a_run_on_devices_is_loaded_whole(stack: Path) -> None:
    timing = _run(stack, STACK + DEVICES).cases[0].timing
    assert timing is not None
    assert timing.tenants[0].slowdown is not None
    assert timing.devices[0].model == "fixed-latency"
    larger = STACK.replace("[cache]", '[cache]\nblock = "8KiB"')
    timing = _run(stack, larger + DRIVE).cases[0].timing
    assert timing is not None
    assert timing.drive is not None
    assert timing.drive.wear.max >= 0


def test_other_answers_are_loaded_whole(stack: Path) -> None:
    call: Any = {"threads": 1, "progress": None}
    curves = {"policies": ["lru", "sieve"], "points": 5, "verify": 2}
    mrc = _whole(answers.CurvesAnswer, _native.mrc(STACK, str(stack), [], curves, **call))
    assert mrc.curves[0].points[0][2] is None
    size = {"precision": 0.1}
    plan = _whole(answers.PlanAnswer, _native.plan(STACK, str(stack), [], size, **call))
    assert plan.tenants[1].goal_hit_ratio is None
    trace, view = str(stack.parent / "a.csv"), {"block": "4KiB", "volume": None, "progress": None}
    info = _native.info(trace, None, "fail", {}, **view)
    assert _whole(answers.TraceInfo, info).volumes[0].requests == 900


def test_write_amplification_is_loaded_whole(stack: Path) -> None:
    options = {
        "op": ["50%"],
        "separations": ["none", "sepbit"],
        "reclaims": ["greedy"],
        "superblock": "32KiB",
        "page": "4KiB",
        "reserve": 2,
        "drive_writes": 3.0,
        "loop": True,
    }
    call: Any = {"trainer": None, "threads": 1, "progress": None}
    found = _native.wa(STACK, str(stack), [], options, **call)
    found = _whole(answers.AmplificationAnswer, found)
    assert found.cases[0].streams[0].lifetimes is not None
    assert found.model is None


def test_lists_are_loaded_whole() -> None:
    own = {"formats": answers.FormatEntry, "schemes": answers.NamedSchemeEntry}
    for stage, what in _native.stages():
        document = json.loads(_native.entries(stage))
        kind = own.get(stage, answers.SchemeEntry)
        assert document, what
        assert dump(load_all(kind, document)) == document


def test_what_does_not_fit_is_named(stack: Path) -> None:
    document = dump(_run(stack, STACK))
    assert isinstance(document, dict)
    document["workload"]["requests"] = "many"
    with pytest.raises(SpecError, match=r"workload\.requests: found text, expected an integer"):
        load(answers.RunAnswer, document)
    del document["workload"]["requests"]
    with pytest.raises(SpecError, match=r"workload: found no key `requests`, expected one"):
        load(answers.RunAnswer, document)
    document["workload"] |= {"requests": 1, "colour": 2}
    with pytest.raises(SpecError, match=r"found key `colour`, which `Workload` does not have"):
        load(answers.RunAnswer, document)
    with pytest.raises(SpecError, match=r"curves\[0\]\.points\[0\]: found 1 values, expected 2"):
        load_all(answers.TenantCurve, [{"tenant": "a", "points": [[1]]}], "curves")
