#!/usr/bin/env python3
"""Cachewright beside libCacheSim: the same binary trace, one thread, CPU time, in the same run.

For: the table in benches/peers.md. Each cell is one process per side, both right after each other,
so that the load of the machine hits both. The trace (seeded Zipf, oracleGeneral) and the wheel of
libCacheSim are kept in target/peers. Must never know: how either side works.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "target" / "peers"
PEER_PYTHON = KEPT / "venv" / "bin" / "python"
PEER_WHEEL = "libcachesim==0.3.5"
SIDES = {"cachewright": "side_cachewright.py", "libcachesim": "side_libcachesim.py"}
# Both sides look a name up: side_cachewright.py, side_libcachesim.py.
POLICIES = ["lru", "fifo", "clock", "sieve", "arc", "2q", "lfu"]
POLICIES += ["s3-fifo", "lirs (libcachesim)", "belady"]
SWEEP_POLICIES = [
    *POLICIES,
    "s3-fifo (paper)",
    "lirs",
    "larc",
    "smq",
    "access-frequency",
    "belady-bypass",
]
SWEEP_SIZES = 8
RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
SEED = 20261121


@dataclass(frozen=True)
class Measured:
    """What one process used and found."""

    cpu_s: float
    peak_mib: float
    miss_ratios: list[float]


def next_access(ids: np.ndarray) -> np.ndarray:
    """Return for each access the 1-based index of the next one of the same id, -1 for none."""
    order = np.argsort(ids, kind="stable")
    again = ids[order][1:] == ids[order][:-1]
    following = np.full(len(ids), -1, np.int64)
    following[order[:-1][again]] = order[1:][again] + 1
    return following


def make_trace(path: Path, requests: int, blocks: int) -> None:
    """Write Zipf(1.0) requests as oracleGeneral, with the next access as its definition asks."""
    random = np.random.default_rng(SEED)
    weights = np.cumsum(1 / np.arange(1, blocks + 1))
    scattered = random.permutation(blocks).astype(np.uint64)
    ids = scattered[np.searchsorted(weights / weights[-1], random.random(requests))]
    records = np.zeros(requests, RECORD)
    records["time"] = np.arange(requests) // 1000
    records["id"], records["size"], records["next"] = ids + 1, 1, next_access(ids)
    path.parent.mkdir(parents=True, exist_ok=True)
    records.tofile(path)


def install_peer() -> bool:
    """Put the wheel of libCacheSim into an environment of its own; say whether it is there."""
    if not PEER_PYTHON.exists():
        venv.create(KEPT / "venv", with_pip=True)
    command = [PEER_PYTHON, "-m", "pip", "install", "--quiet", PEER_WHEEL]
    return subprocess.run(command, check=False).returncode == 0


def measure(python: Path | str, side: str, *arguments: str) -> Measured | None:
    """Run one side in a process; nothing when it fails, with its last line on stderr."""
    command = [str(python), str(ROOT / "benches" / SIDES[side]), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        print(f"  {side} {' '.join(arguments[1:])}: {reason}", file=sys.stderr)
        return None
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def peer_curve(trace: Path) -> Measured | None:
    """Time libCacheSim's one-pass curve, if its command line (built from source) is on the path."""
    program = shutil.which("mrcProfiler")
    if program is None:
        return None
    options = ["--algo=LRU", "--profiler=SHARDS", "--profiler-params=FIX_RATE,1,42"]
    command = [program, str(trace), "oracleGeneral", *options, "--ignore-obj-size=1"]
    before = _children_cpu_s()
    subprocess.run(command, check=True, capture_output=True, cwd=KEPT)
    return Measured(_children_cpu_s() - before, float("nan"), [])


def _children_cpu_s() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ratio(ours: Measured | None, theirs: Measured | None) -> str:
    """Return how many times less CPU time ours took."""
    return "-" if ours is None or theirs is None else f"{theirs.cpu_s / ours.cpu_s:.2f}"


def speed(measured: Measured | None, requests: int) -> str:
    """Return millions of requests per CPU-second."""
    return "-" if measured is None else f"{requests / measured.cpu_s / 1e6:.1f}"


def misses(measured: Measured | None) -> str:
    """Return the miss ratio."""
    return "-" if measured is None else f"{measured.miss_ratios[0]:.6f}"


class Table:
    """A markdown table that is shown row by row while it grows."""

    def __init__(self, title: str, *columns: str) -> None:
        self.lines = [
            f"\n## {title}\n",
            "| " + " | ".join(columns) + " |",
            "|---" * len(columns) + "|",
        ]
        print("\n".join(self.lines), flush=True)

    def row(self, *cells: str) -> None:
        """Append a row and show it."""
        self.lines.append("| " + " | ".join(cells) + " |")
        print(self.lines[-1], flush=True)


def make_scan(path: Path, blocks: int) -> None:
    """Write one request for each of so many blocks, in scattered order."""
    records = np.zeros(blocks, RECORD)
    records["id"] = np.random.default_rng(SEED).permutation(blocks) + 1
    records["size"], records["next"] = 1, -1
    records.tofile(path)


def split_sample(sample: Path, path: Path) -> int:
    """Write each aligned 4 KiB block of a trace's requests as one record; return how many."""
    import cachewright

    frame = cachewright.read_trace(cachewright.Trace(sample, format="oracle-general"))
    offset = frame["offset_bytes"].to_numpy()
    first, last = offset // 4096, (offset + frame["length_bytes"].to_numpy() - 1) // 4096
    counts = (last - first + 1).astype(np.int64)
    starts = np.repeat(first, counts)
    within = np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts)
    records = np.zeros(len(starts), dtype=RECORD)
    records["time"] = np.repeat(frame["time_ns"].to_numpy() // 10**9, counts)
    records["id"], records["size"] = starts + within.astype(np.uint64), 4096
    records["next"] = next_access(records["id"])
    records.tofile(path)
    return len(records)


class Comparison:
    """One trace and both sides."""

    def __init__(self, trace: Path, requests: int, with_peer: bool, runs: int = 1) -> None:
        self.trace, self.requests, self.with_peer = trace, requests, with_peer
        self.runs = runs

    def _median(self, python: Path | str, side: str, *arguments: str) -> Measured | None:
        """Return the run of median CPU time of so many."""
        done = [measure(python, side, str(self.trace), *arguments) for _ in range(self.runs)]
        good = sorted((run for run in done if run), key=lambda run: run.cpu_s)
        return good[len(good) // 2] if good else None

    def ours(self, *arguments: str) -> Measured | None:
        """Measure Cachewright."""
        return self._median(sys.executable, "cachewright", *arguments)

    def theirs(self, *arguments: str) -> Measured | None:
        """Measure libCacheSim, if it takes part."""
        if not self.with_peer:
            return None
        return self._median(PEER_PYTHON, "libcachesim", *arguments)

    def single(self, sizes: list[int], trace: str) -> Table:
        """One policy and one size per process: decoding and simulation, end to end."""
        columns = ("policy", "blocks", "ours M/s", "theirs M/s", "ratio", "misses", "theirs")
        table = Table(f"One policy, one size, decoding included: {trace}", *columns)
        for size in sizes:
            for policy in POLICIES:
                ours, theirs = self.ours(policy, str(size)), self.theirs(policy, str(size))
                cells = (speed(ours, self.requests), speed(theirs, self.requests))
                table.row(
                    policy, str(size), *cells, ratio(ours, theirs), misses(ours), misses(theirs)
                )
        return table

    def many(self, sizes: list[int], sweep: list[int]) -> Table:
        """Many policies and sizes in one command, and the exact curve."""
        columns = (
            "what",
            "ours CPU-s",
            "theirs CPU-s",
            "ratio",
            "ours peak MiB",
            "theirs peak MiB",
        )
        table = Table("Many caches, and the curve of all sizes", *columns)
        lists = ",".join(POLICIES), ",".join(map(str, sizes))
        self._both(table, f"{len(POLICIES)} policies x {len(sizes)} sizes", *lists)
        self._both(table, "lru x 8 sizes", "lru", ",".join(map(str, sweep)))
        ours = self.ours(",".join(SWEEP_POLICIES), ",".join(map(str, sweep)))
        self._row(table, f"{len(SWEEP_POLICIES)} policies x {len(sweep)} sizes", ours, None)
        for size in sizes:
            ours = self.ours("python", str(size))
            title = f"fifo in Python, {size} blocks ({speed(ours, self.requests)} M/s)"
            self._row(table, title, ours, None)
        theirs = peer_curve(self.trace) if self.with_peer else None
        self._row(table, "exact lru curve, all sizes", self.ours("curve"), theirs)
        return table

    def _both(self, table: Table, what: str, *arguments: str) -> None:
        self._row(table, what, self.ours(*arguments), self.theirs(*arguments))

    @staticmethod
    def _row(table: Table, what: str, ours: Measured | None, theirs: Measured | None) -> None:
        seconds = ["-" if side is None else f"{side.cpu_s:.2f}" for side in (ours, theirs)]
        peaks = ["-" if side is None else f"{side.peak_mib:.0f}" for side in (ours, theirs)]
        table.row(what, *seconds, ratio(ours, theirs), *peaks)


def memory(small: int, with_peer: bool) -> Table:
    """Bytes per resident block, everything included: how the peak grows with a cache that fills.

    Two traces ask once for each of so many scattered blocks; the cache holds them all.
    """
    table = Table("Memory per resident block, bytes", "policy", "ours", "theirs")
    large = 5 * small
    scans = {}
    for blocks in (small, large):
        path = KEPT / f"scan-{blocks}.oracleGeneral"
        make_scan(path, blocks)
        scans[blocks] = Comparison(path, blocks, with_peer)
    for policy in POLICIES[:4]:
        cells = []
        for side in ("ours", "theirs"):
            peaks = [getattr(scans[blocks], side)(policy, str(blocks)) for blocks in scans]
            few, many = (peak.peak_mib if peak else None for peak in peaks)
            known = few is not None and many is not None
            cells.append(f"{(many - few) * 2**20 / (large - small):.0f}" if known else "-")
        table.row(policy, *cells)
    return table


def heading(arguments: argparse.Namespace) -> str:
    """Return date, processor and commit, so that a figure can be judged later."""
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if "model name" in line
        ),
        "unknown",
    )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout.strip()
    return (
        "# Cachewright beside libCacheSim\n\n"
        f"{datetime.date.today()}, {cpu}, commit {commit or 'unknown'}, {PEER_WHEEL}. "
        f"{arguments.requests:,} Zipf(1.0) requests over {arguments.blocks:,} blocks "
        f"(seed {SEED}), oracleGeneral, unit blocks, CPU time, one thread. "
        "Made by `make bench`; see README.md.\n"
    )


def main() -> int:
    """Make the trace, measure both sides, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000_000)
    parser.add_argument("--blocks", type=int, default=1_000_000)
    parser.add_argument(
        "--runs", type=int, default=3, help="runs of a policy at a size; the median is shown"
    )
    parser.add_argument("--no-peer", action="store_true", help="measure Cachewright alone")
    parser.add_argument("--sample", type=Path, help="an oracleGeneral trace to split and replay")
    parser.add_argument("--out", type=Path, help="where the page goes; nowhere when left out")
    arguments = parser.parse_args()
    begin = time.monotonic()
    with_peer = not arguments.no_peer and install_peer()
    trace = KEPT / f"zipf-{arguments.requests}-{arguments.blocks}.oracleGeneral"
    if not trace.exists():
        print(f"making {trace.relative_to(ROOT)}", flush=True)
        make_trace(trace, arguments.requests, arguments.blocks)
    comparison = Comparison(trace, arguments.requests, with_peer, arguments.runs)
    once = Comparison(trace, arguments.requests, with_peer)
    sizes = [arguments.blocks // 100, arguments.blocks // 10]
    sweep = [arguments.blocks * step // (10 * SWEEP_SIZES) for step in range(1, SWEEP_SIZES + 1)]
    tables = [
        comparison.single(sizes, "Zipf"),
        once.many(sizes, sweep),
        memory(arguments.blocks, with_peer),
    ]
    if arguments.sample and arguments.sample.exists():
        split = KEPT / "sample.oracleGeneral"
        blocks = split_sample(arguments.sample, split)
        sample = Comparison(split, blocks, with_peer, runs=5)
        title = f"the sample in {blocks:,} blocks of 4 KiB, median of 5"
        tables.append(sample.single([16_384, 131_072], title))
    if arguments.out:
        lines = [heading(arguments), *(line for table in tables for line in table.lines)]
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"\ntook {time.monotonic() - begin:.0f} s")
    rows = [line for table in tables for line in table.lines if line.startswith("| ")]
    return 0 if any(" | - | - |" not in row for row in rows[1:]) else 1


if __name__ == "__main__":
    sys.exit(main())
