"""The command `advise`: what other settings would have given a server's last hour.

For: one table of caches that were tried, and what to change. Must never know: how they are
replayed or estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from cachewright import words
from cachewright.answers import AdviseAnswer, AdviseCase
from cachewright.cli import options, output, parsing
from cachewright.cli.progress import progress
from cachewright.live import advice, advising, estimating
from cachewright.live.advice import label
from cachewright.stack import is_stack_path
from cachewright.tables import Column, Table, conclusion

SHOWN_CASES = 12
SHOWN_TENANTS = 6

Target = Annotated[
    str,
    Parameter(
        help="The address of a server's monitor (`serve.monitor`), or a stack file: that of a "
        "server, or one with recorded traces."
    ),
]


@Parameter(name="*", group="Tried")
@dataclass
class TriedArgs:
    """What is tried beside the cache as it is."""

    policy: str | None = None
    """Replacement policies, separated by commas; by default what `auto` chooses, lru, s3-fifo and
    arc."""

    capacity: str | None = None
    """Cache sizes, separated by commas; by default half, the same and double."""

    partition: str | None = None
    """Ways to split the cache, separated by commas; by default what `auto` chooses, shared and
    equal."""

    def values(self) -> dict[str, list[str]]:
        """Return the values of each option, by the keyword that takes them."""
        plural = {"policy": "policies", "capacity": "capacities", "partition": "partitions"}
        return {plural[key]: parsing.split_values(text) for key, text in vars(self).items() if text}


def advise(
    target: Target,
    /,
    *,
    last: str | None = None,
    tried: TriedArgs | None = None,
    set: options.Set = None,
    threads: options.Threads = 0,
    show: options.ShowArgs | None = None,
) -> None:
    """Report what other policies, partitioners and sizes would have achieved.

    The server finishes its current recording, and the newest recordings are replayed, as `compare`
    does. For a server without recordings, other sizes are estimated from its curves
    (`serve.curves`). The server is not changed.

    Parameters
    ----------
    last
        How far back to replay, in whole recordings; an hour by default.

    """
    how = options.shown(show)
    with progress() as on_progress:
        found = advising.advise(
            target,
            last=last,
            settings=parsing.settings(set),
            threads=threads,
            progress=on_progress,
            **(tried or TriedArgs()).values(),
        )
    if how.json:
        output.print_json(found)
    elif how.csv:
        output.print_csv(_rows(found))
    else:
        _show(found)
        output.follow(_next_command(target, found))


def _show(found: AdviseAnswer) -> None:
    source, counted = found.source, words.counted(found.requests, "request")
    if source == advising.RECORDINGS:
        source = words.counted(len(found.recordings), "recording")
    elif source == estimating.CURVES:
        source, counted = f"sampled {source}", f"{words.count(found.accesses)} accesses"
    output.say(f"{found.name}: {counted} in {words.duration(found.span_ns)}, of {source}")
    output.say()
    shown = list(found.cases[:SHOWN_CASES])
    if found.present not in shown:
        shown.append(found.present)
    columns: list[Column[AdviseCase]] = [
        Column("cache", lambda case: _mark(found, case) + label(case)),
        Column("size", lambda case: case.capacity_bytes, words.size),
        Column("hit ratio", lambda case: case.hit_ratio, words.ratio),
    ]
    if found.goals:
        columns.append(Column("goals met", lambda case: case.goals_met, words.count))
    tenants = found.present.tenants
    if 1 < len(tenants) <= SHOWN_TENANTS:
        columns += [
            Column(tenant.name, _hits_of(at), words.ratio) for at, tenant in enumerate(tenants)
        ]
    output.show(Table("", columns, shown))
    left_out = len(found.cases) - min(len(found.cases), SHOWN_CASES)
    if left_out:
        output.say(f"{left_out} more not shown")
    for sentence in found.advice:
        output.say(sentence)
    for sentence in found.notes:
        output.note(sentence)
    output.say()
    output.conclude(advice.conclusion(found))


def _next_command(target: str, found: AdviseAnswer) -> str:
    """Return the check of a stack file with what is advised; nothing for a bare address."""
    best = advice.advised(found)
    if best is None or not is_stack_path(target):
        return ""
    keys = {"policy": (found.present.policy, best.policy)}
    keys["partition"] = (found.present.partition, best.partition)
    given = [f"cache.{key}={new}" for key, (now, new) in keys.items() if new != now]
    if any("(" in setting for setting in given):
        return ""
    changed = [part for setting in given for part in ("--set", setting)]
    return conclusion.command("check", target, *changed)


def _hits_of(place: int) -> Callable[[AdviseCase], float]:
    return lambda case: case.tenants[place].hit_ratio


def _mark(found: AdviseAnswer, case: AdviseCase) -> str:
    return "now: " if case == found.present else ""


def _rows(found: AdviseAnswer) -> Iterator[dict[str, Any]]:
    for case in found.cases:
        head = {
            "policy": case.policy,
            "partition": case.partition,
            "capacity_bytes": case.capacity_bytes,
            "is_present": case == found.present,
        }
        for tenant in case.tenants:
            yield {
                **head,
                "tenant": tenant.name,
                "hit_ratio": tenant.hit_ratio,
                "quota_bytes": tenant.quota_bytes,
                "goal_met": tenant.goal_met,
            }
        yield {**head, "tenant": "all", "hit_ratio": case.hit_ratio}
