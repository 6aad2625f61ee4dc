#!/usr/bin/env python3
"""Where the time of a request goes on its way through the live server.

For: `benches/live_stations.py [--depths 1,8,32] [--workload read|write|flush] [--seconds S]
[--server PATH] [--folder DIR]`, where PATH is a build of `cachewrightd`. The kernel's own events
are taken (`perf record`, as root): what the server hands to io_uring, what comes back, what the
kernel gives to threads of its own, and when the server sleeps. The server is not changed for it.
One table has counts per request, which do not depend on how long tracing takes; the other has the
times between stations, which do. Must never know: the server's code. Units: microseconds.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from live import ROOT, Bench, lasting

EVENTS = (
    "io_uring:io_uring_submit_req",
    "io_uring:io_uring_complete",
    "io_uring:io_uring_task_add",
    "io_uring:io_uring_queue_async_work",
    "io_uring:io_uring_poll_arm",
)
WORKLOADS = {
    "read": ("--rw=randread",),
    "write": ("--rw=randwrite",),
    "flush": ("--rw=randwrite", "--fsync=1"),
}
LINE = re.compile(r"\s*(?P<time>[0-9.]+):\s+(?P<event>[a-z_]+:[a-z_]+):\s*(?P<rest>.*)")
REQUEST = re.compile(r"req (?:0x)?([0-9a-f]+)")
FILE_OPERATIONS = ("READ", "READ_FIXED", "WRITE", "WRITE_FIXED", "FSYNC")
SENDS = ("SEND", "SENDMSG", "SEND_ZC", "SENDMSG_ZC")


@dataclass
class Operation:
    """One operation of the ring: when it was handed over, was ready, and was taken."""

    kind: str
    submitted: float
    ready: float | None = None


@dataclass
class Stations:
    """What was seen of a server in a time."""

    requests: int = 0
    seconds: float = 0
    counts: Counter[str] = field(default_factory=Counter)
    times: dict[str, list[float]] = field(default_factory=dict)

    def note(self, name: str, seconds: float) -> None:
        """Keep one time between two stations."""
        self.times.setdefault(name, []).append(seconds * 1e6)


def trace(pid: int, folder: Path, seconds: float) -> list[str]:
    """Take the events of the whole machine for some seconds; returns them as lines."""
    words = ["perf", "record", "--quiet", "--all-cpus", "--output", str(folder / "perf.data")]
    words += ["--mmap-pages", "4096", "--clockid", "mono"]
    for event in EVENTS:
        words += ["-e", event]
    words += ["-e", "syscalls:sys_enter_io_uring_enter", "--filter", f"common_pid == {pid}"]
    words += ["-e", "sched:sched_switch", "--filter", f"prev_pid == {pid} && prev_state == 1"]
    subprocess.run([*words, "--", "sleep", str(seconds)], check=True)
    script = ["perf", "script", "--input", str(folder / "perf.data"), "--ns", "-F"]
    done = subprocess.run([*script, "time,event,trace"], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def found(lines: list[str], wire_bytes: int) -> Stations:
    """Count and time; `wire_bytes` are those that a client sends for one request."""
    stations = Stations()
    under_way: dict[str, Operation] = {}
    last: dict[str, float] = {}
    first = end = None
    received = 0
    for line in lines:
        match = LINE.match(line)
        if match is None:
            continue
        at, event, rest = float(match["time"]), match["event"].split(":")[1], match["rest"]
        first, end = at if first is None else first, at
        stations.counts[event] += 1
        request = REQUEST.search(rest)
        known = under_way.get(request[1]) if request else None
        if event == "io_uring_submit_req" and request:
            kind = rest.split("opcode ")[1].split(",")[0]
            kind = "SEND" if kind in SENDS else kind
            under_way[request[1]] = Operation(kind, at)
            stations.counts[f"submitted {kind}"] += 1
            before = "file done" if kind == "SEND" else "recv done"
            if before in last and kind in (*FILE_OPERATIONS, "SEND"):
                stations.note(f"{before} to {kind.lower()} submitted", at - last[before])
        elif event == "io_uring_task_add" and known:
            known.ready = at
        elif event == "io_uring_complete" and known and request:
            del under_way[request[1]]
            kind = known.kind
            ready = known.ready or at
            stations.note(f"{kind.lower()} submitted to ready", ready - known.submitted)
            stations.note(f"{kind.lower()} ready to taken", at - ready)
            last["file done" if kind in FILE_OPERATIONS else f"{kind.lower()} done"] = at
            if kind == "RECV":
                received += int(rest.split("result ")[1].split(",")[0])
    stations.requests = received // wire_bytes
    stations.seconds = (end or 0) - (first or 0)
    return stations


def report(depth: int, stations: Stations) -> None:
    """Print the tables of one depth."""
    each = max(stations.requests, 1)
    print(f"\ndepth {depth}: {stations.requests / max(stations.seconds, 1e-9):,.0f} requests/s\n")
    print("| counted | per request |\n|---|--:|")
    for name, count in sorted(stations.counts.items(), key=lambda item: -item[1]):
        print(f"| {name} | {count / each:.3f} |")
    print("\n| between | times | median us | mean us |\n|---|--:|--:|--:|")
    for name, times in sorted(stations.times.items()):
        print(
            f"| {name} | {len(times)} | {statistics.median(times):.1f} "
            f"| {statistics.fmean(times):.1f} |"
        )


def main() -> None:
    """Trace and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--depths", default="1,8,32")
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="read")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--server", type=Path, default=ROOT / "target/release/cachewrightd")
    parser.add_argument("--folder", type=Path, help="where the files go; a new one if left out")
    options = parser.parse_args()
    if not options.server.exists():
        sys.exit(f"found no {options.server}; expected a release build (`make cachewrightd`)")
    wire_bytes = {"read": 28, "write": 28 + 4096, "flush": 56 + 4096}[options.workload]
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        bench = Bench(folder, options.mib, options.seconds, options.server.resolve())
        for depth in (int(word) for word in options.depths.split(",")):
            server = bench.start("ours")
            if server is None:
                sys.exit("found no server; expected one")
            try:
                bench.fill()
                words = (*WORKLOADS[options.workload], f"--iodepth={depth}")
                words = bench.words("ours", (*words, *lasting(options.seconds + 1.5)))
                client = subprocess.Popen(words, stdout=subprocess.DEVNULL)
                time.sleep(0.7)
                lines = trace(server.pid, folder, options.seconds)
                client.wait()
            finally:
                server.terminate()
                server.wait()
            report(depth, found(lines, wire_bytes))


if __name__ == "__main__":
    main()
