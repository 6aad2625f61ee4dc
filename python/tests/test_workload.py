"""What a volume's requests are like: `trace report` and `observe`, their page and their stack."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browser import chromium, window
from fixtures import LOOP, Command, fits_schema, frame, trace_text

import cachewright
from cachewright import api
from cachewright.live import observing
from cachewright.report import workload as drawn
from cachewright.report.viewing import gist
from cachewright.tables import workload as tables
from cachewright.traces import write_trace

BUNDLED = Path(__file__).resolve().parents[2] / "data"


def mixed(requests: int = 20_000) -> pl.DataFrame:
    """Return a trace of hot blocks that are overwritten, and of a scan that comes back twice."""
    rng = random.Random(7)
    rows: list[tuple[int, int, int, str]] = []
    for at in range(requests):
        time = at * 1_000_000
        if at % 4 == 3:
            rows.append((time, (1 << 30) + at % 5000 // 4 * 65536, 65536, "read"))
        else:
            block = int(400 * rng.random() ** 3)
            rows.append((time, block * 4096, 4096, rng.choice(["read", "write"])))
    schema = ["time_ns", "offset_bytes", "length_bytes", "op"]
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.fixture
def trace(folder: Path) -> Path:
    path = folder / "vol.csv"
    mixed().write_csv(path)
    return path


def test_it_agrees_with_trace_info_where_all_blocks_are_followed() -> None:
    path = BUNDLED / "mail.csv.zst"
    found, info = observing.workload(path), api.info(path)
    assert found.sample_rate == 1.0
    assert found.requests == info.requests
    assert found.working_set_bytes == info.working_set_bytes
    assert found.written_working_set_bytes == info.written_working_set_bytes
    assert found.reuse.accesses == info.reuse.accesses
    # A block that was trimmed is new to a cache, and not new to the trace.
    assert found.reuse.first_uses == info.reuse.compulsory
    exact = dict(info.reuse.lru_miss_ratio)
    same = [(exact[one.blocks], one.miss_ratio) for one in found.curve if one.blocks in exact]
    assert len(same) > 4
    assert all(abs(one - other) < 1e-9 for one, other in same)


def test_a_sample_in_little_memory_is_near_the_whole() -> None:
    path = BUNDLED / "web.csv.zst"
    whole, part = (observing.workload(path, memory=size) for size in ("1GiB", "12MiB"))
    assert part.sample_rate < 1.0
    assert part.memory_bytes < 12 << 20
    assert part.requests == whole.requests
    assert abs(part.distinct_blocks / whole.distinct_blocks - 1) < 0.05
    for one, other in zip(part.sizes, whole.sizes, strict=True):
        assert abs(one.hit_ratio - other.hit_ratio) < 0.03
    assert any("estimates" in value for _, value in tables.facts(part).rows)


def test_the_report_ends_with_an_answer_a_page_and_a_stack(trace: Path, command: Command) -> None:
    answer = command("trace", "report", "vol.csv")
    assert answer.status == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[-1].startswith("next: cachewright compare vol.csv --policy auto,")
    said = next(line for line in lines if line.startswith("A cache of "))
    folder = Path("results/vol-workload")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert escape(said) in page
    for title in ("Requests over time", "Where requests go", "When blocks are used again"):
        assert title in page
    document = json.loads((folder / "workload.json").read_text())
    fits_schema("WorkloadAnswer", document)
    stack = tomllib.loads((folder / "stack.toml").read_text())
    assert stack["cache"]["write"] == "write-back"
    assert command("check", str(folder / "stack.toml")).status == 0
    assert command(*lines[-1].removeprefix("next: cachewright ").split()).status == 0
    again = command("trace", "report", "vol.csv")
    assert again.status == 0, again.err
    frame(LOOP).write_csv("vol.parquet.csv")
    other = command("trace", "report", "vol.parquet.csv")
    assert other.status == 2
    assert "found the workload of vol.csv, expected another --out or `--force`" in other.err


def test_findings_name_scans_overwrites_and_the_popular(trace: Path) -> None:
    found = observing.workload(trace)
    said = [one.sentence for one in tables.findings(found)]
    scans = next(one for one in said if "scans" in one)
    assert "no LRU cache below " in scans
    assert any("overwrite a block written before" in one for one in said)
    assert any(one.startswith("Half of the accesses go to ") for one in said)


def test_a_trace_without_reuse_gets_no_stack(folder: Path, command: Command) -> None:
    frame([4096 * at for at in range(2000)]).write_csv("once.csv")
    answer = command("trace", "report", "once.csv")
    assert answer.status == 0, answer.err
    assert "No cache helps: 100.0% of the block accesses are first uses" in answer.out
    assert "next:" not in answer.out
    assert not Path("results/once-workload/stack.toml").exists()


def test_a_trace_without_times_has_a_page(folder: Path, command: Command) -> None:
    Path("ids.txt").write_text("\n".join(str(at % 50) for at in range(3000)))
    answer = command("trace", "report", "ids.txt", "--format", "ids")
    assert answer.status == 0, answer.err
    # What follows would have to say how the trace is read.
    assert "next:" not in answer.out
    assert "A cache of 200KiB hits 98.3%" in answer.out


def test_other_commands_write_the_page_too(trace: Path, command: Command) -> None:
    answer = command("trace", "info", "vol.csv", "--report")
    assert answer.out.splitlines()[-1] == "report: results/vol-workload/report.html"
    answer = command("characterize", "vol.csv", "--report")
    assert answer.out.splitlines()[-1] == "report: results/vol-workload/report.html"
    assert gist.of(Path("results/vol-workload/workload.json")).command == "trace report"
    refused = command("characterize", ".", "--report")
    assert "--report: found a dataset, expected one trace" in refused.err
    Path("results/vol-workload/report.html").unlink()
    assert command("report", "results/vol-workload").status == 0
    assert Path("results/vol-workload/report.html").exists()


def test_bad_options_are_named(trace: Path, command: Command) -> None:
    answer = command("trace", "report", "vol.csv", "--memory", "1MiB")
    assert answer.status == 2
    assert "--memory: found `1MiB`, expected at least " in answer.err
    answer = command("trace", "report", "vol.csv", "--block", "3KiB")
    assert "--block: found `3KiB`, expected a power of two" in answer.err
    assert "--every: found 0s" in command("observe", "vol.csv", "--every", "0s").err
    assert "expected another --out" in command("trace", "report", "report.html", "--out", ".").err


def blktrace(requests: int) -> bytes:
    """Return the events of two processors in turns, as `blktrace -o -` writes them."""
    rng = random.Random(3)
    turns: list[list[bytes]] = [[], []]
    for at in range(requests):
        action = 1 | (1 << 16 if rng.random() < 0.6 else 2 << 16)
        sector = 8 * int(2000 * rng.random() ** 2)
        event = struct.pack(
            "<IIQQIIIIIHH",
            0x65617407, at, 10_000_000 + at * 100_000, sector, 4096, action, 1, 8 << 20,
            at % 2, 0, 0,
        )  # fmt: skip
        turns[at % 2].append(event)
    parts = []
    for start in range(0, len(turns[0]), 300):
        parts += [b"".join(turn[start : start + 300]) for turn in turns]
    return b"".join(parts)


def observed(*words: str, **more: Any) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "cachewright", "observe", "-", *words]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **more)  # fmt: skip


def test_a_stream_of_blktrace_makes_page_curve_and_stack(folder: Path, command: Command) -> None:
    running = observed("--backing", "/dev/sdb")
    out, err = running.communicate(blktrace(20_000))
    assert running.returncode == 0, err.decode()
    assert "A cache of " in out.decode()
    document = json.loads(Path("observed/workload.json").read_text())
    assert document["requests"] == 20_000
    # In order of time: two processors' turns do not run back.
    assert document["arrivals_ns"]["max"] == 100_000
    stack = tomllib.loads(Path("observed/stack.toml").read_text())
    assert stack["tenant"][0]["backing"] == "/dev/sdb"
    assert stack["serve"]["devices"] == ["cache.img"]
    assert command("check", "observed/stack.toml").status == 0


def test_an_interrupt_ends_a_stream_with_what_was_read(folder: Path) -> None:
    running = observed("--every", "10ms")
    assert running.stdin is not None
    assert running.stderr is not None
    running.stdin.write(blktrace(60_000))
    running.stdin.flush()
    # The stream stays open; the page is there once something was read.
    while b"so far: observed/report.html" not in running.stderr.readline():
        assert running.poll() is None
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate()
    assert running.returncode == 0, err.decode()
    assert "report: observed/report.html" in out.decode()
    assert json.loads(Path("observed/workload.json").read_text())["requests"] > 0


def test_a_bad_record_of_a_stream_leaves_the_page_of_what_came_before(folder: Path) -> None:
    text = trace_text(1, 3000) + "no,request\n"
    running = observed()
    out, err = running.communicate(text.encode())
    assert running.returncode == 2
    assert "line 3001" in err.decode()
    assert "--on-bad-record skip counts such records" in err.decode()
    assert "report: observed/report.html" in out.decode()
    assert 2700 <= json.loads(Path("observed/workload.json").read_text())["requests"] <= 3000
    assert "# Set `backing` to the device" in Path("observed/stack.toml").read_text()
    skipping = observed("--on-bad-record", "skip")
    skipping.communicate(text.encode())
    assert skipping.returncode == 0
    assert json.loads(Path("observed/workload.json").read_text())["requests"] == 3000


def test_the_same_trace_gives_the_same_bytes(folder: Path, command: Command) -> None:
    write_trace(mixed(), folder / "a.parquet")
    for out in ("one", "two"):
        assert command("trace", "report", "a.parquet", "--out", out).status == 0
    for name in ("workload.json", "report.html", "stack.toml"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_draws_every_figure_and_scrolls_nowhere(
    browser: Any, tmp_path: Path, width: int
) -> None:
    found = cachewright.workload(BUNDLED / "mail.csv.zst")
    page = drawn.write(found, tmp_path / "report.html")
    for scheme in ("light", "dark"):
        with window(browser, width, scheme) as view:
            assert view.open(page).faults() == []
            panels = view.page.locator(".panel svg").count()
            assert panels == sum(len(one.plot.panels) for one in drawn.figures(found))


def test_a_period_that_the_trace_ends_in_has_no_rate() -> None:
    found = observing.workload(frame(LOOP * 3, gap_ns=1_000_000_000))
    last = found.periods[-1]
    part = (found.span_ns or 0) - last.start_ns
    assert part < tables.WHOLE_PERIOD * found.period_ns
    figure = next(one for one in drawn.figures(found) if one.name == "rate-over-time")
    (values, *_) = figure.plot.still().to_dict()["datasets"].values()
    rates = {row["rate"] for row in values if row["kind"] == "reads"}
    assert max(rates) - min(rates) < 0.1 * max(rates)


def test_the_stack_reads_the_trace_as_the_report_did(folder: Path, command: Command) -> None:
    rows = frame(LOOP * 2).with_columns(volume=pl.Series(["x", "y"] * len(LOOP)))
    rows.write_csv("two.csv")
    answer = command("trace", "report", "two.csv", "--by-volume")
    assert answer.status == 0, answer.err
    text = Path("results/two-workload/stack.toml").read_text()
    (tenant,) = tomllib.loads(text)["tenant"]
    assert tenant["by_volume"] is True
    assert "by_volume = true" in Path("results/two-workload/report.html").read_text()
    run = command("run", "results/two-workload/stack.toml")
    assert "two/x" in run.out
    assert "--by-volume: found a stream" in command("observe", "-", "--by-volume").err
