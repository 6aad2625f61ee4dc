#!/usr/bin/env python3
"""Judges our own schemes and their rivals on volumes that chose no constant (lab/judgement.md).

For: one command, `python lab/studies/judge.py --captures DIR --traces DIR --out DIR --write`. Must
never know: how a scheme decides. Finished cases are kept in the folder of results for the next run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import judge_drives
import judge_mixes
import judge_policies
import judge_tables
import judge_verdict
import marked_pages
from judge_volumes import LAB, elsewhere, fresh, later, present, written

PAGE = LAB / "judgement.md"
# The first judges. Second halves show what it costs that goals are learned while they count.
GOALS = ("goals", "goals of second halves", "goals with room")
PARTS = ("hits", "lrb", "responses", "bounds", "drives", "mixes", "constant parts", *GOALS)


def measured(part: str, given: argparse.Namespace) -> list[Any]:
    """Run one part of the judgement; return what was measured."""
    out, captures = given.out / part.replace(" ", "-"), fresh(given.captures)
    if part in ("hits", "responses"):
        parts = later(given.traces, given.out / "later")
        chosen = present([*parts, *elsewhere(given.traces), *captures])
        timed = part == "responses"
        return list(judge_policies.studies(chosen, out, timed=timed))
    if part == "bounds":
        return list(judge_policies.bounded(captures, out))
    if part == "lrb":
        return list(judge_policies.slow(captures, out))
    if part == "drives":
        return list(judge_drives.studies(present([*written(given.traces), *captures]), out))
    mixes = list(judge_mixes.fresh_mixes(captures))
    if part == "goals of second halves":
        return list(judge_mixes.goals(mixes, out, warmup="30s"))
    if part == "goals with room":
        share = judge_mixes.GOAL_SHARE_WITH_ROOM
        return list(judge_mixes.goals(mixes, out, share=share))
    parts = present(later(given.traces, given.out / "later"))
    mixes = [*judge_mixes.later_mixes(parts), *mixes]
    if part == "goals":
        return list(judge_mixes.goals(mixes, out))
    if part == "constant parts":
        return list(judge_mixes.constant_parts(mixes, out))
    chosen = judge_mixes.fresh_mixes(captures, given.large_mixes)
    return list(judge_mixes.slowdowns([*judge_mixes.later_mixes(parts), *chosen], out))


def tables(part: str, found: Sequence[Any]) -> dict[str, str]:
    """Return the tables of one part by their names on the page."""
    if part == "hits":
        return {"hits": judge_tables.policies(found), "volumes": judge_tables.volumes(found)}
    if part == "drives":
        return {f"drives {op}": judge_tables.drives(found, op) for op in judge_drives.PROVISIONED}
    shown = {
        "responses": judge_tables.responses,
        "bounds": judge_tables.bounds,
        "lrb": judge_tables.slow,
        "mixes": judge_tables.slowdowns,
        "constant parts": judge_tables.constant_parts,
        **dict.fromkeys(GOALS, judge_tables.goals),
    }
    return {part: shown[part](found)}


# What only explains has no aim.
AIMS = {
    "hits": judge_verdict.of_hits,
    "responses": judge_verdict.of_responses,
    "drives": judge_verdict.of_drives,
    "mixes": judge_verdict.of_mixes,
    "goals": judge_verdict.of_goals,
}


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captures", type=Path, required=True, help="folder of fresh captures")
    parser.add_argument(
        "--traces", type=Path, required=True, help="folder of captured/ and public/"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--only", choices=PARTS, action="append", help="parts; with all, aims too")
    about = "seeds whose mixes of three and more tenants are replayed on devices; all by default"
    parser.add_argument("--large-mixes", type=int, metavar="N", help=about)
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    given = parser.parse_args()
    aims, made = [], {}
    for part in given.only or PARTS:
        found = measured(part, given)
        if not found:
            raise SystemExit(f"{given.captures}: found no volume for {part}, expected captures")
        kept = [one._asdict() for one in found]
        (given.out / f"{part.replace(' ', '-')}.json").write_text(json.dumps(kept, indent=1))
        made |= tables(part, found)
        aims += AIMS[part](found) if part in AIMS else []
    made |= judge_tables.captures(given.captures)
    made["aims"] = judge_verdict.table(aims)
    if given.only:
        print(made.pop("aims"))
    for name, text in made.items():
        print(f"{name}\n\n{text}\n")
    if given.write:
        marked_pages.write(PAGE, made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
