"""A drive under the cache: what `run` and `compare` tell of it.

For: tables, conclusion, report and frames of stacks with a `[flash]` table. Must never know: how
drives are simulated.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Command

import cachewright

FLASH = '[flash]\nsuperblock = "32KiB"\nover_provisioning = "150%"\nreserve = 2\n'


@pytest.fixture
def flash_stack(stack: Path) -> Path:
    """Return the stack of two tenants with a drive under its cache."""
    stack.write_text(stack.read_text().replace("[replay]", FLASH + "[replay]"))
    return stack


def test_one_case_shows_its_drive(flash_stack: Path, command: Command) -> None:
    answer = command("run", "stack.toml")
    assert answer.status == 0, answer.err
    assert re.search(r"drive +512KiB, 150.0% over-provisioning", answer.out)
    assert re.search(r"separation +none, cost-benefit", answer.out)
    assert "extra writes" in answer.out
    assert "F/U" not in answer.out


def test_write_amplification_stands_beside_hit_ratios(flash_stack: Path, command: Command) -> None:
    vary = ["--vary", "policy=lru,s3-fifo", "--vary", "flash.separation=none,sepbit"]
    words = ["compare", "stack.toml", *vary, "--vary", "capacity=256KiB,512KiB"]
    answer = command(*words, "--out", "r", "--report")
    assert answer.status == 0, answer.err
    assert answer.out.count("ranked by hit ratio") == 2, "separations share a table"
    lines = [line.split() for line in answer.out.splitlines()]
    assert any(words[:3] == ["policy", "partition", "separation"] for words in lines)
    assert "fewest flash writes: " in answer.out
    text = (flash_stack.parent / "r" / "report.html").read_text()
    assert "extra writes" in text
    result = cachewright.Result.load("r")
    frame = result.cases
    assert frame.height == 8
    drive = result.document["cases"][0]["flash"]
    assert frame["flash_user_pages"][0] == drive["user_pages"]
    assert frame["flash_write_amplification"].max() > 1
    assert frame["cache_writes"].to_list() == frame["flash_user_pages"].to_list()


def test_a_bound_is_refused_by_key(flash_stack: Path, command: Command) -> None:
    answer = command("run", "stack.toml", "--set", "separation=future-knowledge")
    assert answer.status == 2
    assert "`flash.separation`: found `future-knowledge`, which needs the future" in answer.err
