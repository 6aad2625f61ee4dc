#!/usr/bin/env python3
"""Whether two loops on two cores would serve more: one server beside two that share nothing.

For: `benches/live_loops.py [--rounds N] [--seconds S] [--mib M] [--depth D] [--server PATH]
[--folder DIR]`. A server has one loop. Two clients read hits at random, each of its own volume, at
depth D: once from one server of both volumes, once from two servers of one each, which is what two
loops of one server could reach at most. Prints medians, and the median of the rounds' ratios.
Must never know: how a server works. Units: operations per second, microseconds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from live import (
    WORKLOADS,
    client,
    command_line,
    first_job,
    format_devices,
    lasting,
    measured,
    processor,
    started,
)

SERVE = """
[cache]
capacity = "{capacity}MiB"
policy = "lru"
write = "write-back"

[serve]
devices = ["cache{loop}.img"]
listen = ["unix:loop{loop}.sock"]
"""
VOLUME = """
[[tenant]]
name = "data{volume}"
backing = "data{volume}.img"
"""


@dataclass(frozen=True)
class Measured:
    """What one run found: operations per second of both clients, microseconds per operation."""

    rate: float
    median: float
    processor: float


class Loops:
    """A folder with two volumes, and the devices of two caches."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        """Write the files once: a hole would cost more."""
        self.folder, self.options = folder, options
        for name in ("data0", "data1", "cache0", "cache1"):
            mib = options.mib if name.startswith("data") else 3 * options.mib + 512
            with (folder / f"{name}.img").open("wb") as file:
                for _ in range(mib):
                    file.write(bytes(1 << 20))

    def start(self, loops: int, loop: int) -> subprocess.Popen[bytes]:
        """Start one of the servers with an empty cache."""
        volumes = range(2) if loops == 1 else range(loop, loop + 1)
        capacity = len(volumes) * self.options.mib * 5 // 4
        text = SERVE.format(capacity=capacity, loop=loop)
        stack = self.folder / f"stack{loop}.toml"
        stack.write_text(text + "".join(VOLUME.format(volume=volume) for volume in volumes))
        format_devices(stack)
        words = [str(self.options.server.resolve()), stack.name]
        return started(words, self.folder, self.folder / f"loop{loop}.sock")

    def clients(self, loops: int, arguments: tuple[str, ...]) -> list[dict[str, object]]:
        """Run fio on both volumes at once; returns the job of each."""

        def begin(volume: int) -> subprocess.Popen[str]:
            socket = self.folder / f"loop{volume if loops == 2 else 0}.sock"
            words = [*client(self.options.mib), "--ioengine=nbd"]
            words += [f"--uri=nbd+unix:///data{volume}?socket={socket}", *arguments]
            return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

        found = []
        for process in [begin(0), begin(1)]:
            text, _ = process.communicate()
            if process.returncode:
                sys.exit("fio failed")
            found.append(first_job(text))
        return found

    def run(self, loops: int) -> Measured:
        """Measure read hits on so many servers."""
        servers = [self.start(loops, loop) for loop in range(loops)]
        try:
            for _ in range(2):
                self.clients(loops, ("--rw=read", "--bs=64k", "--iodepth=8"))
            before = sum(map(processor, servers))
            reads = ("--rw=randread", f"--iodepth={self.options.depth}")
            jobs = self.clients(loops, (*reads, *lasting(self.options.seconds)))
            used = sum(map(processor, servers)) - before
        finally:
            for server in servers:
                server.terminate()
                server.wait()
        each = [measured(job, WORKLOADS[0], 0.0) for job in jobs]
        rate = sum(one.rate for one in each)
        median = statistics.mean(one.median for one in each)
        return Measured(rate, median, used * 1e6 / max(rate * self.options.seconds, 1))


def main() -> None:
    """Measure and print."""
    parser = command_line(__doc__, 64)
    parser.add_argument("--depth", type=int, default=64)
    options = parser.parse_args()
    found: dict[int, list[Measured]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        loops = Loops(Path(folder), options)
        for number in range(options.rounds):
            for count in (1, 2) if number % 2 else (2, 1):
                found[count].append(loops.run(count))
    print("| loops | operations/s | median us | processor us |\n|--:|--:|--:|--:|")
    for count, runs in found.items():
        cells = [
            statistics.median(getattr(run, field) for run in runs)
            for field in ("rate", "median", "processor")
        ]
        print(f"| {count} | {cells[0]:,.0f} | {cells[1]:.1f} | {cells[2]:.1f} |")
    ratio = statistics.median(
        two.rate / one.rate for one, two in zip(found[1], found[2], strict=True)
    )
    print(f"\nTwo loops serve {ratio:.2f} times what one serves.")


if __name__ == "__main__":
    main()
