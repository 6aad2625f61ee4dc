"""Kinds of volumes with two captures each, and a table of what schemes gave on them.

For: lab/studies/one_model.py and its studies. Must never know: any scheme. A value is of one scheme
on the second capture of one kind; the study says in which unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of workload: the capture that trains, and the one that judges."""

    name: str
    trains: Path
    judges: Path


class Outcome(NamedTuple):
    """What one scheme gave on the capture of a kind that judges."""

    scheme: str
    kind: str
    value: float


def table(found: Sequence[Outcome]) -> str:
    """Return a row per scheme, a column per kind, and the mean over kinds."""
    kinds = list(dict.fromkeys(one.kind for one in found))
    values = {(one.scheme, one.kind): one.value for one in found}
    lines = [f"| scheme | {' | '.join(kinds)} | mean |", "|---" + "|--:" * (len(kinds) + 1) + "|"]
    for scheme in dict.fromkeys(one.scheme for one in found):
        own = [values[scheme, kind] for kind in kinds]
        cells = [f"{value:.3f}" for value in (*own, sum(own) / len(own))]
        lines.append(f"| {scheme} | {' | '.join(cells)} |")
    return "\n".join(lines)
