"""Descriptions of traces with a given curve: cache sizes at tenths of the hits, as loops.

For: volumes of which only features are public (`rd.csv` of pbhandar2/BlockTraceFeatures: sizes at
each tenth of the hits, share of writes, share of first accesses). Must never know: any paper. Part
k is a loop that is drawn with its share of the accesses. A loop of N slots that is drawn once in m
accesses on the mean comes round after T = N m; until then LRU sees the smaller of N_j and T / m_j
blocks of every part j. Loops in order of T are solved one after another, so that the k-th first
hits in a cache of the k-th size. First accesses are a region that is walked once. Units: blocks of
4 KiB.

`python -m cachewright_lab.deciles RD.CSV VOLUME BLOCKS --rate REQUESTS` prints a description whose
largest size is BLOCKS.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BLOCK_KIB = 4
# How often the longest loop comes round in a lap of the trace.
ROUNDS = 8
# Draws vary: a loop is made for so much of its size, and most of it hits there.
FIT = 0.92
# Weights add up to this.
WEIGHTS = 1_000_000
# A region that is walked once has this much more room than first accesses need.
ROOM = 1.05


@dataclass(frozen=True)
class Loops:
    """Loops that have a curve: the slots of each, and accesses until the longest comes round."""

    slots: tuple[int, ...]
    longest: float


@dataclass(frozen=True)
class Volume:
    """The features of a volume: sizes at tenths of the hits in any unit, and two shares."""

    name: str
    sizes: tuple[float, ...]
    write_share: float
    first_share: float


def loops(sizes: Sequence[float], first_share: float) -> Loops:
    """Return the loops of which the k-th first hits in a cache of the k-th size in blocks."""
    share = (1 - first_share) / len(sizes)
    before, turn, found = 0.0, 0.0, []
    for place, size in enumerate(sizes):
        # Parts from this one on, and first accesses, have not come round yet.
        rest = share * (len(sizes) - place) + first_share
        turn = max((size - before) / rest, turn)
        before += share * turn
        found.append(max(1, round(share * turn)))
    return Loops(tuple(found), turn)


def read(path: Path, name: str) -> Volume:
    """Return the features of a volume. Errors: `ValueError` for a volume that is not there."""
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["workload"] == name:
                sizes = tuple(float(row[f"hr_{tenth}0"]) for tenth in range(1, 11))
                return Volume(name, sizes, float(row["write_ratio"]), float(row["cold_miss_rate"]))
    raise ValueError(f"{path}: found no volume `{name}`, expected one of its first column")


def description(volume: Volume, blocks: int, rate: float) -> str:
    """Return a description whose largest size is so many blocks, with so many requests a second."""
    scale = blocks / volume.sizes[-1]
    found = loops([max(1.0, FIT * size * scale) for size in volume.sizes], volume.first_share)
    count = math.ceil(ROUNDS * found.longest / 1000) * 1000
    first = math.ceil(count * volume.first_share * ROOM)
    share = (1 - volume.first_share) / len(found.slots)
    lines = [
        "[synth]",
        "seed = 1",
        "",
        "[[tenant]]",
        f'name = "{volume.name}"',
        f"count = {count}",
        f'arrival = {{ kind = "poisson", rate = "{rate:.0f}/s" }}',
        f"read_share = {1 - volume.write_share:.3f}",
        f'size = "{BLOCK_KIB}KiB"',
        "",
        "[tenant.pattern]",
        'kind = "mix"',
    ]
    offset = 0
    parts = [*(("loop", slots, share) for slots in found.slots)]
    parts.append(("sequential", first, volume.first_share))
    for kind, slots, weight in parts:
        keys = [f'kind = "{kind}"', f'span = "{slots * BLOCK_KIB}KiB"']
        keys.append(f'offset = "{offset * BLOCK_KIB}KiB"')
        lines += ["", "[[tenant.pattern.part]]", f"weight = {round(weight * WEIGHTS)}"]
        lines.append(f"pattern = {{ {', '.join(keys)} }}")
        offset += slots
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print a description of a volume."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", type=Path)
    parser.add_argument("volume")
    parser.add_argument("blocks", type=int)
    parser.add_argument("--rate", type=float, default=1000.0)
    told = parser.parse_args()
    print(description(read(told.features, told.volume), told.blocks, told.rate), end="")


if __name__ == "__main__":
    main()
