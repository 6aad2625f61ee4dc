#!/usr/bin/env python3
"""Speed of the live server as the disk of a virtual machine, beside `qemu-storage-daemon`.

For: `benches/live_guests.py [--rounds N] [--seconds S] [--mib M] [--server PATH] [--folder DIR]`.
Both serve vhost-user-blk; `qemu-storage-daemon` serves the raw file by io_uring without page cache.
The client is the example `guest_load` of the daemon, beside PATH: one queue, blocks of 4 KiB at
random. Each round runs every workload on both servers, one right after the other and in changing
order. Prints medians, and the median of the rounds' ratios. Needs qemu-storage-daemon.
Must never know: how a server works. Units: operations per second, microseconds.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from live import Bench, command_line, format_devices, processor, started

SERVERS = ("qemu", "ours")
WORKLOADS = (
    ("read hits, depth 32", "read", 32),
    ("read hits, depth 1", "read", 1),
    ("writes, depth 32", "write", 32),
    ("writes, depth 1", "write", 1),
)


@dataclass(frozen=True)
class Measured:
    """What one run found: operations per second, microseconds, microseconds per operation."""

    rate: float
    median: float
    p99: float
    processor: float


@contextmanager
def serving(bench: Bench, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server whose disk has the socket `disk.sock`."""
    socket = bench.folder / "disk.sock"
    if name == "ours":
        format_devices(bench.folder / "stack.toml")
        words = [str(bench.server), "stack.toml"]
    else:
        file = f"driver=file,node-name=disk,filename={bench.folder / 'data.img'}"
        export = f"vhost-user-blk,id=disk,node-name=disk,addr.type=unix,addr.path={socket}"
        words = ["qemu-storage-daemon", "--blockdev", f"{file},cache.direct=on,aio=io_uring"]
        words += ["--export", f"{export},writable=on"]
    process = started(words, bench.folder, socket)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def run(bench: Bench, client: Path, name: str, load: str, depth: int) -> Measured:
    """Measure a workload on a server, all of whose volume is cached before if it is ours."""

    def guest(load: str, depth: int) -> list[float]:
        socket = str(bench.folder / "disk.sock")
        words = [str(client), socket, load, str(depth), str(bench.seconds)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name}: guest_load: {done.stderr}")
        return [float(word) for word in done.stdout.split()]

    with serving(bench, name) as process:
        if name == "ours":
            guest("fill", 32)
        before = processor(process)
        count, rate, median, p99 = guest(load, depth)
        return Measured(rate, median, p99, (processor(process) - before) * 1e6 / max(count, 1))


def main() -> None:
    """Measure and print."""
    options = command_line(__doc__, 256).parse_args()
    server = options.server.resolve()
    client = server.parent / "examples/guest_load"
    if shutil.which("qemu-storage-daemon") is None:
        sys.exit("found no qemu-storage-daemon; expected it to be installed (`make live-tools`)")
    for path, command in (
        (server, "cargo build --release -p cachewright-daemon"),
        (client, "cargo build --release -p cachewright-daemon --example guest_load"),
    ):
        if not path.exists():
            sys.exit(f"found no {path}; expected a release build (`{command}`)")
    found: dict[tuple[str, str], list[Measured]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = Bench(Path(folder), options.mib, options.seconds, server)
        stack = bench.folder / "stack.toml"
        both = 'listen = ["unix:s.sock", "vhost:disk.sock"]'
        stack.write_text(stack.read_text().replace('listen = ["unix:s.sock"]', both))
        for number in range(options.rounds):
            for workload, load, depth in WORKLOADS:
                for name in SERVERS[:: 1 if number % 2 else -1]:
                    measured = run(bench, client, name, load, depth)
                    found.setdefault((workload, name), []).append(measured)
    print("| workload | server | operations/s | median us | p99 us | processor us |")
    print("|---|---|--:|--:|--:|--:|")
    for (workload, name), runs in found.items():
        rate, *rest = (
            statistics.median(getattr(each, field) for each in runs)
            for field in ("rate", "median", "p99", "processor")
        )
        cells = " | ".join(f"{value:.1f}" for value in rest)
        print(f"| {workload} | {name} | {rate:,.0f} | {cells} |")
    print("\n| ours by qemu-storage-daemon | rate | median time | processor |\n|---|--:|--:|--:|")
    for workload, _, _ in WORKLOADS:
        pairs = list(zip(found[workload, "ours"], found[workload, "qemu"], strict=True))
        ratios = (
            statistics.median(getattr(ours, field) / getattr(qemu, field) for ours, qemu in pairs)
            for field in ("rate", "median", "processor")
        )
        print(f"| {workload} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")


if __name__ == "__main__":
    main()
