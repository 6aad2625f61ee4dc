#!/usr/bin/env python3
"""How much slower a quiet client gets beside clients that mean no good.

For: `benches/live_neighbours.py [--rounds N] [--seconds S] [--server PATH] [--folder DIR]`. One
client reads blocks that are cached, one at a time, on an export of its own. Beside it, in turns:
nothing; clients that connect, say half of something and leave; clients that send one byte at a
time; one that asks for 32 MiB per request without end and takes no answers. Prints the quiet
client's median and 99th percentile, and the median of the rounds' ratios to being alone. Needs
fio with its engine `nbd`. Must never know: how the server works. Units: microseconds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from live import ROOT, Bench

STACK = """
[cache]
capacity = "96MiB"
policy = "lru"
partition = "static"
write = "write-back"

[serve]
devices = ["cache.img"]
listen = ["unix:s.sock"]
max_connections = 64

[[tenant]]
name = "data"
backing = "data.img"

[[tenant]]
name = "noisy"
backing = "noisy.img"
"""
OPEN = b"\0\0\0\3IHAVEOPT" + struct.pack(">II", 1, 5) + b"noisy"
"""Flags of a client, and the old way of choosing an export."""
READ = struct.pack(">IHHQQI", 0x25609513, 0, 0, 1, 0, 32 << 20)


def connected(path: str) -> socket.socket:
    """Connect; the server may hold clients back."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(0.2)
    client.connect(path)
    return client


def half_words(path: str, stop: Event) -> None:
    """Connect, say half of something, and leave."""
    words = [b"", b"GET / HTTP/1.1\r\n\r\n", OPEN[:9], OPEN + READ[:20], OPEN + b"\xee" * 64]
    turn = 0
    while not stop.is_set():
        try:
            with connected(path) as client:
                client.sendall(words[turn % len(words)])
        except OSError:
            time.sleep(0.001)
        turn += 1


def single_bytes(path: str, stop: Event) -> None:
    """Keep 32 connections open and send one byte on each in turn."""
    clients: list[socket.socket] = []
    turn = 0
    while not stop.is_set():
        try:
            if len(clients) < 32:
                clients.append(connected(path))
            client = clients[turn % len(clients)]
            client.sendall((OPEN + READ * 1000)[turn // 32 % 2000 :][:1])
        except OSError:
            clients.clear()
        turn += 1
        time.sleep(0.0005)


def large_reads(path: str, stop: Event) -> None:
    """Ask for 32 MiB again and again, and take answers slowly."""
    while not stop.is_set():
        try:
            with connected(path) as client:
                client.sendall(OPEN + READ * 100)
                while not stop.is_set():
                    client.recv(1 << 16)
                    time.sleep(0.0002)
        except OSError:
            time.sleep(0.001)


NEIGHBOURS: tuple[tuple[str, Callable[[str, Event], None] | None], ...] = (
    ("alone", None),
    ("half words", half_words),
    ("single bytes", single_bytes),
    ("large reads", large_reads),
)
QUIET = ("--rw=randread", "--iodepth=1", "--time_based")


def percentiles(bench: Bench, neighbour: Callable[[str, Event], None] | None) -> tuple[float, ...]:
    """Measure the quiet client's median and 99th percentile beside a neighbour."""
    stop = multiprocessing.Event()
    path = str(bench.folder / "s.sock")
    beside = None
    if neighbour is not None:
        beside = multiprocessing.Process(target=neighbour, args=(path, stop))
        beside.start()
    try:
        job = bench.fio("ours", (*QUIET, f"--runtime={round(bench.seconds * 1000)}ms"))
    finally:
        stop.set()
        if beside is not None:
            beside.join()
    read: dict[str, dict[str, dict[str, float]]] = job["read"]  # type: ignore[assignment]
    found = read["clat_ns"]["percentile"]
    return found["50.000000"] / 1000, found["99.000000"] / 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--server", type=Path, default=ROOT / "target/release/cachewrightd")
    parser.add_argument("--folder", type=Path, help="where the files go; a new one if left out")
    options = parser.parse_args()
    if not options.server.exists():
        sys.exit(f"found no {options.server}; expected a release build (`make cachewrightd`)")
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name, _ in NEIGHBOURS}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = Bench(Path(folder), 32, options.seconds, options.server.resolve())
        (bench.folder / "stack.toml").write_text(STACK)
        with (bench.folder / "noisy.img").open("wb") as file:
            file.truncate(256 << 20)
        server = bench.start("ours")
        try:
            for _ in range(2):
                bench.fio("ours", ("--rw=read", "--bs=64k", "--iodepth=8"))
            for _ in range(options.rounds):
                for name, neighbour in NEIGHBOURS:
                    found[name].append(percentiles(bench, neighbour))
        finally:
            if server is not None:
                server.terminate()
                server.wait()
    print("| beside | median us | p99 us | p99 / alone |\n|---|---|---|---|")
    for name, runs in found.items():
        median, p99 = (statistics.median(run[part] for run in runs) for part in (0, 1))
        alone = zip(runs, found["alone"], strict=True)
        ratio = statistics.median(run[1] / other[1] for run, other in alone)
        print(f"| {name} | {median:.0f} | {p99:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
