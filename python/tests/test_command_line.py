"""The command line as a newcomer meets it: help everywhere, errors that say what to do.

For: `cachewright.cli`. Must never know: how results are made.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from conftest import Command
from hypothesis import given, settings
from hypothesis import strategies as st

import cachewright
from cachewright.cli import parsing, progress

COMMANDS = [
    [],
    ["run"],
    ["compare"],
    ["mrc"],
    ["check"],
    ["report"],
    ["list"],
    ["list", "policies"],
    ["list", "partitions"],
    ["list", "layouts"],
    ["list", "characterizers"],
    ["list", "separations"],
    ["list", "reclaims"],
    ["list", "devices"],
    ["list", "formats"],
    ["characterize"],
    ["train", "kinds"],
    ["wa"],
    ["trace"],
    ["trace", "info"],
    ["trace", "head"],
    ["trace", "convert"],
    ["trace", "slice"],
    ["trace", "merge"],
    ["trace", "synth"],
]


# What takes long, or writes where it is not asked to.
LONGER = [
    ["plan"],
    ["reproduce"],
    ["import"],
    ["import", "mqsim"],
    ["train"],
    ["train", "shiro"],
    ["train", "icache"],
    ["train", "mlcache"],
    ["train", "rc-rnn"],
    ["serve"],
    ["live"],
    ["live", "format"],
    ["live", "check"],
    ["live", "dump"],
    ["live", "writeback"],
    ["live", "repair"],
]


@pytest.mark.parametrize("words", [*COMMANDS, *LONGER], ids=" ".join)
def test_every_command_has_help(folder: Path, command: Command, words: list[str]) -> None:
    answer = command(*words, "--help")
    assert answer.status == 0
    assert "Usage" in answer.out
    assert answer.err == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rn"], ["unknown command", "run"]),
        (["run"], ["found no SOURCES", "stack file", "traces", "--help"]),
        (["run", "nowhere.toml"], ["nowhere.toml", "no such file"]),
        (["run", "stack.toml", "--what"], ["--what"]),
        (["run", "stack.toml", "--threads", "many"], ["many"]),
        (["run", "stack.toml", "--threads", "-1"], ["threads", "-1"]),
        (["run", "stack.toml", "--set", "capacity"], ["--set", "`capacity`", "KEY=VALUE"]),
        (["run", "stack.toml", "--set", "capacity=64"], ["capacity", "`64`", "unit"]),
        (["run", "stack.toml", "--set", "capacity=64MB4"], ["`64MB4`", "MiB"]),
        (["run", "stack.toml", "--set", "policy=s3fifo"], ["`s3fifo`", "nearest is `s3-fifo`"]),
        (["run", "stack.toml", "--set", "partition=shard"], ["`shard`", "nearest is `shared`"]),
        (["run", "stack.toml", "--set", "cache.capcity=1MiB"], ["capcity", "`capacity`"]),
        (["compare", "stack.toml"], ["--vary"]),
        (["compare", "stack.toml", "--vary", "policy=lru,lruu"], ["`lruu`", "`lru`"]),
        (["compare", "stack.toml", "--vary", "policy=lru,"], ["empty value"]),
        (["mrc", "stack.toml", "--method", "shard"], ["`shard`", "shards"]),
        (["mrc", "stack.toml", "--points", "2000000000"], ["--points:", "2000000000", "10000"]),
        (["mrc", "stack.toml", "--windows", "100000"], ["--windows:", "100000", "1000"]),
        (["mrc", "a.csv", "--method", "shards-size", "--size", "3"], ["--size:", "3"]),
        (["mrc", "a.csv", "--out", "a.csv"], ["a.csv: found a file, expected a folder"]),
        (["plan", "stack.toml"], ["found no goal", "`goal_hit_ratio`", "at least one"]),
        (["wa", "a.csv", "--op", "7"], ["--op", "`7`", "such as `7%,28%`"]),
        (["wa", "a.csv", "--op", "0%"], ["--op: found `0%`", "spare pages"]),
        (["wa", "a.csv", "--reserve", "1"], ["--reserve: found `1`", "from 2 to"]),
        (
            ["wa", "a.csv", "--op", "1%", "--superblock", "16KiB"],
            ["over-provisioning", "expected at least", "raise `op`"],
        ),
        (["wa", "a.csv"], ["`superblock`", "1MiB", "kept free", "smaller"]),
        (["wa", "a.csv", "--separation", "sepbitt"], ["`sepbitt`", "nearest is `sepbit`"]),
        (["wa", "a.csv", "--reclaim", "greedyy"], ["`greedyy`", "nearest is `greedy`"]),
        (["wa", "a.csv", "--capacity", "1MiB"], ["--capacity", "256 pages"]),
        (["wa", "a.csv", "--load", "nowhere.csv"], ["nowhere.csv"]),
        (["wa", "stack.toml", "--load", "a.csv"], ["TENANT=PATH", "a, b"]),
        (["wa", "a.csv", "--figures", "gif"], ["--figures", "`gif`"]),
        (["check", "a.csv"], ["a.csv"]),
        (["run", "a.csv", "--policy", "lru,arc"], ["--policy", "`lru,arc`", "one value"]),
        (["run", "a.csv", "--policy", "all"], ["--policy", "`all`", "one value"]),
        (["run", "a.csv", "--capacity", "10"], ["capacity", "`10`", "unit"]),
        (["run", "a.csv", "stack.toml"], ["the stack file stack.toml", "traces alone"]),
        (["run", "stack.toml", "stack.toml"], ["stack.toml and 1 more", "one stack"]),
        (["run", "stack.toml", "--volume", "1"], ["--volume", "a stack file", "a trace"]),
        (["run", "a.csv", "--json", "--csv"], ["`--json` and `--csv`", "one of them"]),
        (["run", "a.csv", "--figures", "jpg"], ["--figures", "`jpg`", "svg, png or pdf"]),
        (["report", "r", "--figures", "jpg"], ["--figures", "`jpg`", "svg, png or pdf"]),
        (["compare", "a.csv", "--policy", "lru,,arc"], ["--policy", "empty value"]),
        (["compare", "a.csv", "--policy", "lru,al"], ["`al`"]),
        (["compare", "stack.toml", "--vary", "block=all"], ["block", "`all`"]),
        (["mrc", "a.csv", "--threads", "-1"], ["`-1`", "--threads", ">= 0"]),
        (["mrc", "a.csv", "--threads", "9" * 20], ["--threads", "<= 1024"]),
        (["mrc", "a.csv", "--salts", "-4"], ["--salts: found `-4`", "from 0 to 16"]),
        (["wa", "a.csv", "--reserve", "9" * 12], ["--reserve: found `999999999999`", "to 1048576"]),
        (["plan", "stack.toml", "--precision=3"], ["--precision: found `3.0`", "from 1e-9 to 1"]),
        (["report", "nowhere"], ["nowhere", "result"]),
        (["report", "."], [".: found no result", "`run`, `compare`, `mrc`"]),
        (["report", "a.csv"], ["a.csv: found a file", "expected a result folder"]),
        (["trace", "info", "nowhere.csv"], ["nowhere.csv: found no such file", "expected a trace"]),
        (["trace", "info", "."], [".: found a folder, expected a trace"]),
        (["trace", "convert", "a.csv", "."], [".: found a folder, expected a file to write"]),
        (["run", "stack.toml", "--out", "a.csv"], ["a.csv: found a file, expected a folder"]),
        (["import", "mqsim", "nowhere.xml"], ["nowhere.xml: no such file", "expected", "XML"]),
        (["characterize", "a.csv", "--model", "stack.toml"], ["stack.toml: found", "model file"]),
        (["train", "kinds", "a=a.csv", "--out", "m.safetensors"], ["found 1 kind,", "at least 2"]),
        (
            ["train", "kinds", "a=a.csv", "b=b.csv", "--out", "m"],
            ["--out: found m", ".safetensors"],
        ),
        (["train", "rc-rnn", "stack.toml", "--out", "a.csv"], ["the file a.csv", "a folder"]),
        (["train", "icache", "stack.toml", "--out", "a.csv"], ["the file a.csv", "a folder"]),
        (["train", "mlcache", "stack.toml", "--out", "."], ["the folder .", "model file to write"]),
        (["train", "shiro", "a.csv", "--out", "."], ["the folder .", "model file to write"]),
        (["trace", "info", "stack.toml"], ["stack.toml", "format"]),
        (["trace", "info", "a.csv", "--format", "alibba"], ["`alibaba`"]),
        (["trace", "info", "a.csv", "--volume", "7"], ["`7`", "1"]),
        (["trace", "head", "a.csv", "--volume", "7"], ["`7`", "`1`"]),
        (["trace", "slice", "a.csv", "x", "--from", "10"], ["`10`", "unit"]),
        (["trace", "convert", "a.csv", "x", "--to", "parket"], ["`parket`", "parquet"]),
        (["check", "a.toml", "b.toml"], ["found `b.toml`", "nothing more"]),
        (["trace", "convert", "a.csv", "x"], ["x: found a name", ".parquet, or .csv", ".zst"]),
        (["trace", "convert", "a.csv", "x.foo"], ["x.foo: found a name", "format by its name"]),
        (["trace", "convert", "a.csv", "x.parquet.gz"], ["suffix of gzip", "parquet"]),
        (["trace", "slice", "a.csv", "x", "--first", "0"], ["--first: found 0", "1 or more"]),
        (
            ["trace", "slice", "a.csv", "x", "--from", "2s", "--to", "1s"],
            ["from 2s to 1s", "end after"],
        ),
        (["trace", "merge", "a.csv"], ["--out"]),
        (["trace", "merge", "--out", "x"], ["no trace to merge"]),
        (["trace", "merge", "a.csv", "--out", "x", "--start", "c=1s"], ["`c`", "a"]),
        (["trace", "merge", "a.csv", "--out", "x", "--scale", "a=-1"], ["`-1`"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_command_is_refused_in_one_sentence(
    stack: Path, command: Command, words: list[str], expected: list[str]
) -> None:
    answer = command(*words)
    assert answer.status == 2, answer.err
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1 or "parse error at line" in answer.err
    assert answer.err[7] == answer.err[7].lower()
    for part in expected:
        assert part.lower() in answer.err.lower()
    assert answer.out == ""
    assert not (stack.parent / "x").exists()


def test_a_malformed_record_is_named_or_skipped(traces: Path, command: Command) -> None:
    good = (traces / "a.csv").read_text()
    (traces / "bad.csv").write_text(good + "1,R,-4096,4096,9\n" + good)
    answer = command("trace", "info", "bad.csv")
    assert answer.status == 2
    assert "line 4001, column 3" in answer.err
    assert "-4096" in answer.err
    skipped = command("trace", "info", "bad.csv", "--on-bad-record", "skip")
    assert skipped.status == 0
    assert "1 malformed record skipped" in skipped.err
    assert "line 4001" in skipped.err


def test_run_shows_tenants(stack: Path, command: Command) -> None:
    answer = command("run", "stack.toml")
    assert answer.status == 0, answer.err
    assert answer.out.startswith("two: 2 tenants, 8,000 requests, ")
    lines = [line.split() for line in answer.out.splitlines()]
    assert [words[0] for words in lines if words and words[0] in "a b all"] == ["a", "b", "all"]
    assert list(stack.parent.glob("results")) == []


def test_compare_marks_the_best_and_writes_a_result(stack: Path, command: Command) -> None:
    words = ["compare", "stack.toml", "--vary", "policy=lru,fifo,belady", "--vary"]
    words += ["partition=shared,equal", "--vary", "capacity=256KiB,512KiB", "--out", "r"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "capacity 256KiB: hit ratio by policy and partition" in answer.out
    assert "capacity 512KiB: ranked by hit ratio" in answer.out
    best = [line for line in answer.out.splitlines() if line.startswith("best at ")]
    assert len(best) == 2, "more cache always hits more: a best of each capacity"
    assert best[0].startswith("best at capacity 256KiB: ")
    assert best[1].startswith("best at capacity 512KiB: lru, equal: hit ratio ")
    assert "the bound belady, shared has " in best[1]
    lines = answer.out.splitlines()
    assert any(re.match(r"3 +lru +equal +0\.\d{4}\*", line) for line in lines)
    assert not any("*" in line for line in lines if "belady (bound)" in line)
    assert (stack.parent / "r" / "result.json").exists()
    again = command(*words, "--json")
    document = json.loads(again.out)
    assert len(document["cases"]) == 12
    shown = command("report", "r")
    assert shown.status == 0
    assert (stack.parent / "r" / "report.html").exists()


def test_a_report_without_a_folder_goes_to_results(stack: Path, command: Command) -> None:
    answer = command("run", "stack.toml", "--figures", "svg")
    assert answer.status == 0, answer.err
    assert "report: results/two/report.html" in answer.out
    assert list((stack.parent / "results/two/figures").glob("*.svg"))
    wrong = command("run", "stack.toml", "--figures", "gif")
    assert wrong.status == 2
    assert "`gif`" in wrong.err


def test_check_prints_defaults(stack: Path, command: Command) -> None:
    answer = command("check", "stack.toml", "--set", "cache.capacity=1MiB")
    assert answer.status == 0
    pairs = dict(line.split(maxsplit=1) for line in answer.out.splitlines() if " " in line)
    assert pairs["cache.capacity"] == "1MiB"
    assert pairs["cache.block"] == "4KiB"
    assert pairs["tenant[2].name"] == "b"
    document = json.loads(command("check", "stack.toml", "--json").out)
    assert document["cache"]["capacity"] == "512KiB"


def test_mrc_of_a_trace_and_of_a_stack(stack: Path, command: Command) -> None:
    answer = command("mrc", "a.csv", "--points", "5")
    assert answer.status == 0, answer.err
    assert "miss ratio" in answer.out
    words = ["mrc", "stack.toml", "--policy", "fifo", "--method", "exact", "--sizes"]
    document = json.loads(command(*words, "128KiB,512KiB", "--json").out)
    names = {curve["tenant"] for curve in document["curves"]}
    assert {"a", "b"} <= names
    verified = command("mrc", "a.csv", "--sizes", "128KiB,512KiB", "--verify", "2")
    assert "compared with exact simulation" in verified.out


def test_mrc_shows_policies_side_by_side(stack: Path, command: Command) -> None:
    answer = command("mrc", "stack.toml", "--policy", "lru,sieve,arc", "--sizes", "128KiB,512KiB")
    assert answer.status == 0, answer.err
    assert answer.err == "", "nothing is sampled, so nothing is remarked"
    headers = [line.split() for line in answer.out.splitlines() if "sieve" in line]
    assert headers[:3] == [["size", "blocks", "lru", "sieve", "arc"]] * 3
    assert "misses least" in answer.out
    sampled = command("mrc", "stack.toml", "--policy", "lru,sieve,arc", "--method", "mini")
    assert sampled.err.count("note: ") == 1, sampled.err
    assert "9 of 9 curves" in sampled.err


def test_mrc_keeps_its_curves_and_draws_them(stack: Path, command: Command) -> None:
    words = ["mrc", "stack.toml", "--policy", "lru,fifo", "--points", "4", "--out", "kept"]
    answer = command(*words, "--report", "--figure", "curves.svg")
    assert answer.status == 0, answer.err
    assert "<svg" in Path("curves.svg").read_text()
    assert "result: kept" in answer.out
    assert "report: kept/report.html" in answer.out
    page = Path("kept/report.html").read_text()
    assert "miss ratio" in page.lower()
    curves = cachewright.Curves.load("kept")
    assert curves.policies == ["lru", "fifo"]
    kept = pl.read_parquet("kept/mrc.parquet")
    assert kept.equals(curves.points.cast(dict(kept.schema)))
    other = command("mrc", "a.csv", "--out", "kept")
    assert other.status == 2
    assert "found the result of `two` (" in other.err
    assert command("mrc", "a.csv", "--points", "3", "--out", "kept", "--force").status == 0
    assert cachewright.Curves.load("kept").policies == ["lru"]


def test_a_figure_of_another_kind_is_refused_before_anything_is_measured(
    stack: Path, command: Command
) -> None:
    answer = command("mrc", "nowhere.csv", "--figure", "curves.bmp")
    assert answer.status == 2
    assert "--figure: found `curves.bmp`, expected a file ending in one of .svg" in answer.err


def test_characterize_chooses_a_period_and_says_so(traces: Path, command: Command) -> None:
    answer = command("characterize", "a.csv")
    assert answer.status == 0, answer.err
    assert "periods of 100ms, chosen for a trace of 4s" in answer.out
    rows = [line for line in answer.out.splitlines() if line.strip()]
    assert 30 < len(rows) < 60, "some tens of periods"
    starts = [line.split()[0] for line in rows[3:]]
    assert len(set(starts)) == len(starts), "each period has a beginning of its own"
    asked = command("characterize", "a.csv", "--every", "2s")
    assert "periods of 2s\n" in asked.out
    refused = command("characterize", "a.csv", "--every", "often")
    assert refused.status == 2
    assert "expected `auto`, a duration such as `60s`" in refused.err


def test_list_shows_every_entry_and_its_settings(folder: Path, command: Command) -> None:
    for kind, known in (
        ("policies", "lru"),
        ("partitions", "hull"),
        ("layouts", "dedicated"),
        ("separations", "sepbit"),
        ("reclaims", "greedy"),
        ("devices", "hdd-7200-2tb"),
        ("formats", "alibaba"),
    ):
        entries = json.loads(command("list", kind, "--json").out)
        brief, full = command("list", kind).out, command("list", kind, "-v").out
        assert known in brief
        for entry in entries:
            assert entry["name"] in brief
            assert entry["doc"][:30] in full
            for setting in entry["settings"]:
                assert setting["name"] in full
        # Each sentence is wrapped, other than on a terminal, which draws it as wide as it is.
        assert max(map(len, full.splitlines())) <= 120


def test_trace_commands_fit_together(traces: Path, command: Command) -> None:
    assert command("trace", "convert", "a.csv", "a.parquet").status == 0
    first, second = (command("trace", "head", p, "-n", "5").out for p in ("a.csv", "a.parquet"))
    assert first == second
    assert len(first.splitlines()) == 6
    sliced = ("trace", "slice", "a.csv", "s.csv", "--from", "1s", "--to", "2s")
    assert command(*sliced).status == 0
    lines = (traces / "s.csv").read_text().splitlines()
    assert lines == (traces / "a.csv").read_text().splitlines()[1000:2000]
    assert command("trace", "slice", "a.csv", "f.parquet", "--first", "7").status == 0
    assert len(command("trace", "head", "f.parquet").out.splitlines()) == 8
    merged = command("trace", "merge", "a.csv", "b.csv", "--out", "m.parquet", "--start", "b=1s")
    assert "8,000 requests" in merged.out
    info = json.loads(command("trace", "info", "m.parquet", "--json").out)
    assert {volume["name"] for volume in info["volumes"]} == {"a/1", "b/2"}
    assert info["span_ns"] == 3_999_000_000 + 1_000_000_000
    assert "requests over time" in command("trace", "info", "a.csv").out


def test_synth_is_seeded(folder: Path, command: Command) -> None:
    (folder / "s.toml").write_text(
        '[synth]\nseed = 1\n[[tenant]]\nname = "t"\ncount = 50\nsize = "4KiB"\n'
        'arrival = { kind = "poisson", rate = "1000/s" }\nread_share = 0.5\n'
        'pattern = { kind = "zipf", span = "400KiB", alpha = 1.0 }\n'
    )
    texts = []
    for seed in ("1", "1", "2"):
        words = ["trace", "synth", "s.toml", "o", "--seed", seed, "--to", "alibaba", "--force"]
        answer = command(*words)
        assert answer.status == 0, answer.err
        assert answer.out.startswith("o: 50 requests, ")
        texts.append((folder / "o").read_bytes())
    assert texts[0] == texts[1] != texts[2]


# What no command needs that shows no report and trains nothing.
def test_piping_is_quiet(stack: Path) -> None:
    ended = subprocess.run(
        f"{sys.executable} -m cachewright trace head a.csv -n 4000 | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split()[0] == "time_ns"
    assert ended.stderr == ""


def test_an_interrupt_stops_a_run_with_one_sentence(
    traces: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "".join(f"1,R,{(n * 7919) % 99991 * 4096},4096,{n}\n" for n in range(200_000))
    (traces / "long.csv").write_text(long)

    def interrupted(_: object, stage: str, *__: object) -> None:
        if stage == "replaying":
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(progress._Lines, "on_progress", interrupted)
    # A shell that starts tests in the background has interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    seeds = "seed=" + ",".join(str(seed) for seed in range(300))
    words = ["compare", "long.csv", "--policy", "lru,arc,lirs", "--vary", seeds, "--out", "r"]
    answer = command(*words, "--capacity", "1%wss")
    signal.signal(signal.SIGINT, before)
    kept = len(list((traces / "r" / "cases").glob("*.json")))
    expected = f"{kept} of 900 cases are kept in r; the same command goes on from there"
    assert (answer.status, answer.out) == (130, "")
    assert answer.err == f"error: interrupted; {expected}\n"


def test_colours_are_off_when_asked(stack: Path) -> None:
    for extra, coloured in (({"NO_COLOR": "1"}, False), ({}, True)):
        env = {**os.environ, "TERM": "xterm-256color", **extra}
        if coloured:
            env.pop("NO_COLOR", None)
        main, worker = pty.openpty()
        subprocess.run(
            [sys.executable, "-m", "cachewright", "run", "nowhere.toml"],
            stdout=worker,
            stderr=worker,
            env=env,
            check=False,
        )
        os.close(worker)
        shown = os.read(main, 65536).decode()
        os.close(main)
        assert "error: " in shown.replace("\x1b[0m", "").replace("\x1b[1;31m", "")
        assert ("\x1b[1;31m" in shown) == coloured


WORDS = [
    *{word for words in COMMANDS for word in words},
    *["stack.toml", "a.csv", "b.csv", "out.parquet", ".", "", "-", "--", "-n", "-1", "1e9", "0"],
    *["--vary", "policy=lru", "capacity=1B", "--set", "cache.block=3KiB", "=", "--out", "--json"],
    *["--from", "1s", "--to", "--volume", "1", "--on-bad-record", "skip", "--format", "csv"],
    *["--policy", "lru,arc", "all", "--capacity", "64KiB,1%wss", "--csv", "-q", "--figures", "jpg"],
    *["--method", "exact", "--rate", "2", "--sizes", "1%wss", "--windows", "3", "-v", "\x00é"],
    "--force",
]


@pytest.mark.parametrize("words", [["report", "a"], ["check"], ["run", "a.toml", "--out"]])
def test_null_characters_are_refused_in_one_sentence(command: Command, words: list[str]) -> None:
    answer = command(*words, "\0é")
    assert answer.status == 2
    assert answer.err == "error: found `\\u{0}é`, expected words without null characters\n"


@given(st.lists(st.sampled_from(WORDS), max_size=7))
@settings(max_examples=120)
def test_no_command_line_ends_in_a_traceback(
    stack: Path, command: Command, words: list[str]
) -> None:
    answer = command(*words)
    assert answer.status in (0, 1, 2)
    assert answer.status == 0 or answer.err.splitlines()[-1] != ""
    assert "Traceback" not in answer.err


@given(st.lists(st.text("abc{}[]()=\"' ,.0", max_size=12), min_size=1, max_size=4))
def test_splitting_values_loses_nothing(parts: list[str]) -> None:
    text = ",".join(parts)
    assert ",".join(parsing.split_values(text)).replace(" ", "") == text.replace(" ", "")


def test_values_split_outside_brackets() -> None:
    text = 'lru,{ name = "s3-fifo", small_share = 0.2 },[1,2],"a,b"'
    assert parsing.split_values(text) == [
        "lru",
        '{ name = "s3-fifo", small_share = 0.2 }',
        "[1,2]",
        '"a,b"',
    ]
