"""What `plan --fleet` shows: hosts, other ways to place, changes and replays.

For: tables of a fleet's plan. Must never know: how volumes are placed.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright import words
from cachewright._native import SpecError
from cachewright.answers import FleetPlanAnswer, PlacementChange
from cachewright.cli import output
from cachewright.cli.parsing import split_values
from cachewright.cli.tables import Column, table
from cachewright.fleet.placement.host_files import host_name

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
    rows = range(answer.hosts)
    members = [[one for one in answer.volumes if one.host == host] for host in rows]
    needs = [sum(one.need_blocks for one in there) * answer.block_bytes for there in members]
    goals = [sum(one.goal_hit_ratio is not None for one in there) for there in members]
    hits = [[one.hit_ratio for one in there] for there in members]
    table(
        "hosts",
        [
            Column("host", [host_name(host, answer.hosts) for host in rows], numeric=False),
            Column("volumes", [words.count(len(there)) for there in members]),
            Column("goals", [words.count(number) for number in goals]),
            Column("needs", [words.size(size) for size in needs]),
            Column("lowest hit ratio", [words.ratio(min(ratios, default=None)) for ratios in hits]),
        ],
    )


def _others(answer: FleetPlanAnswer) -> None:
    block, planned = answer.block_bytes, answer.flash_blocks
    sizes: list[int | None] = [planned, *(one.flash_blocks for one in answer.others)]
    names = ["this plan", *(one.name for one in answer.others)]
    texts = ["none" if size is None else words.size(size * block) for size in sizes]
    factors = [words.NOTHING if size is None else words.times(size, planned) for size in sizes]
    table(
        "flash per host with which all goals are met",
        [
            Column("placing", names, numeric=False),
            Column("flash per host", texts),
            Column("of this plan", factors),
        ],
    )


def _changes(answer: FleetPlanAnswer) -> None:
    if not answer.changes:
        return
    shown = _worst(answer.changes)
    block = answer.block_bytes
    table(
        "what moves",
        [
            Column("if", [one.what for one in shown], numeric=False),
            Column("volumes moved", [_moved(one) for one in shown]),
            Column("to fetch again", [_fetched(one, block) for one in shown]),
            Column("flash per host", [words.size(one.needed_blocks * block) for one in shown]),
        ],
    )
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


def _fetched(one: PlacementChange, block: int) -> str:
    return words.size(one.blocks * block) if one.fits else words.NOTHING


def _replayed(answer: FleetPlanAnswer) -> None:
    if not answer.replayed:
        return
    found = answer.replayed
    table(
        "goals met in replays of all hosts with the plan's flash",
        [
            Column("placing", [one.name for one in found], numeric=False),
            Column("goals", [words.count(one.goals) for one in found]),
            Column("met", [words.count(one.goals_met) for one in found]),
            Column("share", [_share(one.goals_met, one.goals) for one in found]),
            Column("hit ratio", [words.ratio(one.hit_ratio) for one in found]),
        ],
    )


def _share(met: int, goals: int) -> str:
    return words.percent(met / goals) if goals else words.NOTHING
