#!/usr/bin/env python3
"""Processor time of replays with devices: two builds of the example `timed_speed`, in turns.

For: `benches/replays.py BEFORE AFTER [--rounds N] [SPEC ...]`, where BEFORE and AFTER are
`target/release/examples/timed_speed` of two commits. Each round runs both builds on every stack
file, one right after the other and in changing order. Prints minima and medians of user seconds,
and the median of the rounds' ratios, as a table. Fails if the builds find different numbers. Must
never know: what a replay does. Unit: seconds of user time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPECS = ("buffer-cache", "flash-store", "ssd", "oc-cache", "tiered")


def run(binary: Path, spec: Path) -> tuple[float, str]:
    """Run a build on a stack file: its user seconds, and the numbers that it found."""
    with subprocess.Popen([binary, spec], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{binary} {spec}: exit status {process.returncode}")
    requests, _, found = text.partition(",")
    return usage.ru_utime, f"{requests}{found.partition('hit ratio')[2]}"


def compare(before: Path, after: Path, spec: Path, rounds: int) -> str:
    """Compare two builds on a stack file: a row of the table."""
    seconds: dict[Path, list[float]] = {before: [], after: []}
    for number in range(rounds):
        found = set()
        for binary in (before, after) if number % 2 == 0 else (after, before):
            used, numbers = run(binary, spec)
            seconds[binary].append(used)
            found.add(numbers)
        if len(found) > 1:
            sys.exit(f"{spec.name}: the builds find different numbers: {' and '.join(found)}")
    old, new = seconds[before], seconds[after]
    cells = [spec.stem]
    for reduce in (min, statistics.median):
        left, right = reduce(old), reduce(new)
        cells += [f"{left:.2f}", f"{right:.2f}", f"{right / left:.2f}"]
    ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
    return f"| {' | '.join([*cells, f'{ratio:.2f}'])} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("specs", nargs="*", type=Path)
    options = parser.parse_args()
    specs = options.specs or [ROOT / "specs" / f"{name}.toml" for name in SPECS]
    print("| stack | least before | after | ratio | median before | after | ratio | pairs |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    before, after = options.before.resolve(), options.after.resolve()
    for spec in specs:
        print(compare(before, after, spec.resolve(), options.rounds), flush=True)


if __name__ == "__main__":
    main()
