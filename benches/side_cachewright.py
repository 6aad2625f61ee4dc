"""One measurement of Cachewright in a process of its own, printed as one line of JSON.

For: `peers.py`, which starts it with the interpreter that has the package. Must never know: the
other side. CPU time is that of the whole process (all threads) from opening the trace on.
"""

from __future__ import annotations

import json
import sys
import time

import cachewright

VARIANTS = {
    "s3-fifo (paper)": {"name": "s3-fifo", "variant": "paper"},
    "lirs (libcachesim)": {"name": "lirs", "variant": "libcachesim"},
}


def stack_of(path: str, policy: str, blocks: int) -> dict[str, object]:
    """Return a stack of one tenant with one block per request."""
    return {
        "cache": {"capacity": f"{blocks} blocks", "policy": policy},
        "replay": {"blocks": "unit", "curves": False, "windows": 0},
        "tenant": [
            {
                "name": "trace",
                "trace": path,
                "format": "oracle-general",
                "options": {"address_unit": "object"},
            }
        ],
    }


def simulate(path: str, policies: list[str], sizes: list[int]) -> list[float]:
    """Run all policies at all sizes over one trace pass; return the miss ratios in that order."""
    named = [VARIANTS.get(policy, policy) for policy in policies]
    vary = {"policy": named, "capacity": [f"{size} blocks" for size in sizes]}
    stack = stack_of(path, "lru", sizes[0])
    cases = cachewright.compare(stack, vary, threads=1).answer.cases
    return [case.total.misses / case.total.accesses for case in cases]


def curve(path: str) -> list[float]:
    """Compute the exact LRU curve of all sizes in one pass; return its miss ratios."""
    curves = cachewright.mrc(stack_of(path, "lru", 1), method="exact", threads=1)
    return [float(ratio) for ratio in curves.points["miss_ratio"]]


def in_python(path: str, size: int) -> list[float]:
    """Run a policy written in Python (FIFO); return its miss ratio."""
    return simulate(path, ["python:cachewright.examples:FifoCache"], [size])


def peak_memory_mib() -> float:
    """Return the peak of this program's memory; `ru_maxrss` would count the parent's too."""
    with open("/proc/self/status", encoding="ascii") as status:
        lines = dict(line.split(":", 1) for line in status)
    return float(lines["VmHWM"].split()[0]) / 1024


def main() -> None:
    """Read `TRACE POLICY,... SIZE,...`, `TRACE curve` or `TRACE python SIZE`; print the cost."""
    path, what = sys.argv[1:3]
    begin = time.process_time()
    if what == "curve":
        ratios = curve(path)
    elif what == "python":
        ratios = in_python(path, int(sys.argv[3]))
    else:
        ratios = simulate(path, what.split(","), [int(size) for size in sys.argv[3].split(",")])
    seconds = time.process_time() - begin
    peak_mib = peak_memory_mib()
    print(json.dumps({"cpu_s": seconds, "peak_mib": peak_mib, "miss_ratios": ratios}))


if __name__ == "__main__":
    main()
