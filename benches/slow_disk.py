#!/usr/bin/env python3
"""What a tenant waits for beside one that writes more than its disk takes, in virtual time.

For: `benches/slow_disk.py [--server PATH] [--partition NAME] [--shrink HOW] [--faster N]`. Two
tenants have a cache, and a disk each. The busy one writes 2,000 blocks per second, in places at
random, where its disk takes about half of that. The quiet one either asks for 1,000 blocks that are
cached, or writes other ones, so many times as often as usual. Both are rehearsed with caches of
small and of large segments, and without the busy tenant. Printed are response times by kind, and
the blocks that the log appends for each one written. Same server, same numbers. Must never know:
how the server works.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BLOCK = 4096
SECONDS = 20
# Requests per second.
HOT, COLD, BUSY = 200, 40, 2000
PLACES = 200_000
# Blocks with which a tenant that writes other ones fills its half of the cache first.
FILLED = 8192
DEVICES = ("--drive", "nvme-tlc", "--backing", "hdd-7200-2tb")
CACHES = (("64MiB", "1MiB"), ("128MiB", "16MiB"))
STACK = """
[cache]
capacity = "{capacity}"
policy = "lru"
partition = "{partition}"
shrink = "{shrink}"

[replay]
interval = "500ms"

[serve]
devices = ["cache.img"]
segment = "{segment}"

[[tenant]]
name = "0"
backing = "quiet.img"

[[tenant]]
name = "1"
backing = "busy.img"
"""
# A request: microseconds, volume, operation, block.
Asked = tuple[int, int, str, int]


def hot(draw: random.Random, faster: int) -> list[Asked]:
    """Return reads and writes, by turns, of blocks that are soon cached."""
    times = range(0, SECONDS * 1_000_000, 1_000_000 // (HOT * faster))
    return [(at + 1, 0, "RW"[nth % 2], draw.randrange(1000)) for nth, at in enumerate(times)]


def cold(draw: random.Random, faster: int) -> list[Asked]:
    """Return writes that fill the tenant's half of the cache, and then writes of other blocks."""
    first = [(nth * 100, 0, "W", 300_000 + nth) for nth in range(FILLED)]
    times = range(0, SECONDS * 1_000_000, 1_000_000 // (COLD * faster))
    return first + [(at + 1, 0, "W", draw.randrange(PLACES)) for at in times]


def busy(draw: random.Random) -> list[Asked]:
    """Return more writes than a disk takes, from the second second on."""
    times = range(1_000_000, (SECONDS + 1) * 1_000_000, 1_000_000 // BUSY)
    return [(at, 1, "W", draw.randrange(PLACES)) for at in times]


def rehearsed(server: Path, folder: Path, stack: str, requests: list[Asked]) -> Any:
    """Return what came of it."""
    lines = [f"{volume},{op},{block * BLOCK},{BLOCK},{at}" for at, volume, op, block in requests]
    (folder / "asked.csv").write_text("\n".join(lines) + "\n")
    (folder / "stack.toml").write_text(stack)
    command = [str(server), "rehearse", "stack.toml", "--recording", "asked.csv", *DEVICES]
    done = subprocess.run(
        [*command, "--json"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["cases"][0]


def shown(tenant: Any, kind: str) -> str:
    """Return mean and 99th percentile of a kind."""
    for one in tenant["responses"]:
        if one["kind"] == kind and one["count"] > 0:
            return f"{one['mean_us']:,.0f}, {one['p99_us']:,.0f}"
    return ""


def main() -> None:
    """Rehearse each case, and print a table of microseconds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    release = ROOT / "target" / "release" / "cachewrightd"
    parser.add_argument("--server", type=Path, default=release)
    parser.add_argument("--partition", default="equal")
    parser.add_argument("--shrink", default="at-once")
    parser.add_argument(
        "--faster", type=int, default=1, help="times the usual rate of the quiet tenant"
    )
    given = parser.parse_args()
    keys = {"partition": given.partition, "shrink": given.shrink}
    print(
        "| cache, segment | quiet tenant | beside | its reads: mean, p99 us | its writes | others "
        "| appended per written |"
    )
    print("|---|---|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for capacity, segment in CACHES:
            stack = STACK.format(capacity=capacity, segment=segment, **keys)
            for name, quiet in (("hot", hot), ("cold", cold)):
                for beside in (False, True):
                    # The other volume is known, but for one request silent.
                    others = busy(random.Random(2)) if beside else [(0, 1, "W", 0)]
                    requests = sorted(quiet(random.Random(1), given.faster) + others)
                    case = rehearsed(given.server.resolve(), Path(folder), stack, requests)
                    tenants = case["tenants"]
                    cells = [f"{capacity}, {segment}", name, "a slow disk" if beside else "nothing"]
                    cells += [shown(tenants[0], "read"), shown(tenants[0], "write")]
                    cells.append(shown(tenants[1], "write") if beside else "")
                    cells.append(f"{case['log']['write_amplification']:.2f}")
                    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
