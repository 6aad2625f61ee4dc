"""Stacks with devices from the command line and in Python: tables, figures, curves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from conftest import Command

from cachewright import api
from cachewright.answers import RunAnswer
from cachewright.documents import load
from cachewright.report.timed import figures
from cachewright.results import Result
from cachewright.tables import timing

DEVICES = (
    '[device.cache]\nmodel = "fixed-latency"\n[device.backing]\nmodel = "hdd-10045-9gb"\n'
    "[machine]\nalone = true\n"
)


@pytest.fixture
def timed(stack: Path) -> Path:
    """Return a stack file of two tenants on devices, with slow arrivals."""
    path = stack.with_name("timed.toml")
    text = stack.read_text().replace('.csv"\n', '.csv"\ntime_scale = 30\n')
    path.write_text(text + DEVICES)
    return path


def test_run_shows_response_times_devices_and_where_time_went(
    timed: Path, command: Command
) -> None:
    answer = command("run", timed)
    assert answer.status == 0, answer.err
    for words in ("p99.9", "slowdown", "backing rotation", "hdd-10045-9gb", "Little's law", "Jain"):
        assert words in answer.out, words
    assert "overrun" not in answer.out
    document = json.loads(command("run", timed, "--json").out)
    total = document["cases"][0]["timing"]["total"]
    assert sum(total["breakdown_ns"].values()) == pytest.approx(total["mean_ns"])


def test_the_report_draws_every_response_of_the_answer(timed: Path) -> None:
    result = api.run(timed)
    total = timing.of(result.answer.cases[0]).total
    assert total.by_time is not None
    times, requests = zip(*total.by_time, strict=True)
    assert sum(requests) == total.requests
    assert list(times) == sorted(set(times))
    assert times[-1] == total.max_ns
    within = sum(count for time_ns, count in total.by_time if time_ns <= total.p99_ns * 1.13)
    assert within >= 0.99 * total.requests
    drawn = next(one for one in figures(result) if one.name == "response-distribution")
    (rows,) = drawn.plot.panels[0].live()["datasets"].values()
    shares = [row["share"] for row in rows if row["tenant"] == timing.ALL]
    assert shares[0] == 0.0
    assert shares[-1] == (total.requests - 1) / total.requests


def test_devices_that_are_overrun_are_told_of(timed: Path, command: Command) -> None:
    timed.write_text(timed.read_text().replace("time_scale = 30\n", ""))
    answer = command("run", timed, "--capacity", "16KiB", "--report", "--out", "results")
    said = "The devices are overrun: requests arrive for 4s, the last is answered after "
    assert said in answer.out
    assert said in Path("results/report.html").read_text()


def test_a_result_without_responses_by_time_is_read_and_drawn_without_them(
    timed: Path, command: Command
) -> None:
    assert command("run", timed, "--out", "r").status == 0
    path = timed.parent / "r" / "result.json"
    document = json.loads(path.read_text())
    times = document["cases"][0]["timing"]
    for one in (times["total"], *times["tenants"]):
        del one["by_time"]
    path.write_text(json.dumps(document))
    answer = command("report", "r")
    assert answer.status == 0, answer.err
    page = (timed.parent / "r" / "report.html").read_text()
    assert "<h2>Where time went</h2>" in page
    assert "were answered within a time" not in page


def test_compare_names_the_fastest_and_reports_figures(timed: Path, command: Command) -> None:
    answer = command("compare", timed, "--vary", "policy=lru,arc", "--report", "--out", "results")
    assert answer.status == 0, answer.err
    assert "fastest: " in answer.out
    assert re.search("fastest: .*: mean response .*, p99 .*, hit ratio ", answer.out)
    page = (timed.parent / "results" / "report.html").read_text()
    for title in ("Where time went", "Response times", "Response and throughput over time"):
        assert f"<h2>{title}</h2>" in page


STORE = (
    '[device.cache]\nmodel = "ram"\n[device.backing]\nmodel = "fixed-latency"\n'
    '[machine]\nsystem = "flash-store"\n'
    '[flash]\nsuperblock = "64KiB"\nover_provisioning = "50%"\n'
)


def test_a_store_shows_its_log_in_tables_and_the_report(stack: Path, command: Command) -> None:
    path = stack.with_name("store.toml")
    path.write_text(stack.read_text() + STORE)
    answer = command("run", path, "--report", "--out", "results")
    assert answer.status == 0, answer.err
    page = (path.parent / "results" / "report.html").read_text()
    for words in ("write amplification", "segments cleaned", "waited for a segment", "dense"):
        assert words in answer.out, words
        assert words in page or words == "dense", words


CHANNELS = (
    '[device.cache]\nmodel = "open-channel-16"\nchannels = 2\nchips = 1\nplanes = 1\n'
    'blocks = 64\nblock = "64KiB"\npage = "4KiB"\nover_provisioning = 0.25\n'
    '[device.backing]\nmodel = "fixed-latency"\n'
)


def test_channels_are_shown_with_whose_blocks_they_hold(stack: Path, command: Command) -> None:
    path = stack.with_name("channels.toml")
    path.write_text(stack.read_text() + CHANNELS)
    options = ("--set", "layout=dedicated", "--set", "partition=equal", "--set", "capacity=1MiB")
    answer = command("run", path, *options)
    assert answer.status == 0, answer.err
    for words in ("channels (dedicated)", "dies at work", "cleaning"):
        assert words in answer.out, words
    document = json.loads(command("run", path, *options, "--json").out)
    groups = document["cases"][0]["timing"]["channels"]["groups"]
    tenants = [tenant["name"] for tenant in document["cases"][0]["tenants"]]
    assert [group["tenants"] for group in groups] == [[name] for name in tenants]


def test_rooms_and_throughput_are_frames_as_in_the_files(stack: Path, command: Command) -> None:
    path = stack.with_name("rooms.toml")
    path.write_text(stack.read_text() + CHANNELS)
    curves = '{ name = "hull", ahead = true, least_slope = 0.05 }'
    settings = {
        "layout": "flashblox",
        "partition": curves,
        "capacity": "1MiB",
        "replay.windows": "4",
        "replay.throughput_window": "1s",
    }
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    answer = command("run", path, *options, "--out", "rooms")
    assert answer.status == 0, answer.err
    assert re.search(r"space used +\d+\.\d% of what tenants are allocated", answer.out)
    result = Result.load(path.parent / "rooms")
    names = [tenant["name"] for tenant in result.document["tenants"]]
    for name, frame in (("rooms", result.rooms), ("throughput", result.throughput)):
        written = pl.read_parquet(path.parent / "rooms" / f"{name}.parquet")
        assert frame.height > 0
        shown = frame.with_columns(tenant=pl.col("tenant").replace_strict(names, range(len(names))))
        assert shown.rows() == written.rows(), name
    ends = result.rooms.filter(window=3)
    held = ends.select("tenant", held=pl.sum_horizontal("own_blocks", "common_blocks"))
    assert dict(held.rows()) == dict(result.tenants.select("tenant", "occupancy_blocks").rows())
    plain = api.run(stack)
    assert plain.rooms.height == plain.throughput.height == 0
    assert plain.rooms.columns[-3:] == ["own_blocks", "common_blocks", "elsewhere_blocks"]


def test_a_drive_says_how_busy_and_worn_it_was_and_what_it_took(
    stack: Path, command: Command
) -> None:
    path = stack.with_name("drive.toml")
    text = stack.read_text().replace('policy = "lru"', 'policy = "lru"\nblock = "8KiB"')
    path.write_text(
        text + '[device.ssd]\nmodel = "icache-table1"\nblocks = 32\nblock = "512KiB"\n'
        "over_provisioning = 0.28\nidle_power = 2.5\nprogram_energy = 300\n"
        '[machine]\nsystem = "ssd"\n'
    )
    answer = command("run", path, "--report", "--out", "drive")
    assert answer.status == 0, answer.err
    said = ("(analytic fill)", "chips spent", "programming", "erases per block", "10,000 cycles")
    for words in (*said, "drive writes per day", "flash programs", "W on average"):
        assert words in answer.out, words
    further = answer.out.splitlines()[-1].removeprefix("next: cachewright ").split()
    assert further[0] == "compare"
    assert further[2:] == ["--vary", "device.ssd.separation=none,2r,sepbit"]
    assert command(*further).status == 0
    page = (path.parent / "drive" / "report.html").read_text()
    for title in ("How busy the flash was", "<h2>Energy</h2>", "<h2>Flash</h2>", "chip busy"):
        assert title in page, title


def test_a_given_spare_share_decides_how_much_of_a_drive_is_used(
    traces: Path, command: Command
) -> None:
    path = traces / "sata.toml"
    path.write_text(
        '[cache]\ncapacity = "1MiB"\nblock = "16KiB"\n[machine]\nsystem = "ssd"\n'
        '[device.ssd]\nmodel = "sata-850pro"\n[[tenant]]\nname = "a"\ntrace = "a.csv"\n'
    )
    own = api.check(path)["device"]["ssd"]
    assert own["capacity"] == "500107608KiB"
    found = api.check(path, settings={"device.ssd.over_provisioning": 0.28})["device"]["ssd"]
    assert (found["capacity"], found["over_provisioning"]) == ("auto", 0.28)
    # The traces write far less than the drive holds.
    words = ["--vary", "device.ssd.over_provisioning=0.07,0.28", "--vary", "cache.policy=lru,fifo"]
    answer = command("compare", path, *words)
    assert answer.status == 0, answer.err
    assert "As good in every number: over_provisioning=0.28, lru." in answer.out


def test_quantities_have_prefixes_and_lives_units() -> None:
    shown = [timing.quantity(value, "J") for value in (0.0, 3.2e-9, 0.00025, 0.9999, 12.0, 4.5e6)]
    assert shown == ["0J", "3.2nJ", "250uJ", "1J", "12J", "4.5MJ"]
    assert timing.quantity(None, "W") == "-"
    lives = [timing.life(days) for days in (0.5, 30.0, 3652.5, 1e9)]
    assert lives == ["12h", "30 days", "10 years", "more than 1,000,000 days"]


def test_frames_have_times(timed: Path) -> None:
    result = api.compare(timed, {"capacity": ["256KiB", "1MiB"]})
    frame = result.timing
    assert frame.height == 2 * 3, "two cases of two tenants and all"
    assert {"mean_ns", "p999_ns", "slowdown", "backing seek (ns)"} <= set(frame.columns)
    assert "mean_response_ns" in result.cases.columns


def test_latency_curves_fall_and_are_drawn(timed: Path, command: Command) -> None:
    arguments = ("mrc", timed, "--latency", "--sizes", "64KiB,1MiB,4MiB")
    answer = command(*arguments, "--figure", "curve.svg")
    assert answer.status == 0, answer.err
    assert "response time by cache size" in answer.out
    assert "<svg" in (timed.parent / "curve.svg").read_text()
    assert "response" in (timed.parent / "curve-latency.svg").read_text()
    curves = api.mrc(timed, sizes=["64KiB", "4MiB"], latency=True)
    means = curves.latency.filter(curves.latency["tenant"] == "a")["mean_ns"].to_list()
    assert len(means) == 3
    assert means[-1] < means[0]


def test_a_figure_without_devices_or_of_another_kind_is_refused(
    stack: Path, timed: Path, command: Command
) -> None:
    answer = command("mrc", stack, "--latency")
    assert answer.status == 2
    assert "found a stack without devices" in answer.err
    answer = command("mrc", timed, "--sizes", "64KiB", "--figure", "curve.bmp")
    assert answer.status != 0
    assert "expected a file ending in one of .svg, .png, .pdf" in answer.err


def test_reads_and_writes_are_told_apart(timed: Path, command: Command) -> None:
    answer = load(RunAnswer, json.loads(command("run", timed, "--json").out))
    for line in timing.lines(answer.cases[0]):
        kinds = [(line.reads, line.read_mean_ns), (line.writes, line.write_mean_ns)]
        assert sum(count for count, _ in kinds) == line.requests
        whole = sum(count * mean for count, mean in kinds) / line.requests
        assert whole == pytest.approx(line.mean_ns)
        assert line.read_p99_ns <= line.max_ns
        assert line.write_p99_ns < line.write_mean_ns * 2, "a write waits for the cache only"
    shown = command("run", timed).out
    headers = shown[shown.index("response times") :].split("------")[0]
    assert headers.split().count("read") == headers.split().count("write") == 2
    compared = command("compare", timed, "--policy", "lru,arc").out
    assert re.search(r"read +read +write +write", compared)
    frame = api.run(timed).timing
    assert {"reads", "read_p99_ns", "writes", "write_p99_ns"} <= set(frame.columns)


def test_closed_loops_that_stop_by_time_are_told_by_their_own_time(
    traces: Path, command: Command
) -> None:
    devices = '[device.cache]\nmodel = "ram"\n[device.backing]\nmodel = "fixed-latency"\n'
    Path("closed.toml").write_text(
        '[cache]\ncapacity = "512KiB"\n[replay]\nloop = "closed"\nstop = "200ms"\n'
        f'{devices}[[tenant]]\nname = "a"\ntrace = "a.csv"\nrepeat = true\n'
    )
    answer = command("compare", "closed.toml", "--policy", "lru,arc", "--report")
    assert answer.status == 0, answer.err
    note = "a closed loop that stops by time does as much as its answers allow"
    assert note in answer.err
    assert "of trace in a closed loop" in answer.out
    assert note in Path("results/closed/report.html").read_text()
