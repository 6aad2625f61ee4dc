#!/usr/bin/env python3
"""Goals of real clients, a noisy neighbour, and write-backs beside requests, on a live server.

For: `benches/live_goals.py [--part goals|noisy|ahead] [--seconds S] [--server PATH] [--folder
DIR]`. `goals`: a database (PostgreSQL on ext4) and a client that reads some blocks more often than
others have goals; a scanner reads as fast as it can. Their hit ratios under `shared` and under
`soft-qos-x`. `noisy`: a quiet client's 99th percentile alone, beside a noisy one that shares the
cache, and beside the same with a quota and caps. `ahead`: what a client waits for while a full
cache of dirty blocks is written to: without write-backs ahead of need, with them, with a target.
Needs root, fio with its engine `nbd`, and PostgreSQL for `goals`. Must never know: how the server
works. Units: seconds, microseconds, MiB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cachewright.answers import LiveStatus
from cachewright.live import watching

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from live_kills import ROOT, Machine, call, missing

# Samples of a goal's run, the first of which are not counted: the cache fills, goals are learned.
SAMPLES, FIRST = 60, 12
HEAD = """
[cache]
capacity = "{capacity}"
policy = "lru"
partition = "{partition}"

[replay]
interval = "2s"
profile_share = 0

[serve]
devices = ["cache.img"]
listen = ["unix:s.sock"]
monitor = "127.0.0.1:9476"
segment = "1MiB"
backing_delay = "{delay}"
{bounds}
"""
TENANT = """
[[tenant]]
name = "{name}"
backing = "{name}.img"
{more}
"""
COLOURS = {"shared": "#b35900", "soft-qos-x": "#0b62a4"}
GOALS = {"data": 0.60, "zipf": 0.70}


def stack(
    tenants: dict[str, str],
    *,
    capacity: str,
    partition: str,
    delay: str = "1ms",
    bounds: str = "",
) -> str:
    """Return the text of a stack."""
    text = HEAD.format(capacity=capacity, partition=partition, delay=delay, bounds=bounds)
    return text + "".join(TENANT.format(name=name, more=more) for name, more in tenants.items())


class Bench(Machine):
    """A server of some volumes, and clients of it."""

    def __init__(self, folder: Path, server: Path, text: str, sizes: dict[str, int]) -> None:
        """Make the files, and the cache's device."""
        super().__init__(folder, server)
        for name, mib in {**sizes, "cache.img": 1024}.items():
            with (folder / name).open("wb") as file:
                file.truncate(mib << 20)
        (folder / "stack.toml").write_text(text)
        command = [
            sys.executable,
            "-m",
            "cachewright",
            "live",
            "format",
            folder / "stack.toml",
        ]
        call(*command, "--discard-dirty", "--force")

    def serve(self) -> None:
        """Start the server alone."""
        socket = self.folder / "s.sock"
        socket.unlink(missing_ok=True)
        log = (self.folder / "server.log").open("ab")
        words = [str(self.server), "stack.toml"]
        self.processes["server"] = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
        while not socket.exists():
            if self.has_ended("server"):
                return
            time.sleep(0.02)

    def fio(self, export: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a client of an export."""
        uri = f"nbd+unix:///{export}?socket={self.folder / 's.sock'}"
        words = [
            "fio",
            f"--name={export}",
            "--output-format=json",
            "--randrepeat=0",
            "--thread",
        ]
        words += [
            "--norandommap",
            "--ioengine=nbd",
            f"--uri={uri}",
            "--time_based",
            *arguments,
        ]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def status(self) -> LiveStatus:
        """Return what the server has counted."""
        return watching.status("9476")

    def stop(self) -> None:
        """End the server."""
        self.processes["server"].terminate()
        self.processes["server"].wait()


def job(client: subprocess.Popen[str]) -> dict[str, dict[str, object]]:
    """Wait for a client and return what it measured."""
    out, errors = client.communicate()
    if client.returncode:
        sys.exit(f"fio: {errors}")
    found: dict[str, dict[str, object]] = json.loads(out[out.index("{") :])["jobs"][0]
    return found


def percentile(measured: dict[str, dict[str, object]], kind: str, share: str) -> float:
    """Return microseconds that so many percent of a client's requests took at most."""
    clat: dict[str, dict[str, float]] = measured[kind]["clat_ns"]  # type: ignore[assignment]
    return clat["percentile"][share] / 1000


def ratios(before: LiveStatus, after: LiveStatus) -> dict[str, float]:
    """Return the hit ratio of each tenant between two looks."""
    found = {}
    for old, new in zip(before.tenants, after.tenants, strict=True):
        accesses = new.blocks.reads + new.blocks.writes - old.blocks.reads - old.blocks.writes
        hits = new.blocks.read_hits + new.blocks.write_hits
        hits -= old.blocks.read_hits + old.blocks.write_hits
        found[new.name] = hits / accesses if accesses else float("nan")
    return found


def goals(options: argparse.Namespace) -> None:
    """Measure hit ratios of clients with goals."""
    print("| partition | tenant | goal | hit ratio | lowest sample | samples below by over 2 % |")
    print("|---|---|--:|--:|--:|--:|")
    curves: dict[str, list[dict[str, float]]] = {}
    for partition in ("shared", "soft-qos-x"):
        tenants = {name: f"goal_hit_ratio = {goal}" for name, goal in GOALS.items()}
        text = stack({**tenants, "scan": ""}, capacity="160MiB", partition=partition)
        sizes = {"data.img": 1024, "zipf.img": 512, "scan.img": 2048}
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            bench = Bench(Path(folder), options.server, text, sizes)
            bench.connect()
            call("mkfs.ext4", "-q", "-F", bench.loop)
            call("mount", bench.loop, bench.mount)
            bench.database.mkdir()
            call("chown", "-R", "postgres", bench.mount)
            bench.postgres("initdb", "-k", "-D", bench.database)
            call("umount", bench.mount)
            bench.start_database()
            call(*bench.client("pgbench", "-i", "-s", "8", "-q", "postgres"))
            clients = beside(bench, options.seconds)
            curve, first = [], bench.status()
            last = first
            for number in range(SAMPLES):
                time.sleep(options.seconds / SAMPLES)
                now = bench.status()
                curve.append(ratios(last, now))
                last = now
                first = now if number + 1 == FIRST else first
            for client in clients:
                client.terminate()
                client.wait()
            whole = ratios(first, last)
            curves[partition] = curve
            bench.stop_database()
            bench.disconnect()
            bench.stop()
        for name, goal in GOALS.items():
            counted = [one[name] for one in curve[FIRST:]]
            below = sum(ratio < goal - 0.02 for ratio in counted)
            row = f"{goal:.2f} | {whole[name]:.3f} | {min(counted):.3f} | {below} of {len(counted)}"
            print(f"| {partition} | {name} | {row} |", flush=True)
    if options.figure:
        options.figure.write_text(figure(curves))


def figure(curves: dict[str, list[dict[str, float]]]) -> str:
    """Draw hit ratios over time as SVG: a panel for each tenant, a line for each partitioner."""
    wide, high, left = 560, 150, 46
    parts = []
    for panel, (name, goal) in enumerate(GOALS.items()):
        top = 24 + panel * (high + 44)
        level = top + high * (1 - goal)
        parts.append(f'<text x="{left}" y="{top - 8}">{name}: hit ratio, goal {goal:.2f}</text>')
        parts.append(f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" class="frame"/>')
        ends = f'x1="{left}" y1="{level}" x2="{left + wide}" y2="{level}"'
        parts.append(f'<line {ends} class="goal"/>')
        for ratio in (0, 0.5, 1):
            y = top + high * (1 - ratio) + 4
            parts.append(f'<text x="{left - 6}" y="{y}" text-anchor="end">{ratio:g}</text>')
        for number, (partition, curve) in enumerate(curves.items()):
            known = [(at, one[name]) for at, one in enumerate(curve) if one[name] == one[name]]
            step = wide / (SAMPLES - 1)
            points = [f"{left + at * step:.1f},{top + high * (1 - y):.1f}" for at, y in known]
            line = f'points="{" ".join(points)}" fill="none" stroke="{COLOURS[partition]}"'
            parts.append(f"<polyline {line}/>")
            place = f'x="{left + 300 + number * 110}" y="{top - 8}"'
            parts.append(f'<text {place} fill="{COLOURS[partition]}">{partition}</text>')
    bottom = 24 + len(GOALS) * (high + 44)
    parts.append(f'<text x="{left}" y="{bottom - 12}">{SAMPLES} samples of equal length</text>')
    style = "text{font:12px sans-serif}.frame{fill:none;stroke:#999}"
    style += ".goal{stroke:#333;stroke-dasharray:4 3}"
    size = f'width="{left + wide + 12}" height="{bottom}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, f"<style>{style}</style>", *parts, "</svg>", ""])


def beside(bench: Bench, seconds: float) -> list[subprocess.Popen[str]]:
    """Start the clients: a database, a reader that prefers some blocks, and a scanner."""
    runtime = f"--runtime={round(seconds) + 60}s"
    database = bench.client("pgbench", "-c", "4", "-T", str(round(seconds) + 60), "postgres")
    null = subprocess.DEVNULL
    zipf = ("--rw=randread", "--random_distribution=zipf:1.1", "--bs=4k", "--iodepth=4")
    return [
        subprocess.Popen(database, stdout=null, stderr=null, text=True),
        bench.fio("zipf", *zipf, "--rate_iops=600", "--size=512m", runtime),
        bench.fio("scan", "--rw=read", "--bs=64k", "--iodepth=4", "--size=2048m", runtime),
    ]


def noisy(options: argparse.Namespace) -> None:
    """Measure a quiet client beside a noisy one."""
    caps = 'max_iops = 400\nmax_bandwidth = "8MiB"'
    ways = {"shared": ("shared", ""), "static and caps": ("static", caps)}
    print("| neighbour | p50 us | p99 us | p99 / alone |\n|---|--:|--:|--:|")
    for name, (partition, cap) in ways.items():
        tenants = {"quiet": "weight = 3", "noisy": cap}
        text = stack(tenants, capacity="64MiB", partition=partition)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            sizes = {"quiet.img": 64, "noisy.img": 1024}
            bench = Bench(Path(folder), options.server, text, sizes)
            bench.serve()
            quiet = (
                "--rw=randread",
                "--bs=4k",
                "--iodepth=1",
                "--size=32m",
                "--rate_iops=300",
            )
            job(bench.fio("quiet", "--rw=read", "--bs=64k", "--size=32m", "--runtime=5s"))
            runtime = f"--runtime={options.seconds}s"
            alone = job(bench.fio("quiet", *quiet, runtime))
            loud = ("--rw=randrw", "--bs=64k", "--iodepth=32", "--size=1024m")
            other = bench.fio("noisy", *loud, f"--runtime={options.seconds + 20}s")
            time.sleep(5)
            loaded = job(bench.fio("quiet", *quiet, runtime))
            other.terminate()
            other.wait()
            bench.stop()
        p99 = percentile(alone, "read", "99.000000")
        for what, found in ((f"none ({name})", alone), (name, loaded)):
            median, high = (percentile(found, "read", f"{share}.000000") for share in (50, 99))
            print(f"| {what} | {median:.0f} | {high:.0f} | {high / p99:.1f} |", flush=True)


def ahead(options: argparse.Namespace) -> None:
    """Measure writes to a cache that is full of dirty blocks."""
    target = options.target
    ways = {
        "none": "",
        "ahead of need": "dirty_high = 0.5\ndirty_low = 0.4",
        f"and a target of {target} ms": (
            f'dirty_high = 0.5\ndirty_low = 0.4\nlatency_target = "{target}ms"'
        ),
    }
    print("| write-backs ahead | write p50 us | write p99 us | read hit p99 us | p99 / target |")
    print("|---|--:|--:|--:|--:|")
    for name, bounds in ways.items():
        text = stack({"data": ""}, capacity="64MiB", partition="shared", bounds=bounds)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            bench = Bench(Path(folder), options.server, text, {"data.img": 512})
            bench.serve()
            fill = (
                "--rw=randwrite",
                "--bs=64k",
                "--iodepth=8",
                "--size=512m",
                "--runtime=8s",
            )
            job(bench.fio("data", *fill))
            writes = (
                "--rw=randwrite",
                "--bs=4k",
                "--iodepth=4",
                "--rate_iops=400",
                "--size=512m",
            )
            runtime = f"--runtime={options.seconds}s"
            reader = bench.fio(
                "data",
                "--rw=randread",
                "--bs=4k",
                "--iodepth=1",
                "--rate_iops=200",
                "--size=8m",
                runtime,
            )
            found, hits = job(bench.fio("data", *writes, runtime)), job(reader)
            bench.stop()
        median, high = (percentile(found, "write", f"{share}.000000") for share in (50, 99))
        read = percentile(hits, "read", "99.000000")
        ratio = high / (target * 1000)
        print(
            f"| {name} | {median:.0f} | {high:.0f} | {read:.0f} | {ratio:.2f} |",
            flush=True,
        )


PARTS = {"goals": goals, "noisy": noisy, "ahead": ahead}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--target", type=float, default=10, help="milliseconds, of `ahead`")
    parser.add_argument("--server", type=Path, default=ROOT / "target/release/cachewrightd")
    parser.add_argument("--folder", type=Path, help="where the files go; a new one if left out")
    parser.add_argument("--figure", type=Path, help="an SVG file for the samples of `goals`")
    options = parser.parse_args()
    options.server = options.server.resolve()
    if not options.server.exists():
        sys.exit(f"found no {options.server}; expected a release build (`make cachewrightd`)")
    lacking = missing()
    if lacking:
        sys.exit(f"skipped: needs {lacking}")
    for part in options.part or list(PARTS):
        PARTS[part](options)


if __name__ == "__main__":
    main()
