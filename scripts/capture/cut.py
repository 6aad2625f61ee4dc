"""Cut a capture to its first seconds: `python3 scripts/capture/cut.py IN OUT SECONDS`.

For: the cuts under `data/`. Must never know: what was captured. The same input gives the same
bytes. Units: seconds; times in traces are microseconds and never decrease.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# A row of a block capture has an operation second; a row of system calls a process.
BLOCK_CODES = {"R", "W", "T", "F"}
BLOCK_TIME, CALL_TIME = 4, 0


def cut(source: Path, target: Path, seconds: float) -> int:
    """Write what lies before `seconds`; return how many requests that are."""
    text = subprocess.run(["zstd", "-dcq", str(source)], check=True, capture_output=True, text=True)
    lines = text.stdout.splitlines(keepends=True)
    block = bool(lines) and lines[0].split(",", 2)[1] in BLOCK_CODES
    column = BLOCK_TIME if block else CALL_TIME
    kept = [line for line in lines if int(line.split(",")[column]) < seconds * 1e6]
    target.parent.mkdir(parents=True, exist_ok=True)
    compress = ["zstd", "-19", "--ultra", "-qf", "-o", str(target)]
    subprocess.run(compress, check=True, input="".join(kept), text=True)
    return len(kept)


if __name__ == "__main__":
    source, target, seconds = sys.argv[1:]
    print(cut(Path(source), Path(target), float(seconds)), "requests")
