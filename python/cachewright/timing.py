"""Response times of cases: lines of tenants, parts of a response, who is fastest.

For: the tables of the terminal and the figures of the report. Must never know: how they are drawn.
Units: nanoseconds; a part's share is a ratio in 0..1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cachewright import summary, words

PERCENTILES = (
    ("mean", "mean_ns"),
    ("p50", "p50_ns"),
    ("p90", "p90_ns"),
    ("p99", "p99_ns"),
    ("p99.9", "p999_ns"),
    ("max", "max_ns"),
)

# Reads and writes apart; those that a case does not have are left out of tables.
BY_KIND = (
    ("read mean", "reads", "read_mean_ns"),
    ("read p99", "reads", "read_p99_ns"),
    ("write mean", "writes", "write_mean_ns"),
    ("write p99", "writes", "write_p99_ns"),
)

Case = dict[str, Any]
Line = dict[str, Any]


def is_timed(case: Case) -> bool:
    """Return whether the case ran on devices."""
    return "timing" in case


def lines(case: Case) -> list[Line]:
    """Return the figures of every tenant, and of all together when there are several."""
    found = case["timing"]
    whole = {"name": "all", **found["total"]}
    return [*found["tenants"], whole] if len(found["tenants"]) > 1 else list(found["tenants"])


def parts(found: Iterable[Line]) -> list[str]:
    """Return the parts that any of the lines spent time in, in the order they are given."""
    names: dict[str, None] = {}
    for line in found:
        names.update(dict.fromkeys(line["breakdown_ns"]))
    order = ("cache", "backing")
    place = {name: index for index, name in enumerate(names)}
    return sorted(names, key=lambda name: (_side(name, order), place[name]))


def _side(name: str, order: Sequence[str]) -> int:
    first = name.split(" ", 1)[0]
    return order.index(first) if first in order else len(order)


def share(line: Line, part: str) -> float:
    """Return the part's share of the line's mean response."""
    return float(line["breakdown_ns"].get(part, 0.0)) / line["mean_ns"] if line["mean_ns"] else 0.0


def by_kind(found: Sequence[Line]) -> list[tuple[str, list[float | None]]]:
    """Return a header and a value per line for reads and writes apart, in nanoseconds.

    A kind that no line has is left out; a line without it has None.
    """
    columns = [
        (header, [line[key] if line.get(count) else None for line in found])
        for header, count, key in BY_KIND
    ]
    return [(header, values) for header, values in columns if any(v is not None for v in values)]


def flat(line: Line) -> dict[str, Any]:
    """Return a line without its name, each part of its mean response as a number of its own."""
    parts = {f"{part} (ns)": value for part, value in line["breakdown_ns"].items()}
    return {k: v for k, v in line.items() if k not in ("name", "breakdown_ns")} | parts


def slowdown(line: Line) -> str:
    """Return how many times longer the line waits than alone, in words."""
    found = line.get("slowdown")
    return words.NOTHING if found is None else words.significant(found)


def store(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a log-structured store did, in words by name; empty without one."""
    if "store" not in found:
        return []
    did = found["store"]
    size = words.size(did["logical_pages"] * did["page_bytes"])
    log = f"{size}, {words.percent(did['op'])} over-provisioning, "
    log += f"{did['separation']}, {did['reclaim']}"
    text = f"write amplification {words.ratio(did['write_amplification'])} in "
    text += f"{words.significant(did['drive_writes'])} drive writes, "
    text += f"{words.counted(did['collections'], 'segment')} cleaned"
    appends = f"{words.count(did['appends'])} of {words.size(did['mean_append_bytes'])}, "
    appends += f"{words.counted(did['held_pages'], 'page')} waited for a segment"
    return [("log", log), ("cleaning", text), ("appends", appends)]


def fastest(document: dict[str, Any]) -> Case | None:
    """Return the choice with the lowest mean response; None without devices."""
    found = [case for case in document["cases"] if is_timed(case) and not summary.is_bound(case)]
    return min(
        found,
        key=lambda case: (case["timing"]["total"]["mean_ns"], case["case"]),
        default=None,
    )


def channel_groups(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a drive's groups of channels from a `timing`: the host's bytes, and means of use.

    Beside what the result says of each group: `label` (its channels), `owners` (whose blocks it
    holds), and `busy`, `dies_working` and `dies_cleaning` on average over its channels.
    """
    if "channels" not in found:
        return []
    each = {one["channel"]: one for one in found["channels"]["each"]}
    groups = []
    for group in found["channels"]["groups"]:
        own = [each[channel] for channel in group["channels"]]
        means = {
            key: sum(one[key] for one in own) / max(len(own), 1)
            for key in ("busy", "dies_working", "dies_cleaning")
        }
        label = ", ".join(str(channel) for channel in group["channels"])
        groups.append({**group, **means, "label": label, "owners": holders(group)})
    return groups


def holders(group: dict[str, Any]) -> str:
    """Return whose blocks a group of channels holds, and whether it is lent to them."""
    names = ", ".join(group["tenants"]) or words.NOTHING
    return f"{names} (lent)" if group["lent"] else names
