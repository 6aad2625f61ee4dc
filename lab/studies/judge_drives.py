"""Judges separations on drives: (F-U)/U with the reclaim of `shiro-x` for all.

For: lab/studies/judge.py. Must never know: how a separation decides. A drive is as large as what is
live at once; the load is replayed first and not counted; a trace is repeated until ten drive
writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import cachewright
from judge_volumes import Volume

OWN = "shiro-x"
RECLAIM = "death-rate"
RULES = ("2r", "dac", "multi-log", "mida", "midas", "warcip", "sepbit", "uw", "gw")
# At most 4 bytes of memory per page: as it is asked for, and as answers name it.
ASKED_COMPACT = '{ name = "shiro-x", compact = true }'
COMPACT = "shiro-x(compact=true)"
# As it is asked for, and as answers name it: what the trials of `shiro-x` give.
WITHOUT_TRIALS = '{ name = "shiro-x", trials = false }'
ABLATED = ("shiro-x(trials=false)",)
BOUND = "future-knowledge"
COMPARED = ("none", *RULES, OWN, COMPACT)
ASKED = ("none", *RULES, OWN, ASKED_COMPACT, WITHOUT_TRIALS, BOUND)
PROVISIONED = ("7%", "28%")
# A drive is hardly steady before.
DRIVE_WRITES = 10.0
# The least drives have 150 MiB: the streams of all separations must fit beside 7 %. `shiro-x`
# makes no trials on superblocks of fewer than 128 pages, with 4 bytes per page of fewer than 2048.
SUPERBLOCK = "512KiB"


class Drive(NamedTuple):
    """Extra writes of one separation on one capture."""

    volume: str
    group: str
    seed: int
    op: str
    scheme: str
    extra: float
    rounds: float


def studies(volumes: Iterable[Volume], out: Path) -> Iterator[Drive]:
    """Yield what every separation gave on every capture; say what cannot be run."""
    for volume in volumes:
        load = (str(volume.load),) if volume.load.is_file() else ()
        for op in PROVISIONED:
            try:
                answer = cachewright.wa(
                    str(volume.path),
                    ASKED,
                    reclaims=(RECLAIM,),
                    op=(op,),
                    capacity="live",
                    superblock=SUPERBLOCK,
                    loop=True,
                    drive_writes=DRIVE_WRITES,
                    load=load,
                    out=out / f"{volume.label}-{op.rstrip('%')}",
                ).answer
            except (cachewright.RunError, cachewright.SpecError) as error:
                print(f"{volume.label} at {op}: left out: {error}", file=sys.stderr)
                continue
            print(f"{volume.label} at {op}: {answer.rounds:.1f} rounds", file=sys.stderr)
            for case in answer.cases:
                own = (volume.name, volume.group, volume.seed)
                yield Drive(*own, op, case.separation, case.extra_writes, answer.rounds)
