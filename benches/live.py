#!/usr/bin/env python3
"""Speed of the live server's path beside other servers of blocks, in turns.

For: `benches/live.py [--rounds N] [--seconds S] [--mib M] [--sparse] [--memory M] [--server PATH]
[--folder DIR]`, where PATH is a release build of `cachewrightd`. Each round runs every workload on
every server, one right after the other and in changing order. Prints medians, and the median of the
rounds' ratios beside what we aim for. The servers: the bare file by io_uring without page cache
(raw), `nbdkit null`, `nbdkit file`, `nbdkit --filter=cache file`, `qemu-nbd --cache=none
--aio=io_uring`, and ours with write-back. Blocks of 4 KiB, one Unix socket. With `--sparse` our
cache device has never been written. Needs fio with its engine `nbd`, nbdkit, qemu-nbd.
Must never know: how a server works. Units: operations per second, microseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
SERVERS = ("raw", "null", "file", "cache", "qemu", "ours")
STACK = """
[cache]
capacity = "{capacity}MiB"
policy = "lru"
write = "write-back"

[serve]
devices = ["cache.img"]
engine = "{engine}"
memory = "{memory}MiB"
listen = ["unix:s.sock"]

[[tenant]]
name = "data"
backing = "data.img"
"""


@dataclass(frozen=True)
class Workload:
    """What a client does, and whether all of the volume is cached before."""

    name: str
    fio: tuple[str, ...]
    warm: bool
    write: bool


WORKLOADS = (
    Workload("read hits, depth 32", ("--rw=randread", "--iodepth=32"), True, False),
    Workload("read hits, depth 1", ("--rw=randread", "--iodepth=1"), True, False),
    Workload("cold writes, depth 32", ("--rw=randwrite", "--iodepth=32"), False, True),
    Workload(
        "write and flush, 1 client", ("--rw=randwrite", "--iodepth=1", "--fsync=1"), True, True
    ),
    Workload(
        "write and flush, 32 clients",
        ("--rw=randwrite", "--iodepth=1", "--fsync=1", "--numjobs=32"),
        True,
        True,
    ),
)


@dataclass(frozen=True)
class Measured:
    """What one run found."""

    rate: float
    """Operations per second."""
    median: float
    """Microseconds that half of the operations take at most, their flush included."""
    processor: float
    """Microseconds of processor time of the server per operation; of fio for the bare file."""


class Bench:
    """A folder with a volume, a cache device, and one server at a time."""

    def __init__(
        self,
        folder: Path,
        mib: int,
        seconds: float,
        server: Path,
        engine: str = "auto",
        *,
        sparse: bool = False,
        memory: int = 0,
    ) -> None:
        """Make the files. The cache device has space for twice the volume.

        It is written once, as the volume is: where a file has a hole, each write waits for the
        file system to find space, and each sync for its journal. `sparse` leaves that out.
        """
        self.folder, self.mib, self.seconds, self.server = folder, mib, seconds, server
        stack = STACK.format(capacity=mib + mib // 4, engine=engine, memory=memory)
        (folder / "stack.toml").write_text(stack)
        with (folder / "data.img").open("wb") as file:
            for _ in range(mib):
                file.write(os.urandom(1 << 20))
        with (folder / "cache.img").open("wb") as file:
            file.truncate((3 * mib + 512) << 20)
            for _ in range(0 if sparse else 3 * mib + 512):
                file.write(bytes(1 << 20))
        os.sync()

    def start(self, name: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes] | None:
        """Start a server with an empty cache; none for the bare file.

        The words `before` are those of a command that runs the server.
        """
        socket, data = self.folder / "s.sock", str(self.folder / "data.img")
        nbdkit = ["nbdkit", "-f", "-U", str(socket)]
        qemu = ["qemu-nbd", "--cache=none", "--aio=io_uring", "-f", "raw", "-t", "-e", "64"]
        ours = str(self.server)
        words = {
            "null": [*nbdkit, "null", f"{self.mib}M"],
            "file": [*nbdkit, "file", data],
            "cache": [*nbdkit, "--filter=cache", "file", data, "cache-on-read=true"],
            "qemu": [*qemu, "-k", str(socket), data],
            "ours": [ours, "stack.toml"],
        }.get(name)
        if words is None:
            return None
        if name == "ours":
            format_devices(self.folder / "stack.toml")
        return started([*before, *words], self.folder, socket)

    def words(self, name: str, arguments: tuple[str, ...]) -> list[str]:
        """Give the command of fio on a server."""
        socket, data = self.folder / "s.sock", self.folder / "data.img"
        export = "data" if name == "ours" else ""
        words = client(self.mib)
        if name == "raw":
            words += ["--ioengine=io_uring", "--direct=1", f"--filename={data}"]
            arguments = tuple(word.replace("--fsync", "--fdatasync") for word in arguments)
        else:
            words += ["--ioengine=nbd", f"--uri=nbd+unix:///{export}?socket={socket}"]
        return [*words, *arguments]

    def fio(self, name: str, arguments: tuple[str, ...]) -> dict[str, object]:
        """Run fio on a server; returns its first job."""
        words = self.words(name, arguments)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name}: fio: {done.stderr}")
        return first_job(done.stdout)

    def fill(self) -> None:
        """Read all of the volume through our server: all of it is cached then."""
        for _ in range(2):
            self.fio("ours", ("--rw=read", "--bs=64k", "--iodepth=8"))

    def run(self, name: str, workload: Workload) -> Measured:
        """Measure a workload on a server."""
        process = self.start(name)
        try:
            if workload.warm and name == "ours":
                self.fill()
            before = processor(process)
            job = self.fio(name, (*workload.fio, *lasting(self.seconds)))
            used = processor(process) - before
        finally:
            if process is not None:
                process.terminate()
                process.wait()
        return measured(job, workload, used if process is not None else None)


def client(mib: int) -> list[str]:
    """Give the words of fio for blocks of 4 KiB of so many MiB; where they lie comes behind."""
    words = ["fio", "--name=x", "--output-format=json", "--randrepeat=0", "--norandommap"]
    return [*words, "--bs=4k", f"--size={mib}m", "--group_reporting", "--thread"]


def first_job(text: str) -> dict[str, object]:
    """Read the first job of what fio says."""
    job: dict[str, object] = json.loads(text[text.index("{") :])["jobs"][0]
    return job


def format_devices(stack: Path) -> None:
    """Make the cache of a stack empty."""
    words = [sys.executable, "-m", "cachewright", "live", "format", str(stack)]
    subprocess.run([*words, "--discard-dirty"], check=True, stdout=subprocess.DEVNULL)


def started(words: Sequence[str], folder: Path, socket: Path) -> subprocess.Popen[bytes]:
    """Run a server in a folder; returns it once its socket is there."""
    socket.unlink(missing_ok=True)
    env = {**os.environ, "TMPDIR": str(folder)}
    output = subprocess.DEVNULL
    process = subprocess.Popen(words, cwd=folder, env=env, stdout=output, stderr=output)
    while not socket.exists():
        if process.poll() is not None:
            sys.exit(f"the server has ended: {' '.join(words)}")
        time.sleep(0.01)
    return process


def command_line(description: str | None, mib: int) -> argparse.ArgumentParser:
    """Return what is asked of every comparison of servers in turns."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--mib", type=int, default=mib)
    parser.add_argument("--server", type=Path, default=ROOT / "target/release/cachewrightd")
    parser.add_argument("--folder", type=Path, help="where the files go; a new one if left out")
    return parser


def lasting(seconds: float) -> tuple[str, ...]:
    """Give the words of fio for a run of so long."""
    return ("--time_based", f"--runtime={round(seconds * 1000)}ms")


def processor(process: subprocess.Popen[bytes] | None) -> float:
    """Seconds of processor time that a server has used."""
    if process is None:
        return 0.0
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measured(job: dict[str, object], workload: Workload, used: float | None) -> Measured:
    """Read the numbers of a job; `used` is the server's processor time in seconds."""
    part: dict[str, object] = job["write" if workload.write else "read"]  # type: ignore[assignment]
    rate, count = float(str(part["iops"])), int(str(part["total_ios"]))
    clat: dict[str, dict[str, float]] = part["clat_ns"]  # type: ignore[assignment]
    median = clat["percentile"]["50.000000"] / 1000
    sync: dict[str, dict[str, dict[str, float]]] = job["sync"]  # type: ignore[assignment]
    if "--fsync=1" in workload.fio:
        median += sync["lat_ns"]["percentile"]["50.000000"] / 1000
    if used is None:
        share = float(str(job["usr_cpu"])) + float(str(job["sys_cpu"]))
        used = share / 100 * float(str(job["job_runtime"])) / 1000
    return Measured(rate, median, used * 1e6 / max(count, 1))


Found = dict[tuple[str, str], list[Measured]]


def aims(found: Found, rounds: int) -> list[tuple[str, float, str]]:
    """Ratios beside what we aim for: name, median over the rounds, aim."""

    def each(number: int) -> list[tuple[str, float, str]]:
        def of(workload: int, server: str) -> Measured:
            return found[WORKLOADS[workload].name, server][number]

        ours = [of(index, "ours") for index in range(len(WORKLOADS))]
        limit = min(of(0, "raw").rate, of(0, "null").rate)
        return [
            ("read hits, depth 32: rate / lower of raw and null", ours[0].rate / limit, ">= 0.8"),
            (
                "read hits, depth 32: rate / qemu-nbd",
                ours[0].rate / of(0, "qemu").rate,
                ">= 1.4",
            ),
            (
                "read hits, depth 32: rate / nbdkit cache",
                ours[0].rate / of(0, "cache").rate,
                ">= 1.2",
            ),
            (
                "read hits, depth 32: processor / (null + raw)",
                ours[0].processor / (of(0, "null").processor + of(0, "raw").processor),
                "<= 0.6",
            ),
            (
                "read hits, depth 1: median time / (raw + null)",
                ours[1].median / (of(1, "raw").median + of(1, "null").median),
                "<= 1.15",
            ),
            (
                "cold writes, depth 32: rate / nbdkit cache",
                ours[2].rate / of(2, "cache").rate,
                ">= 5",
            ),
            ("cold writes, depth 32: rate / null", ours[2].rate / of(2, "null").rate, ">= 0.85"),
            (
                "write and flush, 1 client: median time / (raw + null)",
                ours[3].median / (of(3, "raw").median + of(3, "null").median),
                "<= 1.3",
            ),
            (
                "write and flush: rate of 32 clients / of 1",
                ours[4].rate / ours[3].rate,
                ">= 3",
            ),
        ]

    rows = [each(number) for number in range(rounds)]
    return [
        (name, statistics.median(row[index][1] for row in rows), aim)
        for index, (name, _, aim) in enumerate(rows[0])
    ]


def report(found: Found, rounds: int) -> None:
    """Print both tables."""
    print("| workload | server | operations/s | median us | processor us |\n|---|---|---|---|---|")
    for workload in WORKLOADS:
        for server in SERVERS:
            runs = found[workload.name, server]
            values = [
                statistics.median(getattr(run, field) for run in runs)
                for field in ("rate", "median", "processor")
            ]
            cells = [workload.name, server, f"{values[0]:,.0f}", *(f"{v:.1f}" for v in values[1:])]
            print(f"| {' | '.join(cells)} |")
    print("\n| ratio | found | aim | met |\n|---|---|---|---|")
    for name, ratio, aim in aims(found, rounds):
        sign, bound = aim.split()
        met = ratio >= float(bound) if sign == ">=" else ratio <= float(bound)
        print(f"| {name} | {ratio:.2f} | {aim} | {'yes' if met else 'no'} |")


def main() -> None:
    """Measure and print."""
    parser = command_line(__doc__, 256)
    parser.add_argument("--sparse", action="store_true", help="a cache device that is a hole")
    parser.add_argument("--memory", type=int, default=0, help="MiB of `serve.memory` of ours")
    options = parser.parse_args()
    missing = [tool for tool in ("fio", "nbdkit", "qemu-nbd") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"found no {', '.join(missing)}; expected them to be installed")
    if not options.server.exists():
        sys.exit(f"found no {options.server}; expected a release build (`make cachewrightd`)")
    found: Found = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        server, sparse, memory = options.server.resolve(), options.sparse, options.memory
        bench = Bench(
            Path(folder), options.mib, options.seconds, server, sparse=sparse, memory=memory
        )
        for number in range(options.rounds):
            for workload in WORKLOADS:
                shift = number % len(SERVERS)
                for server in SERVERS[shift:] + SERVERS[:shift]:
                    run = bench.run(server, workload)
                    found.setdefault((workload.name, server), []).append(run)
    report(found, options.rounds)


if __name__ == "__main__":
    main()
