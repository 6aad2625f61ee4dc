"""Tables of regrets on docs/which-scheme.md.

For: lab/studies/regret.py. Must never know: which schemes there are, how a study is run. The regret
of a scheme in a study is its measure over the least of all schemes there, minus 1; a table has its
worst regret and its mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Study(NamedTuple):
    """Cases that differ in the scheme only, and a measure of each that is least in the best."""

    kind: str
    name: str
    measures: dict[str, float]

    def regret(self, scheme: str) -> float | None:
        """Return by how much a scheme is above the best; nothing where it did not run."""
        own = self.measures.get(scheme)
        return None if own is None else own / min(self.measures.values()) - 1


def table(found: Sequence[Study], schemes: Sequence[str]) -> str:
    """Return a row per scheme: worst and mean regret by kind, and the study of the worst."""
    kinds = list(dict.fromkeys(study.kind for study in found))
    head = ["scheme", *(f"{kind}: worst, mean (worst study)" for kind in kinds)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for scheme in schemes:
        cells = [_cell([study for study in found if study.kind == kind], scheme) for kind in kinds]
        lines.append(f"| {' | '.join([f'`{scheme}`', *cells])} |")
    counts = ", ".join(f"{sum(study.kind == kind for study in found)} of {kind}" for kind in kinds)
    return "\n".join([*lines, "", f"Studies: {counts}."])


def _cell(studies: Sequence[Study], scheme: str) -> str:
    known = [(study.regret(scheme), study.name) for study in studies]
    regrets = [(regret, name) for regret, name in known if regret is not None]
    if not regrets:
        return "-"
    worst, name = max(regrets)
    mean = sum(regret for regret, _ in regrets) / len(regrets)
    return f"{100 * worst:.1f} %, {100 * mean:.1f} % ({name})"
