#!/usr/bin/env python3
"""Two recorded volumes through a live server: a record, a kill, a warm start, and a replay.

For: `make live-demo`, or `scripts/live_demo.py [--folder DIR] [--requests N]`. A web server and a
program that factorises a matrix lie on slow files behind a cache, which both use again and again.
Their traces are sent by the project's own client. What was served is recorded and simulated, which
must count the same. The server is then killed and started again. It ends with what the cache gave.
Needs no other tool. Must never know: how the server works. Units: bytes, requests.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import cachewright
from cachewright import words
from cachewright.answers import LiveStatus, LoadAnswer
from cachewright.cli import output
from cachewright.cli.top import hit_ratio
from cachewright.live import serving, watching
from cachewright.tables import Column, Table, of_texts

ROOT = Path(__file__).resolve().parent.parent
TENANTS = ("web", "lu")
CAPACITY = "768MiB"
VOLUME_BYTES = 16 << 30
CACHE_FILE_BYTES = 3 << 29
COUNTS = ("reads", "read_hits", "writes", "write_hits", "admissions", "evictions")
NS_PER_US = 1e3
STACK = """
# A web server and a matrix factorisation on files that answer 8 ms late, as a disk does.
[cache]
capacity = "{capacity}"
policy = "s3-fifo"
partition = "static"
write = "write-back"

[serve]
devices = ["{device}"]
listen = ["unix:live.sock"]
monitor = "127.0.0.1:0"
segment = "4MiB"
backing_delay = "8ms"
"""
TENANT = """
[[tenant]]
name = "{name}"
backing = "{name}.img"
trace = "{trace}"
"""


class Server:
    """A server in a process of its own."""

    def __init__(self, stack: Path, *options: str) -> None:
        """Start it and wait until it serves."""
        self.log = stack.with_suffix(".log").open("a+")
        before = self.log.tell()
        command = [sys.executable, "-m", "cachewright", "serve", str(stack), *options]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.lines = self._said(self.log, before)
        line = next(line for line in self.lines if line.startswith("monitor: "))
        self.monitor = line.removeprefix("monitor: ")

    def _said(self, log: IO[str], before: int) -> list[str]:
        while True:
            ended = self.process.poll() is not None
            log.flush()
            text = Path(log.name).read_text()[before:]
            if any(line.startswith("cache: ") for line in text.splitlines()):
                return text.splitlines()
            if ended:
                raise SystemExit(f"the server has ended:\n{text}")

    def found(self) -> str:
        """Return what it found in the cache when it started."""
        return next(line for line in self.lines if line.startswith("cache: ")).split("; ")[-1]

    def status(self) -> LiveStatus:
        """Return what it has counted."""
        return watching.status(self.monitor)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it, in order unless by SIGKILL."""
        self.process.send_signal(number)
        status = self.process.wait()
        self.log.close()
        if status not in (0, -signal.SIGKILL):
            raise SystemExit(f"the server ended with status {status}; see {self.log.name}")


def main() -> int:
    """Run the demo; 1 if what was served and what is simulated differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "demo" / "live")
    parser.add_argument("--requests", type=int, default=20_000, help="of each volume")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    step("without a cache (one of 64 KiB)")
    alone = stack(folder, "alone", "16 blocks")
    server = Server(alone)
    without = serving.send_load(alone, requests=arguments.requests // 4)
    server.stop()
    step(f"with a cache of {CAPACITY}, recorded")
    served = stack(folder, "served", CAPACITY)
    server = Server(served, "--record", str(folder / "record.parquet"))
    print(f"watch it: {server.monitor} or `cachewright top {server.monitor}`")
    cold = serving.send_load(served, requests=arguments.requests)
    counted = server.status()
    server.stop()
    step("the recording, simulated")
    same = agree(served, folder / "record.parquet", counted)
    step("warm start, the same requests again, then kill -9 among them")
    server = Server(served)
    warm = serving.send_load(served, requests=arguments.requests)
    before = server.status()
    server.stop(signal.SIGKILL)
    server = Server(served)
    print(f"after the kill: {server.found()}")
    serving.send_load(served, requests=arguments.requests // 10)
    after = server.status()
    server.stop()
    ratios("hit ratio", {"first, cold": counted, "again, warm": before, "after kill -9": after})
    latencies({"without": without, "cold": cold, "warm": warm})
    step("are the cache's devices whole?")
    check = serving.check_devices(served)
    print("yes" if check.sound else f"no: see `cachewright live check {served}`")
    print(f"files: {folder}")
    outcome(counted, {"without a cache": without, "from an empty cache": cold, "warm": warm})
    return 0 if same and check.sound else 1


def step(text: str) -> None:
    """Say what comes next."""
    print(f"\n== {text}", flush=True)


def stack(folder: Path, name: str, capacity: str) -> Path:
    """Write a stack, its files, and an empty cache."""
    device = folder / f"{name}-cache.img"
    for path, length in [(device, CACHE_FILE_BYTES)] + [
        (folder / f"{tenant}.img", VOLUME_BYTES) for tenant in TENANTS
    ]:
        with path.open("ab") as file:
            file.truncate(length)
    text = STACK.format(capacity=capacity, device=device.name)
    for tenant in TENANTS:
        text += TENANT.format(name=tenant, trace=ROOT / "data" / f"{tenant}.csv.zst")
    path = folder / f"{name}.toml"
    path.write_text(text)
    serving.format_devices(path)
    return path


def agree(path: Path, record: Path, served: LiveStatus) -> bool:
    """Replay the recording, show both counts, and return whether they are equal."""
    settings = {f"tenant.{name}.trace": str(record) for name in TENANTS}
    settings |= {f"tenant.{name}.volume": name for name in TENANTS}
    (case,) = cachewright.run(path, settings=settings).answer.cases
    rows: list[tuple[str, str, int, int]] = []
    for mine, theirs in zip(served.tenants, case.tenants, strict=True):
        found = {
            "reads": theirs.read_accesses,
            "writes": theirs.write_accesses,
            "read_hits": theirs.read_hits,
            "write_hits": theirs.write_hits,
            "admissions": theirs.admissions,
            "evictions": theirs.evictions,
        }
        rows += [
            (mine.name, name.replace("_", " "), getattr(mine.blocks, name), found[name])
            for name in COUNTS
        ]
    columns: list[Column[tuple[str, str, int, int]]] = [
        Column("tenant", lambda row: row[0]),
        Column("blocks", lambda row: row[1]),
        Column("served", lambda row: row[2], words.count),
        Column("simulated", lambda row: row[3], words.count),
    ]
    output.show(Table("", columns, rows))
    same = all(left == right for *_, left, right in rows)
    print("equal" if same else "they differ, which is a defect")
    return same


def ratios(title: str, found: dict[str, LiveStatus]) -> None:
    """Show the hit ratio of each tenant in each run."""
    rows = [
        [
            TENANTS[at],
            *(words.ratio(hit_ratio(status.tenants[at].blocks)) for status in found.values()),
        ]
        for at in range(len(TENANTS))
    ]
    output.show(of_texts(title, ["tenant", *found], rows, 1))


def latencies(runs: dict[str, LoadAnswer]) -> None:
    """Show the mean and the 99th percentile of reads and writes in each run."""
    kinds = ("read", "write")
    keys = [(tenant, kind) for tenant in range(len(TENANTS)) for kind in kinds]
    rows = []
    for tenant, kind in keys:
        times = []
        for answer in runs.values():
            requests = answer.tenants[tenant].requests
            found = next(one for one in requests if one.kind == kind)
            times += [words.duration(us * NS_PER_US) for us in (found.mean_us, found.p99_us)]
        rows.append([TENANTS[tenant], kind, *times])
    headings = [heading for name in runs for heading in (f"{name}, mean", "p99")]
    output.show(of_texts("time to an answer", ["tenant", "kind", *headings], rows, 2))


def outcome(served: LiveStatus, runs: dict[str, LoadAnswer]) -> None:
    """Say what the cache gave: hits from its empty start, and the mean time to an answer."""
    blocks = [tenant.blocks for tenant in served.tenants]
    hits = sum(one.read_hits + one.write_hits for one in blocks)
    ratio = hits / sum(one.reads + one.writes for one in blocks)
    means = {name: mean_ns(found) for name, found in runs.items()}
    times = ", ".join(f"{words.duration(mean)} {name}" for name, mean in means.items())
    first, *_, last = means.values()
    print(
        f"\nFrom an empty start the cache hit {words.percent(ratio)} of the block accesses. A "
        f"request took {times}: {words.significant(first / last)} times faster."
    )


def mean_ns(found: LoadAnswer) -> float:
    """Return the mean time to the answer of a read or write."""
    kinds = [
        one for tenant in found.tenants for one in tenant.requests if one.kind in ("read", "write")
    ]
    total = sum(one.count for one in kinds)
    return NS_PER_US * sum(one.count * one.mean_us for one in kinds) / total


if __name__ == "__main__":
    sys.exit(main())
