"""The command `wa` and what it gives to Python.

For: `cachewright.cli.wa`, `cachewright.Amplification`. Must never know: how schemes decide.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from conftest import Command

import cachewright

WA = ["wa", "a.csv", "--op", "60%,100%", "--superblock", "64KiB", "--separation"]


def test_wa_ranks_schemes_and_marks_bounds(traces: Path, command: Command) -> None:
    answer = command(*WA, "none,2r,future-knowledge", "--reclaim", "greedy,cost-benefit")
    assert answer.status == 0, answer.err
    assert "scaled to what is written" in answer.out
    assert "over-provisioning 60.0%" in answer.out
    assert "over-provisioning 100.0%" in answer.out
    lines = answer.out.splitlines()
    assert sum("future-knowledge (bound)" in line for line in lines) == 2 * 4, (
        "each table has two parts"
    )
    assert not any("*" in line for line in lines if "(bound)" in line)
    assert sum("*" in line for line in lines) >= 2
    best = [line for line in lines if line.startswith("best at ")]
    assert len(best) == 2
    assert all("the bound future-knowledge" in line for line in best)
    assert "drive writes, expected at least 10" in answer.err


def test_wa_loops_and_loads_only_when_asked(traces: Path, command: Command) -> None:
    words = [*WA, "none", "--json"]
    plain = json.loads(command(*words).out)
    assert (plain["looped"], plain["load_pages"]) == (False, 0)
    looped = json.loads(command(*words, "--loop", "--drive-writes", "12").out)
    assert looped["looped"] is True
    assert any("as asked" in warning for warning in looped["warnings"])
    (traces / "load.csv").write_text("1,W,0,2097152,0\n")
    loaded = json.loads(command(*words, "--load", "load.csv").out)
    assert (loaded["load_pages"], loaded["user_pages"]) == (512, plain["user_pages"])
    stack = traces / "stack.toml"
    tenants = "".join(f'[[tenant]]\nname = "{n}"\ntrace = "{n}.csv"\n' for n in "ab")
    stack.write_text(f'[cache]\ncapacity = "1MiB"\n{tenants}')
    both = json.loads(command("wa", "stack.toml", *words[2:], "--load", "b=load.csv").out)
    assert both["user_pages"] > plain["user_pages"]


def test_a_drive_of_what_is_live_recycles_its_pages(traces: Path, command: Command) -> None:
    lines = []
    for number in range(300):
        lines.append(f"1,W,{number * 65536},65536,{number}")
        if number >= 9:
            lines.append(f"1,T,{(number - 9) * 65536},65536,{number}")
    (traces / "files.csv").write_text("\n".join(lines) + "\n")
    words = ["wa", "files.csv", "--op", "100%", "--superblock", "32KiB", "--separation", "none"]
    answer = command(*words, "--capacity", "live")
    assert answer.status == 0, answer.err
    assert "drive of 640KiB (scaled to what is live at once)" in answer.out
    assert "30 drive writes" in answer.out
    assert "drive of 18.8MiB (scaled to what is written)" in command(*words).out


def test_predictions_are_judged_and_a_repeated_trace_is_marked(
    traces: Path, command: Command
) -> None:
    shiro = '{ name = "shiro", window_share = 1.0 }'
    words = [*WA, f"none,{shiro}", "--loop", "--drive-writes", "12", "--out", "r", "--report"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "predictions of short lifetimes, over-provisioning 60.0%" in answer.out
    assert "shiro(window_share=1) †" in answer.out
    assert "none †" not in answer.out
    assert "(†)" in answer.err
    found = cachewright.Amplification.load("r")
    shiro = found.cases.filter(pl.col("separation") != "none").row(0, named=True)
    assert 0 < shiro["accuracy"] <= 1
    assert 0 <= shiro["meta_miss_share"] <= 1
    assert shiro["metadata_bytes_per_page"] == 36
    parts = found.predictions.filter(pl.col("case") == shiro["case"])
    counts = parts.select(pl.sum_horizontal("short_right", "long_right").sum()).item()
    judged = found.document["cases"][shiro["case"]]["classifier"]["judged"]
    assert abs(counts / judged - shiro["accuracy"]) < 1e-9
    assert abs(parts["cumulative_accuracy"][-1] - shiro["accuracy"]) < 1e-9
    text = (traces / "r" / "report.html").read_text()
    assert "Accuracy of predictions" in text
    assert "metadata misses" in text


def test_wa_writes_a_result_and_a_report(traces: Path, command: Command) -> None:
    answer = command(*WA, "none,sepbit", "--out", "r", "--report", "--figures", "svg")
    assert answer.status == 0, answer.err
    assert "report: r/report.html" in answer.out
    text = (traces / "r" / "report.html").read_text()
    assert "a: write amplification" in text
    assert text.count('<div class="figure">') == 8, "sepbit predicts too"
    assert len(list((traces / "r" / "figures").glob("*.svg"))) == 8
    found = cachewright.Amplification.load("r")
    assert found.cases["separation"].to_list() == ["none", "sepbit"] * 2
    one = found.document["cases"][0]
    assert found.series.filter(pl.col("case") == 0)["flash_pages"].sum() == one["flash_pages"]
    assert found.streams["user_pages"].sum() == 4 * one["user_pages"]
    assert found.lifetimes["user_pages"].sum() == 4 * one["user_pages"]
    assert found.best().write_amplification == found.cases["write_amplification"].min()


def test_spare_space_without_a_percent_sign_is_refused(traces: Path, command: Command) -> None:
    answer = command("wa", "a.csv", "--op", "7%,28")
    assert answer.status == 2
    assert "--op: found `28`, expected percentages such as `7%,28%`" in answer.err
