#!/usr/bin/env python3
"""A rehearsal beside the server that it rehearses.

For: `benches/rehearsal.py [--rounds N] [--seconds S] [--rate R] [--server PATH] [--folder DIR]`,
where PATH is a release build of `cachewrightd`. Serves the same requests N times in real time,
from a cache device on this machine's disk and a volume whose answers come 2 ms later
(`serve.backing_delay`), to `cachewright live load`, which sends them at the times of a trace. The
first run is recorded. Then the recording is rehearsed on devices of fixed latency, whose times are
those that fio finds for single reads and writes of this disk. Prints mean and 99th percentile by
kind: the median of the live runs, their spread, and the rehearsal. Means are those of the server's
own meters, which begin at the arrival of a request as those of a rehearsal do, and those of the
client; percentiles are the client's. Needs fio. Must never know: how a server works. Units:
microseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from live import ROOT, first_job, format_devices, lasting, started

KINDS = ("read", "write", "flush")
VOLUME_MIB, CACHE_MIB, DEVICE_MIB = 256, 64, 512
DELAY_US = 2_000
BLOCK = 4096
STACK = f"""
[cache]
capacity = "{CACHE_MIB}MiB"
policy = "lru"
write = "write-back"

[serve]
devices = ["cache.img"]
listen = ["unix:s.sock"]
monitor = "127.0.0.1:9477"
backing_delay = "{DELAY_US}us"

[[tenant]]
name = "data"
backing = "data.img"
trace = "load.csv"
"""


def make_load(path: Path, seconds: float, rate: float) -> None:
    """Write a trace: reads, writes and flushes that come at random, some blocks more often."""
    chance = random.Random(1)
    blocks = VOLUME_MIB * (1 << 20) // BLOCK
    places = list(range(blocks))
    chance.shuffle(places)
    time_us, lines = 0.0, []
    while time_us < seconds * 1e6:
        time_us += chance.expovariate(rate) * 1e6
        offset = places[int(blocks * chance.random() ** 4)] * BLOCK
        draw = chance.random()
        if draw < 0.02:
            lines.append(f"1,F,0,0,{time_us:.0f}")
        else:
            lines.append(f"1,{'R' if draw < 0.7 else 'W'},{offset},{BLOCK},{time_us:.0f}")
    path.write_text("\n".join(lines) + "\n")


def make_file(path: Path, mib: int) -> None:
    """Make a file that has been written once: where it has a hole, a write takes longer."""
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())


def disk_times(path: Path, seconds: float) -> dict[str, float]:
    """Return the mean times of single reads and writes of a file without page cache."""
    found = {}
    for kind in ("read", "write"):
        words = ["fio", "--name=x", "--output-format=json", "--randrepeat=0", "--bs=4k"]
        words += [
            "--ioengine=io_uring",
            "--direct=1",
            f"--filename={path}",
            "--iodepth=1",
        ]
        words += [f"--rw=rand{kind}", *lasting(seconds)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        part = first_job(done.stdout)[kind]
        found[kind] = part["lat_ns"]["mean"] / 1000  # type: ignore[index]
    return found


def live_run(folder: Path, server: Path, record: str) -> dict[str, dict[str, float]]:
    """Serve the load once; returns the server's mean, and the client's mean and p99, by kind."""
    format_devices(folder / "stack.toml")
    words = [str(server), "--record", record, "stack.toml"]
    process = started(words, folder, folder / "s.sock")
    load = [sys.executable, "-m", "cachewright", "live", "load", "stack.toml"]
    load += ["--speed", "1", "--depth", "4096", "--json"]
    try:
        done = subprocess.run(load, cwd=folder, capture_output=True, text=True, check=True)
        time.sleep(0.2)  # The status is some ticks old.
        with urllib.request.urlopen("http://127.0.0.1:9477/status") as answer:
            served = json.load(answer)["tenants"][0]["requests"]
    finally:
        process.terminate()
        process.wait()
    found = by_kind(json.loads(done.stdout)["tenants"][0]["requests"])
    for one in served:
        if one["kind"] in found:
            found[one["kind"]]["server mean"] = one["seconds"] / one["count"] * 1e6
    return found


def rehearsed(
    folder: Path, server: Path, record: str, times: dict[str, float]
) -> dict[str, dict[str, float]]:
    """Rehearse a recording on devices that take such times."""

    def device(more_us: float, parallelism: int) -> str:
        read, write = ((times[kind] + more_us) * 1000 for kind in ("read", "write"))
        parts = [
            f"read={read:.0f}ns",
            f"write={write:.0f}ns",
            f"parallelism={parallelism}",
        ]
        return "fixed-latency:" + ",".join(parts)

    words = [str(server), "rehearse", "stack.toml", "--json", "--recording", record]
    # The disk serves one command at a time; delays run side by side.
    words += ["--drive", device(0, 1), "--backing", device(DELAY_US, 1024)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return by_kind(json.loads(done.stdout)["cases"][0]["tenants"][0]["responses"])


def by_kind(rows: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return mean and 99th percentile by kind."""
    return {str(row["kind"]): {"mean": row["mean_us"], "p99": row["p99_us"]} for row in rows}


def report(live: list[dict[str, dict[str, float]]], found: dict[str, dict[str, float]]) -> None:
    """Print the table."""
    print("| kind | measure | live, median | live, least to most | rehearsed | rehearsed / live |")
    print("|---|---|--:|--:|--:|--:|")
    for kind in KINDS:
        for measure in ("server mean", "mean", "p99"):
            runs = [run[kind][measure] for run in live]
            middle, ours = statistics.median(runs), found[kind][measure.removeprefix("server ")]
            name = measure if measure.startswith("server") else f"client {measure}"
            cells = [kind, name, f"{middle:.0f}", f"{min(runs):.0f} to {max(runs):.0f}"]
            print(f"| {' | '.join([*cells, f'{ours:.0f}', f'{ours / middle:.2f}'])} |")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=float, default=500, help="requests per second")
    server = ROOT / "target/release/cachewrightd"
    parser.add_argument("--server", type=lambda text: Path(text).resolve(), default=server)
    parser.add_argument("--folder", type=Path, help="where the files go; a new one if left out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        (folder / "stack.toml").write_text(STACK)
        make_load(folder / "load.csv", given.seconds, given.rate)
        make_file(folder / "data.img", VOLUME_MIB)
        make_file(folder / "cache.img", DEVICE_MIB)
        times = disk_times(folder / "data.img", min(given.seconds, 5))
        print(f"disk: reads of {times['read']:.0f} us, writes of {times['write']:.0f} us")
        live = [live_run(folder, given.server, f"{run}.parquet") for run in range(given.rounds)]
        report(live, rehearsed(folder, given.server, "0.parquet", times))


if __name__ == "__main__":
    main()
