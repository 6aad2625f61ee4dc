"""What cases are ranked by, and the conclusion that follows: by hits, by a drive, by goals."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import get_args

import pytest
from fixtures import LOOP, Command, frame

import cachewright
from cachewright import SpecError
from cachewright.cli import options
from cachewright.report.viewing import gist
from cachewright.tables import ranking, summary

GIB = 1 << 30


@pytest.fixture(scope="module")
def drives() -> cachewright.Result:
    """Return overwrites on a log with little and with much room to spare."""
    rng = random.Random(1)
    scattered = [4096 * rng.randrange(240) for _ in range(20_000)]
    stack = {
        "name": "drives",
        "cache": {"capacity": "1MiB"},
        "flash": {"superblock": "32KiB", "over_provisioning": "30%"},
        "tenant": [{"name": "t", "trace": frame(scattered, "write")}],
    }
    return cachewright.compare(stack, {"flash.over_provisioning": ["20%", "60%"]})


def test_hits_rank_what_is_of_a_cache() -> None:
    result = cachewright.compare(
        frame(LOOP), {"policy": ["lru", "belady"], "capacity": ["120KiB", "400KiB"]}
    )
    rank = ranking.rank_of(result.answer)
    assert rank is ranking.HITS
    said = summary.conclusion(result.answer, rank)
    assert said.startswith(
        "At 400KiB use lru: hit ratio 0.9500. That is 100.0% of what is possible"
    )


def test_the_smallest_cache_that_gives_nearly_all_is_advised() -> None:
    capacities = ["120KiB", "240KiB", "400KiB", "4MiB"]
    result = cachewright.compare(frame(LOOP), {"capacity": capacities})
    rank = ranking.rank_of(result.answer)
    assert summary.advised(result.answer, rank).settings["cache.capacity"] == "240KiB"
    said = summary.conclusion(result.answer, rank)
    assert "At 240KiB the stack as it is: hit ratio 0.9500" in said
    assert "4MiB, 17 times as much, hits 0.0000 more" in said


def test_a_drive_is_ranked_by_its_writes(drives: cachewright.Result) -> None:
    answer = drives.answer
    rank = ranking.rank_of(answer)
    assert rank is ranking.AMPLIFICATION
    low, high = (case.flash.write_amplification for case in reversed(answer.cases) if case.flash)
    assert low < high
    (ranked,) = summary.rankings(answer, rank)
    assert [case.settings["flash.over_provisioning"] for case in ranked.cases] == ["60%", "20%"]
    table = summary.ranked(answer, ranked)
    assert "over_provisioning" in [column.heading for column in table.columns], (
        "what was varied is a column"
    )
    headings = [column.heading for column in table.columns]
    # Beside what was varied, where no page cuts it off.
    assert headings[headings.index("over_provisioning") + 1] == "write amplification"
    assert summary.best_case(answer).settings["flash.over_provisioning"] == "60%"
    assert "Use over_provisioning=60%: write amplification" in summary.conclusion(answer, rank)


def test_a_rank_can_be_asked_for(drives: cachewright.Result) -> None:
    assert ranking.rank_of(drives.answer, "flash-writes") is ranking.FLASH_WRITES
    with pytest.raises(SpecError, match="--rank-by: found `p99`, expected a stack with devices"):
        ranking.rank_of(drives.answer, "p99")
    with pytest.raises(SpecError, match="found `speed`, expected one of hits, mean, p99"):
        ranking.rank_of(drives.answer, "speed")


def test_the_command_line_knows_every_rank() -> None:
    named = get_args(get_args(options.RankBy)[0])[0]
    assert set(get_args(named)) == set(ranking.RANKS)


def test_goals_rank_before_hits() -> None:
    stack = {
        "name": "goals",
        "cache": {"capacity": "4MiB"},
        "tenant": [{"name": "t", "trace": frame(LOOP), "goal_hit_ratio": 0.9}],
    }
    result = cachewright.compare(stack, {"capacity": ["120KiB", "400KiB", "4MiB"]})
    rank = ranking.rank_of(result.answer)
    assert rank is ranking.GOALS
    assert summary.best_case(result.answer).settings["cache.capacity"] == "400KiB"
    assert "At 400KiB the stack as it is: 1 of 1 goal met" in summary.conclusion(
        result.answer, rank
    )


def test_keys_are_told_apart_by_their_shortest_ends() -> None:
    keys = ["cache.policy", "device.a.separation", "device.b.separation", "flash.over_provisioning"]
    assert summary._heads_of_keys(keys) == [
        "policy",
        "a.separation",
        "b.separation",
        "over_provisioning",
    ]


def test_the_command_line_concludes_and_names_the_next_command(
    folder: Path, command: Command
) -> None:
    frame(LOOP).write_csv("a.csv")
    words = ["compare", "a.csv", "--capacity", "120KiB,400KiB", "--policy", "lru,arc"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "At 400KiB use lru: hit ratio 0.9500." in answer.out
    assert "next: cachewright run a.csv --policy lru --capacity 400KiB --report" in answer.out
    further = command(*words, "--set", "replay.stop=10s")
    assert "--capacity 400KiB --report" in further.out
    assert "cachewright run a.csv --set replay.stop=10s --policy" in further.out
    said = next(line for line in further.out.splitlines() if line.startswith("next: "))
    assert command(*said.removeprefix("next: cachewright ").split()).status == 0
    alone = command("run", "a.csv", "--capacity", "400KiB", "--block", "8KiB")
    assert "next: cachewright compare a.csv --block 8KiB\n" in alone.out
    assert "next:" not in command(*words, "--format", "csv").out, "how it is read is not named"
    refused = command(*words, "--rank-by", "slowdown")
    assert refused.status == 2
    said = "--rank-by: found `slowdown`, expected a stack with devices and `machine.alone = true`"
    assert said in refused.err
    assert refused.out == "", "it is refused before anything runs"


def test_the_capacity_of_the_answer_is_shown_first(traces: Path, command: Command) -> None:
    sizes = "64KiB,2MiB,4MiB"
    answer = command("compare", "a.csv", "--policy", "lru,arc", "--capacity", sizes)
    shown = [line for line in answer.out.splitlines() if ": ranked by" in line]
    assert [line.split(":")[0].removeprefix("capacity ") for line in shown] == [
        "2MiB", "64KiB", "4MiB"
    ]  # fmt: skip
    assert "At 2MiB use " in answer.out


def test_a_dataset_has_a_row_per_volume(folder: Path, command: Command) -> None:
    Path("vols").mkdir()
    frame(LOOP).write_csv("vols/loop.csv")
    frame([4096 * (at % 7) for at in range(400)]).write_csv("vols/few.csv")
    answer = command("compare", "vols", "--policy", "lru,arc", "--capacity", "20KiB,400KiB")
    assert answer.status == 0, answer.err
    assert "2 volumes: what to use, and hit ratio at that size" in answer.out
    assert "best policy: several alike on 2; the sizes advised are" in answer.out
    assert "report: results/vols-compare/report.html" in answer.out
    curves = command("mrc", "vols")
    assert re.search(r"nine tenths of all volumes' hits take \d+KiB under lru together", curves.out)
    assert "results/vols-mrc/answers.jsonl" in curves.out
    again = command("report", "results/vols-compare")
    assert again.status == 0, again.err
    page = Path("results/vols-compare/report.html").read_text()
    assert "<h1>vols-compare</h1>" in page
    assert "Hit ratio over the volumes" in page
    beside = command("report", "results/vols-compare", "results/vols-mrc")
    assert beside.status == 2
    assert "found answers on the volumes of a dataset, expected a result that" in beside.err
    held = gist.of(Path("results/vols-compare/answers.jsonl"))
    assert held == gist.Gist("compare on volumes", "lru, arc", "", "2 volumes")


def test_a_dataset_has_curves_of_every_policy(folder: Path, command: Command) -> None:
    Path("vols").mkdir()
    frame(LOOP).write_csv("vols/loop.csv")
    words = ["--policy", "lru,lirs", "--sizes", "120KiB,240KiB"]
    answer = command("mrc", "vols", *words)
    assert answer.status == 0, answer.err
    assert re.search(r"loop +lru .* 180KiB +228KiB +0.0500", answer.out), answer.out
    assert re.search(r"loop +lirs ", answer.out), answer.out
    assert re.search(r"take 228KiB under lru, [0-9.]+KiB under lirs together", answer.out)


def test_volumes_that_hit_nothing_or_want_more_are_told_apart(
    folder: Path, command: Command
) -> None:
    Path("vols").mkdir()
    frame(LOOP).write_csv("vols/loop.csv")
    frame([4096 * at for at in range(400)]).write_csv("vols/once.csv")
    # A loop of sixty blocks through fewer: lru has lost each block when it is read again.
    answer = command("compare", "vols", "--policy", "lru,lirs", "--capacity", "20KiB,80KiB")
    assert answer.status == 0, answer.err
    said = next(line for line in answer.out.splitlines() if line.startswith("best policy: "))
    assert said == (
        "best policy: lirs on 1, no cache on 1, where less than 1.0% of accesses hit; "
        "the sizes advised are 80KiB together; on 1 it is the largest size tried; try larger ones"
    )
    assert re.search(r"once +no cache +- +0.0000 +400 +1.56MiB", answer.out), answer.out


def test_one_trace_that_hits_nothing_or_wants_more_is_told_so(
    folder: Path, command: Command
) -> None:
    frame(LOOP).write_csv("loop.csv")
    more = command("compare", "loop.csv", "--policy", "lru,lirs", "--capacity", "20KiB,80KiB")
    assert "At 80KiB use lirs: " in more.out
    assert "Larger sizes were not tried." in more.out
    none = command("compare", "loop.csv", "--policy", "lru,fifo", "--capacity", "20KiB,80KiB")
    assert "No cache compared is worth its space: lru, 20KiB hits most, 0.0000" in none.out
    assert "next: " not in none.out


def test_a_comparison_of_what_changes_nothing_says_so(folder: Path, command: Command) -> None:
    frame(LOOP).write_csv("loop.csv")
    words = ["--policy", "lru", "--capacity", "400KiB", "--vary", "seed=1,2"]
    answer = command("compare", "loop.csv", *words)
    assert "Nothing compared differs: all 2 cases have hit ratio 0.9500." in answer.out


def test_a_dataset_is_not_ranked_by_what_its_volumes_cannot_tell(
    folder: Path, command: Command
) -> None:
    Path("vols").mkdir()
    frame(LOOP).write_csv("vols/loop.csv")
    refused = command("compare", "vols", "--rank-by", "p99", "--out", "kept")
    assert refused.status == 2
    assert "--rank-by: found `p99`, expected a stack with devices" in refused.err
    assert not Path("kept").exists(), "it is refused before the volumes run"
