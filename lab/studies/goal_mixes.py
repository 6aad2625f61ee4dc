#!/usr/bin/env python3
"""Counts the goals that partitioners meet on mixes of volumes that do not judge.

For: choosing the constants of `soft-qos-x`: `lab/studies/goal_mixes.py --out DIR [--traces DIR]`.
Goals and sizes are those of the judgement (judge_mixes.py): 90 % and 50 % of the hit ratio
under `equal`, at 5 % and 20 % of the working set. So all goals of a mix fit together. Volumes are
those of `data`, and captures in DIR/captured that do not judge. Must never know: how a scheme
decides, the volumes that judge.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import judge_mixes
from judge_mixes import Chosen, Mix
from judge_volumes import BUNDLED, ROOT, Volume

# Of bundled volumes alone, and with captures; none of them judges.
MIXES = (
    ("oltp", "mail"),
    ("mail", "lu"),
    ("web", "oltp"),
    ("oltp", "mail", "web"),
    ("mail", "web", "lu"),
    ("oltp", "mail", "web", "lu"),
    ("kv", "build"),
    ("file", "video"),
    ("build", "kv", "dss"),
    ("file", "video", "oltp"),
    ("phases", "build", "web"),
    ("build", "kv", "file", "dss"),
    ("video", "build", "oltp", "lu"),
    ("oltp", "mail", "web", "lu", "build", "kv", "file", "dss"),
)
SIZES = (2, 3, 4, 8)


def volume(name: str, traces: Path) -> Volume:
    """Return the volume of that name: bundled, or captured."""
    folder = ROOT / "data" if name in BUNDLED else traces / "captured"
    return Volume(name, "open", folder / f"{name}.csv.zst")


def mixes(traces: Path) -> Iterator[Chosen]:
    """Yield the mixes whose files are all there; say which are left out."""
    for names in MIXES:
        volumes = tuple(volume(name, traces) for name in names)
        missing = [one.name for one in volumes if not one.path.is_file()]
        if missing:
            print(f"left out, no file of {', '.join(missing)}: {'+'.join(names)}")
        else:
            yield Chosen("+".join(names), volumes)


def rows(found: Sequence[Mix]) -> Iterator[str]:
    """Yield a line per partitioner: goals met and goals by number of tenants, and of all."""
    for scheme in dict.fromkeys(mix.scheme for mix in found):
        own = [mix for mix in found if mix.scheme == scheme]
        cells = []
        for of_size in [*([mix for mix in own if mix.tenants == size] for size in SIZES), own]:
            cells.append(f"{sum(mix.met for mix in of_size)}/{sum(mix.goals for mix in of_size)}")
        whole = sum(mix.met == mix.goals for mix in own)
        yield f"{scheme:12} {' '.join(f'{cell:>8}' for cell in cells)}  all goals of {whole} mixes"


def main() -> None:
    """Run all mixes and print the goals met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of results")
    parser.add_argument(
        "--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="other captures"
    )
    given = parser.parse_args()
    chosen = list(mixes(given.traces))
    for share in (judge_mixes.GOAL_SHARE, judge_mixes.GOAL_SHARE_WITH_ROOM):
        out = given.out / f"{share:.0%}".replace("%", "")
        print(f"goals at {share:.0%} of what `equal` gives; 2, 3, 4, 8 tenants, all")
        for row in rows(list(judge_mixes.goals(chosen, out, share=share))):
            print(row)


if __name__ == "__main__":
    main()
