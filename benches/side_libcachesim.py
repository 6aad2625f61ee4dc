"""One measurement of libCacheSim in a process of its own, printed as one line of JSON.

For: `peers.py`, which starts it with the interpreter that has the wheel. Must never know: the other
side. CPU time is that of the whole process from opening the trace on; memory is its peak.
"""

from __future__ import annotations

import json
import sys
import time

import libcachesim

NAMES = {
    "lru": "LRU",
    "fifo": "FIFO",
    "clock": "Clock",
    "sieve": "Sieve",
    "arc": "ARC",
    "2q": "TwoQ",
    "lfu": "LFU",
    "s3-fifo": "S3FIFO",
    "lirs (libcachesim)": "LIRS",
    "belady": "Belady",
}


def open_trace(path: str) -> libcachesim.TraceReader:
    """Open the binary trace with every object of size 1."""
    return libcachesim.TraceReader(
        path,
        trace_type=libcachesim.TraceType.ORACLE_GENERAL_TRACE,
        reader_init_params=libcachesim.ReaderInitParam(ignore_obj_size=True),
    )


def simulate(path: str, policies: list[str], sizes: list[int]) -> list[float]:
    """Run each policy at each size, one trace pass each; return the miss ratios."""
    ratios = []
    for policy in policies:
        for size in sizes:
            cache = getattr(libcachesim, NAMES[policy])(size)
            ratios.append(cache.process_trace(open_trace(path))[0])
    return ratios


def peak_memory_mib() -> float:
    """Return the peak of this program's memory; `ru_maxrss` would count the parent's too."""
    with open("/proc/self/status", encoding="ascii") as status:
        lines = dict(line.split(":", 1) for line in status)
    return float(lines["VmHWM"].split()[0]) / 1024


def main() -> None:
    """Read `TRACE POLICY,... SIZE,...` and print seconds, MiB and miss ratios."""
    path, policies, sizes = sys.argv[1:4]
    begin = time.process_time()
    ratios = simulate(path, policies.split(","), [int(size) for size in sizes.split(",")])
    seconds = time.process_time() - begin
    peak_mib = peak_memory_mib()
    print(json.dumps({"cpu_s": seconds, "peak_mib": peak_mib, "miss_ratios": ratios}))


if __name__ == "__main__":
    main()
