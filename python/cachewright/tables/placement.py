"""What `plan --fleet` found: hosts, other ways to place, changes and replays.

For: its tables and its answer, on the terminal and on the page. Must never know: how volumes are
placed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cachewright import words
from cachewright.answers import FleetPlanAnswer, PlacementChange, PlannedVolume, ReplayedPlacing
from cachewright.fleet.placement.host_files import host_name
from cachewright.tables import Column, Table
from cachewright.tables import conclusion as endings

# Changes that are shown one by one; the others are in the document.
SHOWN = 5


def tables(answer: FleetPlanAnswer) -> list[Table[Any]]:
    """Return the hosts, other ways to place the volumes, what moves, and what replays met."""
    found: list[Table[Any]] = [_hosts(answer), _others(answer)]
    if answer.changes:
        found.append(_changes(answer))
    if answer.replayed:
        found.append(_replayed(answer))
    return found


def changes_left_out(answer: FleetPlanAnswer) -> int:
    """Return how many changes the tables leave out."""
    return len(answer.changes) - len(_worst(answer.changes))


def conclusion(answer: FleetPlanAnswer) -> str:
    """Return in a paragraph the flash per host, how near it is to the least, and what it saves."""
    volumes = words.counted(len(answer.volumes), "volume")
    hosts = words.counted(answer.hosts, "host")
    flash = words.size(answer.flash_blocks * answer.block_bytes)
    if answer.flash_given:
        parts = [
            f"{volumes} fit on {hosts}, of which the fullest needs {flash}",
            f"No plan has fewer than {answer.bound_hosts}",
        ]
    else:
        bound = words.size(answer.bound_blocks * answer.block_bytes)
        above = f" than {bound}: this one is at most {words.percent(answer.gap)} above the least"
        parts = [
            f"{volumes} fit on {hosts} of {flash} each",
            f"No plan needs less{above if answer.gap else ''}",
        ]
    saved, deaths = _saved(answer), _deaths(answer)
    return endings.paragraph([*parts, _unreachable(answer), saved, deaths, _met(answer)])


def _goals(answer: FleetPlanAnswer) -> list[PlannedVolume]:
    return [one for one in answer.volumes if one.goal_hit_ratio is not None]


def _unreachable(answer: FleetPlanAnswer) -> str:
    """Return how many goals no size meets; nothing where all can be met."""
    goals = _goals(answer)
    missed = sum(not one.reached for one in goals)
    if not missed:
        return ""
    return f"{missed} of {words.counted(len(goals), 'goal')} cannot be met by any size"


def _saved(answer: FleetPlanAnswer) -> str:
    """Return which simpler way needs least flash beside the plan's."""
    sizes = {one.name: one.flash_blocks for one in answer.others if one.flash_blocks}
    if not sizes or not answer.flash_blocks:
        return ""
    name = min(sizes, key=sizes.__getitem__)
    if sizes[name] <= answer.flash_blocks:
        return f"The best simpler way, {name}, needs as much per host"
    times = words.times(sizes[name], answer.flash_blocks)
    return f"The best simpler way, {name}, needs {times} times as much per host"


def _deaths(answer: FleetPlanAnswer) -> str:
    """Return whether the volumes of any one dead host fit on the others, or what it would take."""
    dead = [one for one in answer.changes if one.what.endswith("dies")]
    unfit = [one for one in dead if not one.fits]
    if not dead:
        return ""
    if not unfit:
        return "If any one host dies, its volumes fit on the others"
    needed = words.size(max(one.needed_blocks for one in unfit) * answer.block_bytes)
    return (
        f"The volumes of {len(unfit)} of {words.counted(len(dead), 'host')} do not fit on the "
        f"others if theirs dies; {needed} per host would hold them"
    )


def _met(answer: FleetPlanAnswer) -> str:
    """Return how many goals the plan met in replays; nothing without them."""
    if not answer.replayed:
        return ""
    first = answer.replayed[0]
    return f"In replays it met {first.goals_met} of {words.counted(first.goals, 'goal')}"


def _hosts(answer: FleetPlanAnswer) -> Table[int]:
    members = [[one for one in answer.volumes if one.host == host] for host in range(answer.hosts)]
    block = answer.block_bytes
    columns: list[Column[int]] = [
        Column("host", lambda host: host_name(host, answer.hosts)),
        Column("volumes", lambda host: len(members[host]), words.count),
        Column(
            "goals",
            lambda host: sum(one.goal_hit_ratio is not None for one in members[host]),
            words.count,
        ),
        Column(
            "needs", lambda host: sum(one.need_blocks for one in members[host]) * block, words.size
        ),
        Column(
            "lowest hit ratio",
            lambda host: min((one.hit_ratio for one in members[host]), default=None),
            words.ratio,
        ),
    ]
    return Table("hosts", columns, range(answer.hosts))


def _others(answer: FleetPlanAnswer) -> Table[str]:
    block, planned = answer.block_bytes, answer.flash_blocks
    sizes: dict[str, int | None] = {"this plan": planned}
    sizes |= {one.name: one.flash_blocks for one in answer.others}

    def size(name: str) -> str:
        blocks = sizes[name]
        return "none" if blocks is None else words.size(blocks * block)

    def factor(name: str) -> str | None:
        blocks = sizes[name]
        return None if blocks is None else words.times(blocks, planned)

    columns: list[Column[str]] = [
        Column("placing", lambda name: name),
        Column("flash per host", size, numeric=True),
        Column("of this plan", factor, numeric=True),
    ]
    which = "all goals that can be met" if _unreachable(answer) else "all goals"
    return Table(f"flash per host with which {which} are met", columns, list(sizes))


def _changes(answer: FleetPlanAnswer) -> Table[PlacementChange]:
    block = answer.block_bytes
    columns: list[Column[PlacementChange]] = [
        Column("if", lambda one: one.what),
        Column("volumes moved", _moved, numeric=True),
        Column("to fetch again", lambda one: one.blocks * block if one.fits else None, words.size),
        Column("flash per host", lambda one: one.needed_blocks * block, words.size),
    ]
    return Table("what moves", columns, _worst(answer.changes))


def _worst(changes: Sequence[PlacementChange]) -> list[PlacementChange]:
    """Return growth, and the dead hosts that need or move the most."""
    order = sorted(changes, key=lambda one: (one.fits, -one.needed_blocks, -one.blocks))
    deaths = [one for one in order if one.what.endswith("dies")][:SHOWN]
    return [*(one for one in changes if not one.what.endswith("dies")), *deaths]


def _moved(one: PlacementChange) -> str:
    return words.count(len(one.moved)) if one.fits else "do not fit"


def _replayed(answer: FleetPlanAnswer) -> Table[ReplayedPlacing]:
    columns: list[Column[ReplayedPlacing]] = [
        Column("placing", lambda one: one.name),
        Column("goals", lambda one: one.goals, words.count),
        Column("met", lambda one: one.goals_met, words.count),
        Column(
            "share", lambda one: one.goals_met / one.goals if one.goals else None, words.percent
        ),
        Column("hit ratio", lambda one: one.hit_ratio, words.ratio),
    ]
    title = "goals met in replays of all hosts with the plan's flash"
    return Table(title, columns, answer.replayed)
