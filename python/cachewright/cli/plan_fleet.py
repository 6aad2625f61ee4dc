"""What `plan --fleet` shows: hosts, other ways to place, changes and replays.

For: tables of a fleet's plan. Must never know: how volumes are placed.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright import words
from cachewright._native import SpecError
from cachewright.answers import FleetPlanAnswer, PlacementChange, ReplayedPlacing
from cachewright.cli import output
from cachewright.cli.parsing import split_values
from cachewright.fleet.placement.host_files import host_name
from cachewright.tables import Column, Table

# Changes that are shown one by one; the others are in the document.
SHOWN = 5


def grown(text: str | None) -> dict[str | None, float]:
    """Return the shares of `--grow`: `20%` for all, `mail=50%` for one, several with commas.

    >>> grown("20%,mail=50%")
    {None: 0.2, 'mail': 0.5}
    """
    found: dict[str | None, float] = {}
    for part in split_values(text) if text else ():
        name, equals, value = part.rpartition("=")
        try:
            share = float(value.strip().removesuffix("%")) / (100 if "%" in value else 1)
        except ValueError:
            share = -1.0
        if share < 0:
            raise SpecError(f"--grow: found `{part}`, expected a share such as 20% or mail=50%")
        found[name.strip() if equals else None] = share
    return found


def show(answer: FleetPlanAnswer) -> None:
    """Print the plan as tables and sentences."""
    for sentence in answer.notes:
        output.note(sentence)
    _hosts(answer)
    _others(answer)
    _changes(answer)
    _replayed(answer)
    output.say(conclusion(answer))


def conclusion(answer: FleetPlanAnswer) -> str:
    """Return the flash per host and how far it is above the bound, as one sentence."""
    volumes = words.counted(len(answer.volumes), "volume")
    hosts = words.counted(answer.hosts, "host")
    flash = words.size(answer.flash_blocks * answer.block_bytes)
    if answer.flash_given:
        return (
            f"{volumes} on {hosts}, of which the fullest needs {flash}; no plan has fewer than "
            f"{answer.bound_hosts}"
        )
    bound = words.size(answer.bound_blocks * answer.block_bytes)
    return (
        f"{volumes} on {hosts} of {flash} each; no plan needs less than {bound}: at most "
        f"{words.percent(answer.gap)} above the least"
    )


def _hosts(answer: FleetPlanAnswer) -> None:
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
    output.show(Table("hosts", columns, range(answer.hosts)))


def _others(answer: FleetPlanAnswer) -> None:
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
    output.show(Table("flash per host with which all goals are met", columns, list(sizes)))


def _changes(answer: FleetPlanAnswer) -> None:
    if not answer.changes:
        return
    shown = _worst(answer.changes)
    block = answer.block_bytes
    columns: list[Column[PlacementChange]] = [
        Column("if", lambda one: one.what),
        Column("volumes moved", _moved, numeric=True),
        Column("to fetch again", lambda one: one.blocks * block if one.fits else None, words.size),
        Column("flash per host", lambda one: one.needed_blocks * block, words.size),
    ]
    output.show(Table("what moves", columns, shown))
    left = len(answer.changes) - len(shown)
    if left:
        output.say(f"{words.counted(left, 'change')} that move less: with --json")
        output.say()


def _worst(changes: Sequence[PlacementChange]) -> list[PlacementChange]:
    """Return growth, and the dead hosts that need or move the most."""
    order = sorted(changes, key=lambda one: (one.fits, -one.needed_blocks, -one.blocks))
    deaths = [one for one in order if one.what.endswith("dies")][:SHOWN]
    return [*(one for one in changes if not one.what.endswith("dies")), *deaths]


def _moved(one: PlacementChange) -> str:
    return words.count(len(one.moved)) if one.fits else "do not fit"


def _replayed(answer: FleetPlanAnswer) -> None:
    if not answer.replayed:
        return
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
    output.show(Table(title, columns, answer.replayed))
