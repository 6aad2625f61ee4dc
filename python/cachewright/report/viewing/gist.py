"""What a result holds in a few words: policies or schemes, sizes, the best value.

For: the list of `view`. A result that is damaged or large has none of it. What was read stays in
memory until the file changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cachewright import characterized, words
from cachewright import results as result
from cachewright.fleet import over, study
from cachewright.fleet.placement import host_files
from cachewright.tables import conclusion, summary, workload
from cachewright.tables.side_by_side import PLAN_FILE

# Larger files are not read, nor more than this many of one list.
LARGEST_BYTES, MOST = 8 << 20, 500
NAMES = 3


class Gist(NamedTuple):
    """The command that wrote a result, what was compared, at which sizes, and the best of it."""

    command: str = ""
    policies: str = ""
    sizes: str = ""
    best: str = ""


def of(file: Path) -> Gist:
    """Return what a document holds; nothing of one that is damaged, large or of another kind."""
    try:
        state = file.stat()
    except OSError:
        return Gist()
    if file.name == over.ANSWERS:
        return _volumes(file, state.st_mtime_ns)
    if state.st_size > LARGEST_BYTES:
        return Gist()
    return _read(file, state.st_mtime_ns)


@lru_cache(maxsize=4 * MOST)
def _read(file: Path, changed_ns: int) -> Gist:
    reader = _READERS.get(file.name)
    if reader is None:
        return Gist()
    try:
        return reader(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Gist()


@lru_cache(maxsize=4 * MOST)
def _volumes(file: Path, changed_ns: int) -> Gist:
    """Return which command ran on how many volumes, and what it compared on the first."""
    command = over.command_of(file.parent) or ""
    try:
        with file.open("rb") as lines:
            first = lines.readline(LARGEST_BYTES)
            count = bool(first) + sum(1 for _ in lines)
        reader = _FIRST.get(command)
        held = reader(json.loads(first)["answer"]) if reader else Gist()
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Gist(command)
    name = f"{command} on volumes"
    return Gist(name, held.policies, "", words.counted(count, "volume"))


def _run(found: Mapping[str, Any]) -> Gist:
    cases = found["cases"]
    policies = [words.setting(case["settings"][summary.POLICY]) for case in cases]
    bounds = summary.bounds()
    choices = [
        case
        for case, policy in zip(cases, policies, strict=True)
        if policy.split("(")[0] not in bounds
    ]
    best = max((case["total"]["hit_ratio"] for case in choices or cases), default=None)
    return Gist(
        "compare" if len(cases) > 1 else "run",
        _names(policies),
        _range(case["capacity_blocks"] * case["block_bytes"] for case in cases),
        "" if best is None else f"hit ratio {words.ratio(best)}",
    )


def _curves(found: Mapping[str, Any]) -> Gist:
    curves, block = found["curves"], found["block_bytes"]
    least = min((point[1] for curve in curves for point in curve["points"]), default=None)
    return Gist(
        "mrc",
        _names(curve["policy"] for curve in curves),
        _range(size * block for size in found["sizes_blocks"]),
        "" if least is None else f"miss ratio {words.ratio(least)}",
    )


def _amplification(found: Mapping[str, Any]) -> Gist:
    cases = found["cases"]
    best = min(case["write_amplification"] for case in cases if not case["bound"])
    return Gist(
        "wa",
        _names(words.setting(case["separation"]) for case in cases),
        _names(f"{words.percent(op)} spare" for op in sorted({case["op"] for case in cases})),
        f"write amplification {words.ratio(best)}",
    )


def _plan(found: Mapping[str, Any]) -> Gist:
    sizes = {one["partition"]: one["smallest_blocks"] for one in found["partitions"]}
    least = min((size for size in sizes.values() if size is not None), default=None)
    best = "no size meets the goals"
    if least is not None:
        best = f"{words.size(least * found['block_bytes'])} under {found['best']}"
    return Gist("plan", _names(sizes), "", best)


def _study(found: Mapping[str, Any]) -> Gist:
    plan = found["plan"]
    volumes = words.counted(found["volumes"], "volume")
    return Gist("fleet study", _names(plan["policies"]), _names(plan["sizes"]), volumes)


def _placed(found: Mapping[str, Any]) -> Gist:
    flash = words.size(found["flash_blocks"] * found["block_bytes"])
    hosts = words.counted(found["hosts"], "host")
    return Gist(
        "plan --fleet", "", flash, f"{words.counted(len(found['volumes']), 'volume')} on {hosts}"
    )


def _character(found: Mapping[str, Any]) -> Gist:
    size = words.size(found["total"]["working_set_bytes"])
    return Gist("characterize", "", size, f"{words.percent(found['total']['read_share'])} reads")


def _workload(found: Mapping[str, Any]) -> Gist:
    sizes = [one for one in found["sizes"] if one["share"] == conclusion.NEARLY]
    each = found["block_bytes"]
    size = "".join(words.size(one["blocks"] * each) for one in sizes)
    best = "".join(f"hit ratio {words.ratio(one['hit_ratio'])}" for one in sizes)
    return Gist("trace report", "lru", size, best or "no cache helps")


def _names(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    found = list(dict.fromkeys(names))
    more = [f"{len(found) - NAMES} more"] if len(found) > NAMES + 1 else []
    return ", ".join([*(found[:NAMES] if more else found), *more])


def _range(sizes: Iterable[int]) -> str:
    found = sorted(set(sizes))
    ends = dict.fromkeys(words.size(size) for size in (*found[:1], *found[-1:]))
    return " to ".join(ends)


# What of a dataset's answers is the same on each volume.
_FIRST: dict[str, Callable[[Mapping[str, Any]], Gist]] = {
    "compare": _run,
    "mrc": _curves,
    "wa": _amplification,
}
_READERS: dict[str, Callable[[Mapping[str, Any]], Gist]] = {
    result.RESULT_FILE: _run,
    result.CURVES_FILE: _curves,
    result.AMPLIFICATION_FILE: _amplification,
    PLAN_FILE: _plan,
    study.STUDY: _study,
    host_files.DOCUMENT: _placed,
    characterized.CHARACTER_FILE: _character,
    workload.FILE: _workload,
}
