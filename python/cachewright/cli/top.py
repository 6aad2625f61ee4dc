"""The command `top`: what a live server does now, in a terminal.

For: one screen that is drawn again and again, or one table for scripts. Must never know: how a
status is found.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from cachewright import words
from cachewright.answers import (
    BlockCounts,
    GoalStatus,
    LiveStatus,
    MissedBlocks,
    RecentRequests,
    RequestStatus,
    TenantStatus,
    TrialStatus,
)
from cachewright.cli import options, output
from cachewright.live import watching
from cachewright.tables import Column, Table, summary

NS_PER_US = 1e3
RATIO = "ratio"
GOALS = {
    "goal_hit_ratio": "hits",
    "goal_latency": "access",
    "goal_response": "mean",
    "goal_p99": "p99",
}
TROUBLE = {
    "failed": "its backing device has failed; requests get errors until it works again and the "
    "server is reloaded",
    "reviving": "its backing device is tried again; what only the cache has is written back first",
}
# Moves the cursor to the first place and clears the screen.
CLEAR = "\x1b[H\x1b[2J"


def top(
    target: str,
    /,
    *,
    once: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    interval: Annotated[float, Parameter(validator=Number(gt=0))] = 1.0,
    show: options.ShowArgs | None = None,
) -> None:
    """Show the activity of a live server by tenant, until interrupted.

    Parameters
    ----------
    target
        The stack file of the server, or the address of its monitor (`serve.monitor`).
    once
        Print once and exit (default when stdout is not a terminal).
    interval
        Seconds between updates.

    """
    how = options.shown(show)
    found = watching.status(target)
    if how.json:
        output.print_json(found)
    elif how.csv:
        output.print_csv(_row(found, tenant) for tenant in found.tenants)
    elif once or not sys.stdout.isatty():
        _screen(found)
    else:
        try:
            while True:
                sys.stdout.write(CLEAR)
                _screen(found)
                time.sleep(interval)
                found = watching.status(target)
        except KeyboardInterrupt:
            return


def _screen(status: LiveStatus) -> None:
    log = status.log
    output.say(
        f"{status.stack}: {status.policy}, {status.partition}, {status.write}, by {status.engine}; "
        f"up for {words.clock(status.uptime_seconds)}"
    )
    cached = sum(tenant.cached_bytes for tenant in status.tenants)
    output.say(
        f"cache: {words.size(cached)} of {words.size(status.capacity_bytes)}, "
        f"{words.size(status.dirty_bytes)} dirty; {words.counted(status.connections, 'client')}"
    )
    output.say(
        f"log: {log.free_segments} of {log.segments} segments free, write amplification "
        f"{words.fixed(log.write_amplification, 3)}"
        + (f"; it has failed: {log.failed}" if log.failed else "")
    )
    if status.trial and status.trial.accesses:
        _say_trial(status, status.trial)
    for tenant in status.tenants:
        if tenant.state in TROUBLE:
            output.say(f"{tenant.name}: {TROUBLE[tenant.state]}")
    if status.refused_reload:
        output.say(f"the last reload was refused, nothing has changed: {status.refused_reload}")
    output.say()
    output.show(Table("", _columns(status), status.tenants))
    for tenant in status.tenants:
        if tenant.goal and tenant.goal.bound_by:
            output.say(_bound(tenant, tenant.goal))


def _say_trial(status: LiveStatus, trial: TrialStatus) -> None:
    """Say what a policy or a partitioner on trial hits beside what decides."""
    divides = trial.partition != status.partition
    tried, present = trial.policy, status.policy
    if divides:
        tried, present = f"{tried} with {trial.partition}", f"{present} with {status.partition}"
    kind = "before" if trial.was_replaced else "on trial"
    output.say(
        f"{kind}: {tried} hits {words.ratio(trial.trial_hits / trial.accesses)}, "
        f"{present} {words.ratio(trial.present_hits / trial.accesses)}, of "
        f"{words.counted(trial.accesses, 'sampled read')} and writes in "
        f"{words.clock(trial.seconds)}"
    )
    for tenant in trial.tenants if divides else ():
        if tenant.accesses:
            output.say(
                f"  {tenant.name} would have {words.size(tenant.trial_quota_bytes)} in place of "
                f"{words.size(tenant.present_quota_bytes)}, and hit "
                f"{words.ratio(tenant.trial_hits / tenant.accesses)} in place of "
                f"{words.ratio(tenant.present_hits / tenant.accesses)}"
            )


def _bound(tenant: TenantStatus, goal: GoalStatus) -> str:
    """Return what keeps a tenant from its goal, and the least space that would meet it."""
    line = f"{tenant.name} misses its goal: {goal.bound_by}"
    if goal.needs_bytes is None:
        return line
    more = goal.needs_bytes - (
        tenant.cached_bytes if tenant.quota_bytes is None else tenant.quota_bytes
    )
    rest = f", {words.size(more)} more than it has" if more > 0 else ""
    return f"{line}; {words.size(goal.needs_bytes)} would meet it{rest}"


def _most_misses(misses: MissedBlocks) -> str:
    """Return the cause of most misses and its share, such as `quota 61.0%`."""
    by = {heading: getattr(misses, key, 0) for key, heading in summary.CAUSES.items()}
    by |= {f"pushed out by {pushed.by}": pushed.misses for pushed in misses.pushed_out_by}
    total = sum(by.values())
    if not total:
        return words.NOTHING
    cause = max(by, key=by.__getitem__)
    return f"{cause} {words.percent(by[cause] / total)}"


def _columns(status: LiveStatus) -> list[Column[TenantStatus]]:
    met = {True: "yes", False: "no", None: words.NOTHING}
    columns: list[Column[TenantStatus]] = [
        Column("tenant", lambda tenant: tenant.name),
        Column("state", lambda tenant: tenant.state),
        Column("hit ratio", lambda tenant: hit_ratio(tenant.recent), words.ratio),
        Column("misses most", lambda tenant: _most_misses(tenant.recent_misses), numeric=True),
        Column("goal", lambda tenant: _goal(tenant.goal), numeric=True),
        Column("met", lambda tenant: met[tenant.goal_met], numeric=True),
        Column("cached", lambda tenant: tenant.cached_bytes, words.size),
        Column("quota", lambda tenant: tenant.quota_bytes, words.size),
        Column("dirty", lambda tenant: tenant.dirty_bytes, words.size),
    ]
    seconds = max(status.recent_seconds, 1e-3)
    times: list[Column[RecentRequests]] = [
        Column("s/s", lambda found: round(found.count / seconds), words.count),
        Column(" p50", lambda found: found.p50_us * NS_PER_US, words.duration),
        Column(" p99", lambda found: found.p99_us * NS_PER_US, words.duration),
    ]
    for kind in ("read", "write"):
        columns += [
            column._replace(heading=f"{kind}{column.heading}").on(_recent(kind)) for column in times
        ]
    errors: Column[TenantStatus] = Column(
        "errors", lambda tenant: sum(one.errors for one in tenant.requests), words.count
    )
    return [*columns, errors]


def _recent(kind: str) -> Callable[[TenantStatus], RecentRequests]:
    return lambda tenant: _kind(tenant, kind).recent


def _goal(goal: GoalStatus | None) -> str:
    """Return what was measured beside what was promised, such as `p99 23ms of 20ms`."""
    if goal is None:
        return words.NOTHING

    def shown(value: float | None) -> str:
        if value is None:
            return words.NOTHING
        return words.ratio(value) if goal.unit == RATIO else words.duration(value * NS_PER_US)

    return f"{GOALS.get(goal.key, goal.key)} {shown(goal.measured)} of {shown(goal.promised)}"


def _row(status: LiveStatus, tenant: TenantStatus) -> dict[str, object]:
    goal = tenant.goal
    row: dict[str, object] = {
        "tenant": tenant.name,
        "state": tenant.state,
        "recent_seconds": status.recent_seconds,
        "recent_hit_ratio": hit_ratio(tenant.recent),
        "goal_hit_ratio": tenant.goal_hit_ratio,
        "goal_met": tenant.goal_met,
        "goal": goal and goal.key,
        "goal_unit": goal and goal.unit,
        "goal_promised": goal and goal.promised,
        "goal_measured": goal and goal.measured,
        "goal_bound_by": goal and goal.bound_by,
        "goal_needs_bytes": goal and goal.needs_bytes,
        "cached_bytes": tenant.cached_bytes,
        "quota_bytes": tenant.quota_bytes,
        "dirty_bytes": tenant.dirty_bytes,
    }
    misses = tenant.recent_misses
    row |= {
        "misses_first_use": misses.first_use,
        "misses_trimmed": misses.trimmed,
        "misses_lost": misses.lost,
        "misses_restart": misses.restart,
        "misses_bypassed": misses.bypassed,
        "misses_policy": misses.policy,
        "misses_quota": misses.quota,
        "misses_division": misses.division,
        "misses_pushed_out": misses.pushed_out,
        "misses_capacity": misses.capacity,
        "behind_seconds": misses.behind_seconds,
    }
    for one in tenant.requests:
        row |= {f"{one.kind}_count": one.count, f"{one.kind}_errors": one.errors}
        row |= {f"{one.kind}_p99_us": one.recent.p99_us}
    return row


def hit_ratio(counts: BlockCounts) -> float | None:
    """Return hits over accesses; None without accesses."""
    accesses = counts.reads + counts.writes
    return (counts.read_hits + counts.write_hits) / accesses if accesses else None


def _kind(tenant: TenantStatus, name: str) -> RequestStatus:
    return next(one for one in tenant.requests if one.kind == name)
