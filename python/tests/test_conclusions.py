"""Answers end with a paragraph and a command; reports begin with the same paragraph."""

from __future__ import annotations

from html import escape
from pathlib import Path

import polars as pl
import pytest
from fixtures import LOOP, Command, frame

from cachewright import words
from cachewright.tables import conclusion


def conclusion_and_command(out: str) -> tuple[str, list[str]]:
    """Return the paragraph before the lines of files, and the words of the command after them."""
    lines = [line for line in out.splitlines() if line]
    following = lines[-1].removeprefix("next: cachewright ")
    assert following != lines[-1], out
    said = [line for line in lines[:-1] if not line.startswith(("result: ", "report: "))]
    return said[-1], following.split()


@pytest.fixture
def trace(folder: Path) -> Path:
    """Return a trace of reads and writes in a loop."""
    path = folder / "loop.csv"
    frame(LOOP).write_csv(path)
    return path


def check_same_on_page(paragraph: str, page: Path) -> None:
    """Fail unless a page's first box has the paragraph."""
    text = page.read_text(encoding="utf-8")
    box = text.index('<section class="best">')
    assert escape(paragraph) in text[box : text.index("</section>", box)]


def test_mrc_says_which_size_and_what_twice_of_it_gives(trace: Path, command: Command) -> None:
    answer = command("mrc", "loop.csv", "--report")
    said, further = conclusion_and_command(answer.out)
    assert said.startswith("At 240KiB lru has a hit ratio of 0.9500")
    check_same_on_page(said, Path("results/loop-mrc/report.html"))
    assert further[:2] == ["compare", "loop.csv"]
    assert command(*further).status == 0
    several = command("mrc", "loop.csv", "--policy", "lru,arc")
    assert conclusion_and_command(several.out)[1][0] == "run"


def test_curves_of_several_files_lead_to_a_comparison_of_all(
    folder: Path, command: Command
) -> None:
    frame(LOOP[:600]).write_csv("early.csv")
    later = frame(LOOP[600:]).with_columns(pl.col("time_ns") + 600 * 20_000_000)
    later.write_csv("late.csv")
    answer = command("mrc", "early.csv", "late.csv", "--block", "8KiB", "--set", "seed=3")
    said, further = conclusion_and_command(answer.out)
    assert further[:4] == ["compare", "early.csv", "late.csv", "--join"]
    assert further[4:8] == ["--set", "seed=3", "--block", "8KiB"]
    assert command(*further).status == 0, said


def test_wa_says_which_separation_and_offers_more_space(folder: Path, command: Command) -> None:
    rows = {"time_ns": range(40_000), "op": ["W"] * 40_000, "length_bytes": [4096] * 40_000}
    offsets = [at * 7919 % 4000 * 4096 for at in range(40_000)]
    pl.DataFrame({**rows, "offset_bytes": offsets}).write_csv("writes.csv")
    words = ["--separation", "none,2r", "--superblock", "64KiB", "--loop", "--drive-writes", "3"]
    answer = command("wa", "writes.csv", *words, "--report")
    assert answer.status == 0, answer.err
    said, further = conclusion_and_command(answer.out)
    assert said.startswith("At 7.0% over-provisioning use ")
    check_same_on_page(said, Path("results/writes-wa/report.html"))
    assert further[:2] == ["wa", "writes.csv"]
    assert further[further.index("--op") + 1] == "7%,14%,28%"
    for asked in (["--superblock", "64KiB"], ["--loop"], ["--drive-writes", "3.0"]):
        at = further.index(asked[0])
        assert further[at : at + len(asked)] == asked
    assert command(*further).status == 0
    much = command("wa", "writes.csv", *words, "--op", "28%")
    further = conclusion_and_command(much.out)[1]
    assert further[further.index("--op") + 1] == "28%"
    several = command("wa", "writes.csv", *words, "--op", "7%,14%")
    further = conclusion_and_command(several.out)[1]
    assert further[further.index("--op") + 1] == "7%,14%"


def test_plan_says_the_smallest_cache_and_runs_it(trace: Path, command: Command) -> None:
    Path("s.toml").write_text(
        'name = "s"\n[cache]\ncapacity = "400KiB"\n'
        '[[tenant]]\nname = "a"\ntrace = "loop.csv"\ngoal_hit_ratio = 0.9\n'
        '[[tenant]]\nname = "b"\ntrace = "loop.csv"\n'
    )
    answer = command("plan", "s.toml", "--partition", "soft-qos-x", "--out", "kept")
    assert answer.status == 0, answer.err
    said, further = conclusion_and_command(answer.out)
    assert "under soft-qos-x is the smallest cache that meets 1 goal" in said
    assert command("report", "kept").status == 0
    check_same_on_page(said, Path("kept/report.html"))
    assert further[:3] == ["run", "s.toml", "--capacity"]
    ran = command(*further[:-1])
    assert ran.status == 0, ran.err
    assert "0.9000 met" in ran.out


def test_a_study_says_which_policy_suits_most_volumes(trace: Path, command: Command) -> None:
    Path("vols").mkdir()
    trace.rename("vols/loop.csv")
    answer = command("fleet", "study", "vols", "--out", "study", "--separation", "")
    assert answer.status == 0, answer.err
    lines = answer.out.splitlines()
    said = next(line for line in lines if "of 1 volume, " in line)
    assert command("report", "study").status == 0
    check_same_on_page(said, Path("study/report.html"))
    assert conclusion_and_command(answer.out)[1][:3] == ["compare", "vols", "--policy"]


def test_a_larger_cache_is_beside_the_one_that_is_used() -> None:
    mib = 1 << 20
    more = conclusion.more_hits(4 * mib, 0.5, 8 * mib, 0.75)
    assert more == "8MiB, 2 times as much, hits 0.2500 more"
    assert conclusion.more_hits(4 * mib, 0.5, 4 * mib, 0.5) == ""
    assert conclusion.of_possible(0.5, "belady", 0.0) == ""
    assert conclusion.paragraph(["One", "", "Two"]) == "One. Two."
    assert conclusion.written_per_day(1.0, 1_000_000_000, "flash") == "", "a second is no day"


@pytest.mark.parametrize("size", [1, 1023, 1024, 410_208 << 10, (1 << 40) + 1])
def test_a_size_at_least_is_never_less(size: int) -> None:
    from cachewright._native import parse_bytes

    text = str(words.size_at_least(size))
    assert size <= parse_bytes(text) <= size * 1.002
