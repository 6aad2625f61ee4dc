"""What `plan --fleet` shows, and the shares of `--grow`.

For: the plan of a fleet on the terminal. Must never know: how volumes are placed.
"""

from __future__ import annotations

from pathlib import Path

from cachewright import words
from cachewright._native import SpecError
from cachewright.answers import FleetPlanAnswer
from cachewright.cli import output
from cachewright.cli.parsing import split_values
from cachewright.fleet.placement.host_files import FOLDER, host_name
from cachewright.tables import conclusion, placement

RESULTS = Path("results")


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
    """Print the plan as tables and a paragraph."""
    for sentence in answer.notes:
        output.note(sentence)
    for table in placement.tables(answer):
        output.show(table)
    if left := placement.changes_left_out(answer):
        move = "moves" if left == 1 else "move"
        output.say(f"{words.counted(left, 'change')} that {move} less: with --json")
    output.conclude(placement.conclusion(answer))


def next_command(file: Path, out: Path | None, answer: FleetPlanAnswer) -> str:
    """Return the replay of the hosts, or where that is done and kept, the run of one host."""
    if not answer.replayed:
        folder = ("--out", out, "--force") if out else ("--out", RESULTS / file.stem)
        return conclusion.command("plan", file, "--fleet", "--replay", *folder)
    if out is None:
        return ""
    host = out / FOLDER / f"{host_name(0, answer.hosts)}.toml"
    return conclusion.command("run", host, "--report")
