#!/usr/bin/env python3
"""What clients of a live server wait for while what decides is saved beside its recordings.

For: `benches/live_states.py [--blocks N] [--seconds S] [--rounds R] [--policies A,B] [--server
PATH] [--folder DIR]`. A cache of N blocks is filled; then one client reads 4 KiB blocks of it, one
at a time, and a recording ends each two seconds. With `record_state` a snapshot is saved with each.
Rounds with and without it take turns. Printed are, by policy, the snapshot's bytes per block, the
longest and the 99.99th percentile of the times of reads, and the processor time of a read, all
threads of the server together: medians over rounds. Needs fio with its engine `nbd`, and room for
two files of the cache's size in DIR (/dev/shm). Must never know: how the server works.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BLOCK = 4096
STACK = """
[cache]
capacity = "{blocks} blocks"
policy = "{policy}"
partition = "shared"

[serve]
devices = ["cache.img"]
listen = ["unix:s.sock"]
segment = "4MiB"
record = "kept"
record_span = "2s"
record_files = 3
record_state = {state}

[[tenant]]
name = "data"
backing = "data.img"
"""
# fio's name of the 99.99th percentile.
P9999 = "99.990000"
TICKS = os.sysconf("SC_CLK_TCK")


def serve(server: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start the server; return when clients can connect."""
    socket = folder / "s.sock"
    socket.unlink(missing_ok=True)
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen([str(server), "stack.toml"], cwd=folder, stdout=log, stderr=log)
    while not socket.exists():
        if process.poll() is not None:
            sys.exit((folder / "server.log").read_text())
        time.sleep(0.02)
    return process


def fio(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a client and return what it measured."""
    uri = f"nbd+unix:///data?socket={folder / 's.sock'}"
    words = ["fio", "--name=data", "--output-format=json", "--thread", "--ioengine=nbd"]
    words += [f"--uri={uri}", "--randrepeat=0", *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"fio: {done.stderr}")
    found = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    return dict(found)


def processor_us(process: subprocess.Popen[bytes]) -> float:
    """Return the processor time that a process has taken, in microseconds."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS * 1e6


def round_of(
    server: Path, folder: Path, policy: str, blocks: int, seconds: int, *, state: bool
) -> tuple[float, float, float, float]:
    """Serve once; return bytes per block, longest time, p99.99 and processor time, in us."""
    for name in ("cache.img", "data.img"):
        (folder / name).unlink(missing_ok=True)
        with (folder / name).open("wb") as file:
            file.truncate(blocks * BLOCK * (6 if name == "cache.img" else 4) // 4 + (64 << 20))
    text = STACK.format(blocks=blocks, policy=policy, state=str(state).lower())
    (folder / "stack.toml").write_text(text)
    words = [sys.executable, "-m", "cachewright", "live", "format", "stack.toml"]
    subprocess.run(
        [*words, "--force", "--discard-dirty"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    process = serve(server, folder)
    size = f"--size={blocks * BLOCK}"
    fio(folder, "--rw=write", "--bs=1M", "--iodepth=4", size)
    time.sleep(3)
    before = processor_us(process)
    job = fio(
        folder,
        "--rw=randread",
        "--bs=4k",
        size,
        "--time_based",
        f"--runtime={seconds}",
    )
    read = job["read"]
    used = (processor_us(process) - before) / read["total_ios"]
    times = read["clat_ns"]
    longest, tail = times["max"] / 1e3, times["percentile"][P9999] / 1e3
    process.terminate()
    process.wait()
    states = sorted((folder / "kept").glob("*.state"))
    per_block = states[-1].stat().st_size / blocks if states else 0
    for path in (folder / "kept").iterdir():
        path.unlink()
    return per_block, longest, tail, used


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=1 << 20)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--policies", default="lru,s3-fifo,duel-x")
    server = ROOT / "target/release/cachewrightd"
    parser.add_argument("--server", type=Path, default=server)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    args = parser.parse_args()
    print("| policy | state | bytes/block on disk | longest us | p99.99 us | processor us |")
    print("|---|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(dir=args.folder) as made:
        folder = Path(made)
        for policy in args.policies.split(","):
            found: dict[bool, list[tuple[float, float, float, float]]] = {True: [], False: []}
            for number in range(args.rounds):
                for state in (True, False) if number % 2 else (False, True):
                    found[state].append(
                        round_of(
                            args.server.resolve(),
                            folder,
                            policy,
                            args.blocks,
                            args.seconds,
                            state=state,
                        )
                    )
            for state, rounds in found.items():
                per_block, longest, tail, used = map(statistics.median, zip(*rounds, strict=True))
                print(
                    f"| {policy} | {'yes' if state else 'no'} | {per_block:.1f} | {longest:,.0f} "
                    f"| {tail:,.0f} | {used:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
