"""The aims of the judgement: what was asked, what was found, met or missed and by how much.

For: lab/studies/judge.py. Must never know: how studies are run. Shares are ratios: 0.02 is 2 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import judge_drives
import judge_mixes
import judge_policies
from judge_drives import Drive
from judge_mixes import Mix
from judge_policies import Means, Measured
from judge_tables import extra_of, title

# What `shiro-x` and its form of at most 4 bytes per page are to have fewer extra writes by.
DRIVE_AIMS = ((judge_drives.OWN, -0.15), (judge_drives.COMPACT, -0.08))
# Hits per access that a volume must allow to be judged by itself.
LEAST_HITS = 0.01


class Aim(NamedTuple):
    """One aim: a bound on a measured share, which must not be exceeded (or fallen below)."""

    what: str
    bound: float
    found: float
    at_most: bool
    about: str

    @property
    def met(self) -> bool:
        """Say whether it is met."""
        return self.found <= self.bound if self.at_most else self.found >= self.bound

    def row(self) -> str:
        """Return its row of the table."""
        side = "at most" if self.at_most else "at least"
        missed = f"**missed** by {100 * abs(self.found - self.bound):.1f} points"
        verdict = "**met**" if self.met else missed
        asked = f"{side} {100 * self.bound:.0f} %"
        return f"| {self.what} | {asked} | {100 * self.found:+.1f} % | {verdict} | {self.about} |"


def of_hits(found: Sequence[Measured]) -> list[Aim]:
    """Return the aims of hits: the best own policy beside every rival."""
    hits, writes = Means(found, "hits"), Means(found, "writes")
    rivals = judge_policies.rivals()
    own, rival = hits.best(judge_policies.OWN, most=True), hits.best(rivals, most=True)
    gaps = {}
    for volume in hits.volumes:
        best = hits.best_on(volume, (*rivals, *judge_policies.OWN), most=True)
        # Beside next to no hits a ratio says nothing.
        if hits.of[best, volume] >= LEAST_HITS:
            gaps[volume] = hits.of[own, volume] / hits.of[best, volume] - 1
    worst = min(gaps, key=lambda one: gaps[one])
    within = sum(gap >= -0.02 for gap in gaps.values())
    about = f"{title(own)} beside {title(rival)}"
    return [
        Aim("Hits on the mean", 0.0, hits.over(own) / hits.over(rival) - 1, False, about),
        Aim(
            "Hits on each volume, beside its best",
            -0.02,
            gaps[worst],
            False,
            f"{title(own)}, worst on {worst}; within 2 % on {within} of {len(gaps)}",
        ),
        Aim("Flash writes", 0.7, writes.over(own) / writes.over(rival), True, about),
    ]


def of_responses(found: Sequence[Measured]) -> list[Aim]:
    """Return the aims of responses: the best own policy beside the best single rival."""
    means = Means(found, "response_ns", geometric=True)
    rivals = judge_policies.rivals()
    own, rival = means.best(judge_policies.OWN, most=False), means.best(rivals, most=False)
    gaps = {}
    for volume in means.volumes:
        best = means.best_on(volume, (*rivals, *judge_policies.OWN), most=False)
        gaps[volume] = means.of[own, volume] / means.of[best, volume] - 1
    worst = max(gaps, key=lambda one: gaps[one])
    within = sum(gap <= 0.05 for gap in gaps.values())
    ratio = means.over(own) / means.over(rival) - 1
    about = f"{title(own)} beside {title(rival)}"
    return [
        Aim("Mean response, geometric mean", -0.1, ratio, True, about),
        Aim(
            "Mean response on each volume, beside its best",
            0.05,
            gaps[worst],
            True,
            f"{title(own)}, worst on {worst}; within 5 % on {within} of {len(gaps)}",
        ),
    ]


def of_drives(found: Sequence[Drive]) -> list[Aim]:
    """Return the aims of drives, two per over-provisioning."""
    aims = []
    for op in judge_drives.PROVISIONED:
        extra, volumes = extra_of(found, op)
        mean = {
            scheme: sum(extra[scheme, one] for one in volumes) / len(volumes)
            for scheme in judge_drives.COMPARED
        }
        rule = min(judge_drives.RULES, key=lambda one: mean[one])
        about = f"beside `{rule}` with the same reclaim"
        for own, bound in DRIVE_AIMS:
            what = f"(F-U)/U of {title(own)} on the mean, {op} over-provisioned"
            aims.append(Aim(what, bound, mean[own] / mean[rule] - 1, True, about))
    return aims


def of_mixes(found: Sequence[Mix]) -> list[Aim]:
    """Return the aim of slowdowns: `auto` beside the best partitioner of each mix."""
    ratios = {}
    for key in dict.fromkeys((one.name, one.capacity) for one in found):
        own = {one.scheme: one.slowdown for one in found if (one.name, one.capacity) == key}
        ratios[key] = own["auto"] / min(own[scheme] for scheme in judge_mixes.SCHEMES)
    worst = max(ratios, key=lambda one: ratios[one])
    within = sum(ratio <= 1.15 for ratio in ratios.values())
    about = f"worst on {' '.join(worst)}; within 15 % on {within} of {len(ratios)}"
    what = "Largest slowdown of `auto` in every mix, beside its best"
    return [Aim(what, 0.15, ratios[worst] - 1, True, about)]


def of_goals(found: Sequence[Mix]) -> list[Aim]:
    """Return the aim of goals: all that fit are met by `auto`."""
    own = [one for one in found if one.scheme == "auto"]
    met, goals = sum(one.met for one in own), sum(one.goals for one in own)
    whole = sum(one.met == one.goals for one in own)
    about = f"{met} of {goals} goals, all in {whole} of {len(own)} studies"
    return [Aim("Goals that fit, met by `auto`", 1.0, met / max(goals, 1), False, about)]


def table(aims: Sequence[Aim]) -> str:
    """Return the table of aims."""
    head = "| aim | asked | found | verdict | what was compared |\n|---|---|---|---|---|"
    return "\n".join([head, *(aim.row() for aim in aims)])
