"""Counts the goals that partitioners meet on mixes of volumes that do not judge.

For choosing the constants of `soft-qos-x`: `python -m cachewright_lab.goal_mixes --out DIR
[--traces DIR]`. Goals and sizes are those of the judgement: 90 % and 50 % of the hit ratio under
`equal`, at 5 % and 20 % of the working set, so that all goals of a mix fit together. Volumes are
the bundled ones, and captures in DIR/captured that do not judge.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cachewright_lab import judgement
from cachewright_lab.study import BUNDLED, ROOT, Mix, Programme, Row, Study, Volume, grid

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


def mixes(traces: Path) -> Iterator[Mix]:
    """Yield the mixes whose files are all there; say which are left out."""
    for names in MIXES:
        folders = [ROOT / "data" if one in BUNDLED else traces / "captured" for one in names]
        volumes = tuple(
            Volume(one, folder / f"{one}.csv.zst", "open")
            for one, folder in zip(names, folders, strict=True)
        )
        missing = [one.name for one in volumes if not one.path.is_file()]
        if missing:
            print(f"left out, no file of {', '.join(missing)}: {'+'.join(names)}", file=sys.stderr)
        else:
            yield Mix("+".join(names), volumes)


def of_goals(given: argparse.Namespace, share: float) -> Iterator[Row]:
    """Yield how many goals every partitioner meets at a share of what `equal` gives."""
    out = given.out / f"{share:.0%}".replace("%", "")
    return judgement.goals(mixes(given.traces), out, share=share)


def table(rows: Sequence[Row]) -> str:
    """Return goals met and goals by number of tenants and of all, and mixes with all goals met."""
    body = []
    for scheme in dict.fromkeys(row.scheme for row in rows):
        own = [row for row in rows if row.scheme == scheme]
        of_size = [[row for row in own if row.tenants == size] for size in SIZES]
        cells = [
            f"{judgement.counted(some, 'met')}/{judgement.counted(some, 'goals')}"
            for some in (*of_size, own)
        ]
        whole = sum(row.values["met"] == row.values["goals"] for row in own)
        body.append([f"`{scheme}`", *cells, str(whole)])
    head = ["partitioner", *(f"{size} tenants" for size in SIZES), "all", "mixes with all goals"]
    return grid(head, body)


def options(parser: argparse.ArgumentParser) -> None:
    """Add what is given beside the usual."""
    parser.add_argument(
        "--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="other captures"
    )


def study(share: float) -> Study:
    """Return the study of goals at a share."""
    return Study(
        lambda given: of_goals(given, share),
        lambda _, rows: {f"goals at {share:.0%} of what `equal` gives": table(rows)},
    )


STUDIES = {
    "goals": study(judgement.GOAL_SHARE),
    "goals with room": study(judgement.GOAL_SHARE_WITH_ROOM),
}
PROGRAMME = Programme("Counts the goals that partitioners meet.", None, STUDIES, options)

if __name__ == "__main__":
    sys.exit(PROGRAMME.main())
