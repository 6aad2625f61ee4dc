"""Counts operations of the disk per request, for their table on docs/which-scheme.md.

For: lab/studies/regret.py, why policies with the most hits have long responses. Must never know:
how a policy decides. A request with several runs of missing blocks reads the disk several times.
Dirty blocks that leave one by one write it once each; with `write-through` none are dirty.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cachewright
import regret_policies
from cachewright.answers import Case

CAPACITY = "5%wss"
# Two that write runs back or keep requests whole, and three that do neither.
COMPARED = ("access-frequency", "lru", "duel-x", "lhd", "cacheus")
WRITES = ("write-back", "write-through")


def per_request(case: Case) -> tuple[float, float]:
    """Return the disk's reads and writes per request of a volume on the tiered machine."""
    assert case.timing is not None, "the stack has devices"
    disk = next(device for device in case.timing.devices if device.name.startswith("backing"))
    requests = max(case.total.requests or 0, 1)
    return disk.reads / requests, disk.writes / requests


def table(traces: Iterable[Path], out: Path, *, machine: dict[str, Any], stop: str) -> str:
    """Replay each volume with both ways to write; return a row per volume and policy."""
    head = ["volume", "policy", *(f"{write}: mean us" for write in WRITES)]
    head += [f"{write}: reads, writes of the disk per request" for write in WRITES]
    lines = [f"| {' | '.join(head)} |", f"|---|---{'|--:' * (len(head) - 2)}|"]
    for trace in traces:
        given = regret_policies.stack(trace, machine=machine, stop=stop)
        vary = {"capacity": [CAPACITY], "policy": list(COMPARED), "write": list(WRITES)}
        cases = cachewright.compare(given, vary, out=out / f"{given['name']}-operations")
        print(f"{given['name']}: {len(cases.answer.cases)} cases", file=sys.stderr)
        chosen = {
            (case.settings["cache.policy"], case.settings["cache.write"]): case
            for case in cases.answer.cases
        }
        for policy in COMPARED:
            own = [chosen[policy, write] for write in WRITES]
            means = [f"{regret_policies.mean_response(case) / 1e3:,.0f}" for case in own]
            counts = ["{:.2f}, {:.2f}".format(*per_request(case)) for case in own]
            lines.append(f"| {given['name']} | `{policy}` | {' | '.join([*means, *counts])} |")
    return "\n".join(lines)
