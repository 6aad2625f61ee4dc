#!/usr/bin/env python3
"""A plan for a synthetic fleet: its gap to the bound, its time, and goals kept in replays.

For: `benches/fleet_plan.py [--volumes N] [--hosts N] [--requests N] [--peaks N] [--folder DIR]`.
Volumes are of five kinds with sizes over two orders of magnitude; each has a goal between 40 % and
95 % of its best hit ratio, and one in five is in a group that must not share hosts. Requests come
by day and night if there are peaks. Prints a table for benches/fleet.md. Must never know: how
plans are made. Units: seconds, requests, volumes.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from cachewright import api, traces, words
from cachewright.fleet.placement.planning import plan_fleet

SEED = 24
KINDS = (
    '{{ kind = "zipf", span = "{span}KiB", alpha = 0.9 }}',
    '{{ kind = "hot-cold", span = "{span}KiB", hot_space = 0.1, hot_access = 0.9 }}',
    '{{ kind = "uniform", span = "{span}KiB" }}',
    '{{ kind = "mix", part = [{{ weight = 3, pattern = {{ kind = "zipf", span = "{span}KiB", '
    'alpha = 1.1 }} }}, {{ weight = 1, pattern = {{ kind = "loop", span = "{half}KiB", '
    'offset = "64GiB" }} }}] }}',
    '{{ kind = "phases", repeat = true, phase = [{{ duration = "6h", pattern = {{ kind = "zipf", '
    'span = "{span}KiB", alpha = 1.0 }} }}, {{ duration = "6h", pattern = {{ kind = "uniform", '
    'span = "{half}KiB", offset = "64GiB" }} }}] }}',
)
SYNTH = """
[synth]
seed = {seed}

[[tenant]]
name = "v"
count = {count}
arrival = {arrival}
read_share = {reads}
size = "4KiB"
pattern = {pattern}
"""
FLEET = """
name = "synthetic"
tenants = "volumes.csv"

[cache]
block = "4KiB"
policy = "lru"

[replay]
clock = "common"
interval = "10min"
profile_share = 0

[hosts]
count = {hosts}
{more}
"""


def make(job: tuple[Path, int, int, bool]) -> dict[str, str]:
    """Write one volume's trace; return its row of the table of volumes."""
    folder, index, requests, by_day = job
    random = np.random.default_rng([SEED, index])
    span = int(np.exp(random.normal(np.log(64 << 10), 1.0)))
    count = int(requests * random.uniform(0.5, 1.5))
    rate = f"{count / 24:.0f}/h"
    arrival = f'{{ kind = "poisson", rate = "{rate}" }}'
    if by_day:
        on = int(random.integers(6, 14))
        arrival = (
            f'{{ kind = "poisson", rate = "{count / on:.0f}/h", on = "{on}h", '
            f'off = "{24 - on}h", off_rate = "{count / 200:.0f}/h" }}'
        )
    pattern = KINDS[index % len(KINDS)].format(span=span, half=max(span // 2, 64))
    spec = folder / f"v{index:05}.toml"
    reads = f"{random.uniform(0.3, 0.95):.2f}"
    spec.write_text(
        SYNTH.format(seed=index, count=count, arrival=arrival, reads=reads, pattern=pattern)
    )
    trace = folder / f"v{index:05}.parquet"
    traces.copy(traces.synthetic(spec), trace, overwrite=True)
    best = 1 - api.mrc(str(trace), points=64, threads=1).answer.curves[0].points[-1][1]
    group = f"g{index // 10}" if index % 10 < 2 else ""
    goal = f"{best * random.uniform(0.4, 0.95):.4f}"
    start = f"{int(random.integers(0, 24))}h" if by_day else "0s"
    return {
        "name": f"v{index:05}",
        "trace": trace.name,
        "goal_hit_ratio": goal,
        "group": group,
        "start": start,
    }


def main() -> None:
    """Make the fleet, plan it and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--volumes", type=int, default=1000)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--requests", type=int, default=50_000, help="mean requests of a volume")
    parser.add_argument("--peaks", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        jobs = [(folder, index, args.requests, args.peaks > 1) for index in range(args.volumes)]
        begin = time.monotonic()
        with ProcessPoolExecutor() as pool:
            rows = list(pool.map(make, jobs, chunksize=4))
        made = time.monotonic() - begin
        with (folder / "volumes.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        more = f"peaks = {args.peaks}" if args.peaks > 1 else ""
        (folder / "fleet.toml").write_text(FLEET.format(hosts=args.hosts, more=more))
        begin = time.monotonic()
        plan = plan_fleet(folder / "fleet.toml")
        planned = time.monotonic() - begin
        begin = time.monotonic()
        plan = plan_fleet(folder / "fleet.toml", replay=True, out=folder / "plan", force=True)
        replayed = time.monotonic() - begin - planned
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(f"{args.volumes} volumes, {args.hosts} hosts, {args.requests} requests each on the mean,")
    print(f"{os.cpu_count()} cores, {plan.windows} windows")
    print(f"traces made in {made:.0f} s; plan {planned:.0f} s; replays {replayed:.0f} s")
    print(f"most memory {memory:.2f} GiB; {plan.solves} solves")
    size = plan.flash_blocks * plan.block_bytes
    print(f"flash per host {words.size(size)}, {100 * plan.gap:.2f} % above the bound")
    for other in plan.others:
        least = other.flash_blocks
        print(f"{other.name}: {'none' if least is None else f'{least / plan.flash_blocks:.3f} x'}")
    for way in plan.replayed:
        print(f"{way.name}: {way.goals_met} of {way.goals} goals, hit ratio {way.hit_ratio:.4f}")


if __name__ == "__main__":
    main()
