#!/usr/bin/env python3
"""Rehearsals beside the servers that they rehearse.

For: `benches/rehearsal.py [--rounds N] [--seconds S] [--server PATH] [--memory DIR] [--disk DIR]
[--apart]`, where PATH is a release build of `cachewrightd`. Two stacks: one on files in memory with
a volume that answers 2 ms later, and one on files of this machine's disk. `cachewrightd calibrate`
times each folder. Then each of six workloads is served N times in real time to `cachewright live
load`, which sends requests at the times of a trace; with `--apart` server and client have a core
each. The same trace is rehearsed on what was calibrated. Prints mean and 99th percentile by kind:
the median of the live runs, their spread, and the rehearsal. Both count from the arrival of a
request to its answer; those of the server are read from its status. Percentiles of kinds with fewer
than 1,000 requests are left out; the server counts in classes an eighth apart and says the end of
one, and so do these tables of a rehearsal.
Must never know: how a server works. Units: microseconds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from live import ROOT, format_devices, started

KINDS = ("read", "write", "flush")
VOLUME_MIB, USED_MIB, CACHE_MIB, DEVICE_MIB = 2176, 512, 64, 512
BLOCK = 4096
LEAST_FOR_P99 = 1000
OLTP = ROOT / "data" / "oltp.csv.zst"

MONITOR = "127.0.0.1:9477"
SERVE = f"""
[serve]
devices = ["cache.img"]
listen = ["unix:s.sock"]
monitor = "{MONITOR}"
"""
TENANT = """
[[tenant]]
name = "data"
backing = "data.img"
trace = "load.csv"
"""
STACKS = {
    "memory": f"""[cache]
capacity = "{CACHE_MIB}MiB"
policy = "lru"
write = "write-back"
{SERVE}backing_delay = "2ms"
{TENANT}""",
    "disk": f"""[cache]
capacity = "{CACHE_MIB}MiB"
policy = "s3-fifo"
write = "write-through"
{SERVE}{TENANT}""",
}


@dataclass(frozen=True)
class Workload:
    """Requests that come at random times, some blocks more often."""

    name: str
    rate: float
    """Requests per second."""
    writes: float
    """Share of them."""
    flushes: float
    """Share of them."""
    blocks: int = 1
    """Blocks of a request."""

    def lines(self, seconds: float) -> Iterator[str]:
        """Give the lines of a trace."""
        chance = random.Random(1)
        places = list(range(USED_MIB * (1 << 20) // BLOCK // self.blocks))
        chance.shuffle(places)
        time_us, length = 0.0, BLOCK * self.blocks
        while (time_us := time_us + chance.expovariate(self.rate) * 1e6) < seconds * 1e6:
            offset = places[int(len(places) * chance.random() ** 4)] * length
            draw = chance.random()
            if draw < self.flushes:
                yield f"1,F,0,0,{time_us:.0f}"
            else:
                kind = "W" if draw < self.flushes + self.writes else "R"
                yield f"1,{kind},{offset},{length},{time_us:.0f}"


WORKLOADS = (
    Workload("mixed", 500, 0.3, 0.02),
    Workload("busy", 5000, 0.3, 0.02),
    Workload("reads", 2000, 0, 0),
    Workload("writes", 1000, 0.95, 0.05),
    Workload("large", 300, 0.5, 0, blocks=16),
)


def make_load(path: Path, name: str, seconds: float) -> None:
    """Write the trace of a workload; `oltp` is the beginning of the bundled one."""
    if name == "oltp":
        slice_words = ["trace", "slice", str(OLTP), str(path), "--to", f"{seconds}s", "--force"]
        words = [sys.executable, "-m", "cachewright", *slice_words]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return
    workload = next(workload for workload in WORKLOADS if workload.name == name)
    path.write_text("\n".join(workload.lines(seconds)) + "\n")


def make_file(path: Path, mib: int) -> None:
    """Make a file that has been written once: where it has a hole, a write takes longer."""
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class Found:
    """Response times of one kind of request."""

    count: int
    mean: float
    p99: float


def live_run(folder: Path, server: Path, apart: bool) -> dict[str, Found]:
    """Serve the load once; returns what the server counted, by kind."""
    format_devices(folder / "stack.toml")
    on_core = [["taskset", "--cpu-list", str(core)] if apart else [] for core in (0, 1)]
    process = started([*on_core[0], str(server), "stack.toml"], folder, folder / "s.sock")
    load = [*on_core[1], sys.executable, "-m", "cachewright", "live", "load", "stack.toml"]
    load += ["--speed", "1", "--depth", "4096", "--json"]
    try:
        subprocess.run(load, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        time.sleep(0.2)  # The status is some ticks old.
        with urllib.request.urlopen(f"http://{MONITOR}/status") as answer:
            served = json.load(answer)["tenants"][0]["requests"]
    finally:
        process.terminate()
        process.wait()
    recent = {one["kind"]: one["recent"] for one in served if one["recent"]["count"]}
    return {
        kind: Found(one["count"], one["mean_us"], one["p99_us"]) for kind, one in recent.items()
    }


def rehearsed(folder: Path, server: Path) -> dict[str, Found]:
    """Rehearse the load on the times of the folder."""
    words = [str(server), "rehearse", "stack.toml", "--json", "--recording", "load.csv"]
    machine = "machine.toml"
    words += ["--processor", machine, "--drive", machine, "--backing", machine]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)["cases"][0]["tenants"][0]["responses"]
    return {
        row["kind"]: Found(row["count"], row["mean_us"], end_of_class(row["p99_us"]))
        for row in rows
    }


def end_of_class(us: float) -> float:
    """Return the end of the class of a response time, as a server counts it."""
    eighth = 2 ** (math.floor(math.log2(us * 1000)) - 3)
    return math.ceil(us * 1000 / eighth) * eighth / 1000


def report(workload: str, live: list[dict[str, Found]], found: dict[str, Found]) -> None:
    """Print rows of the table."""
    for kind in KINDS:
        if any(kind not in run for run in [*live, found]):
            continue
        for measure in ("mean", "p99"):
            if measure == "p99" and found[kind].count < LEAST_FOR_P99:
                continue
            runs = [getattr(run[kind], measure) for run in live]
            middle, ours = statistics.median(runs), getattr(found[kind], measure)
            cells = [
                workload,
                kind,
                measure,
                f"{middle:.0f}",
                f"{min(runs):.0f} to {max(runs):.0f}",
            ]
            print(f"| {' | '.join([*cells, f'{ours:.0f}', f'{ours / middle:.2f}'])} |")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8, help="at most 9 count")
    server = ROOT / "target/release/cachewrightd"
    parser.add_argument("--server", type=lambda text: Path(text).resolve(), default=server)
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--disk", type=Path, help="a folder of the disk; a new one if left out")
    words = "the server and the system's threads for it on core 0, the client on core 1"
    parser.add_argument("--apart", action="store_true", help=words)
    given = parser.parse_args()
    for stack, place in (("memory", given.memory), ("disk", given.disk)):
        with tempfile.TemporaryDirectory(dir=place) as name:
            folder = Path(name)
            (folder / "stack.toml").write_text(STACKS[stack])
            make_file(folder / "data.img", VOLUME_MIB)
            make_file(folder / "cache.img", DEVICE_MIB)
            words = [str(given.server), "calibrate", str(folder)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            (folder / "machine.toml").write_text(done.stdout)
            print(f"\n{stack}:\n\n{done.stdout}")
            print("| workload | kind | measure | live | least to most | rehearsed | by live |")
            print("|---|---|---|--:|--:|--:|--:|")
            for workload in (*(workload.name for workload in WORKLOADS), "oltp"):
                make_load(folder / "load.csv", workload, given.seconds)
                live = [live_run(folder, given.server, given.apart) for _ in range(given.rounds)]
                report(workload, live, rehearsed(folder, given.server))


if __name__ == "__main__":
    main()
