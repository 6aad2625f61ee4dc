"""Cut a capture to some of its seconds: `python3 lab/capture/cut.py IN OUT SECONDS [SINCE]`.

For: the cuts under `data/`, and later parts that judge. Must never know: what was captured. The
same input gives the same bytes. Units: seconds; times in traces are microseconds, never decrease,
and begin at `SINCE`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# A row of a block capture has an operation second; a row of system calls a process.
BLOCK_CODES = {"R", "W", "T", "F"}
BLOCK_TIME, CALL_TIME = 4, 0


def cut(source: Path, target: Path, seconds: float, since: float = 0.0) -> int:
    """Write what lies from `since` to before `seconds`; return how many requests that are."""
    text = subprocess.run(["zstd", "-dcq", str(source)], check=True, capture_output=True, text=True)
    lines = text.stdout.splitlines(keepends=True)
    block = bool(lines) and lines[0].split(",", 2)[1] in BLOCK_CODES
    column, since_us = BLOCK_TIME if block else CALL_TIME, int(since * 1e6)
    kept = []
    for line in lines:
        words = line.rstrip("\n").split(",")
        time_us = int(words[column])
        if since_us <= time_us < seconds * 1e6:
            words[column] = str(time_us - since_us)
            kept.append(f"{','.join(words)}\n")
    target.parent.mkdir(parents=True, exist_ok=True)
    compress = ["zstd", "-19", "--ultra", "-qf", "-o", str(target)]
    subprocess.run(compress, check=True, input="".join(kept), text=True)
    return len(kept)


if __name__ == "__main__":
    source, target, *times = sys.argv[1:]
    print(cut(Path(source), Path(target), *map(float, times)), "requests")
