"""The judgement: means, verdicts and tables of hand-made measures.

What the page of the judgement rests on. Expected numbers are worked by hand.
"""

from __future__ import annotations

import pytest

from cachewright_lab import judgement
from cachewright_lab.judgement import Aim, Means
from cachewright_lab.study import Row


def judged(aims: list[Aim]) -> list[tuple[bool, float]]:
    return [(aim.met, round(aim.found, 6)) for aim in aims]


def measured(volume: str, seed: int, scheme: str, hits: float, writes: float) -> Row:
    values = {"hits": hits, "writes": writes, "response_ns": 1000.0}
    return Row(volume, "5%wss", scheme, values, "fresh", seed)


def test_hits_are_means_over_seeds_then_volumes() -> None:
    own = judgement.OWN[0]
    changed = {("a", 1, own): (0.3, 0.4), ("a", 2, own): (0.5, 0.2), ("b", 1, "lru"): (0.4, 0.8)}
    captures = {("a", 1): (0.1, 1.0), ("a", 2): (0.1, 1.0), ("b", 1): (0.2, 1.0)}
    found = [
        measured(*capture, scheme, *changed.get((*capture, scheme), usual))
        for scheme in (*judgement.rivals(), *judgement.OWN)
        for capture, usual in captures.items()
    ]
    means = Means(found, "hits")
    # Ours: mean of a is 0.4, of b 0.2; `lru`: 0.1 and 0.4. Writes: 0.3 and 1 beside 1 and 0.8.
    assert round(means.over(own), 6) == 0.3
    assert round(means.over("lru"), 6) == 0.25
    aims = judgement.aims_of_hits(found)
    assert judged(aims) == [(True, 0.2), (False, -0.5), (False, 0.722222)]


def test_drives_are_judged_beside_the_best_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (*judgement.DRIVES_COMPARED, *judgement.DRIVES_ABLATED, judgement.DRIVE_BOUND)
    own = {("a", 1): 0.2, ("a", 2): 0.4, ("b", 1): 0.9}
    compact = {"a": 0.88, "b": 0.94}
    found = []
    for (volume, seed), ours in own.items():
        for scheme in asked:
            extra = {"shiro-x": ours, judgement.COMPACT: compact[volume]}.get(scheme, 1.0)
            values = {"extra": extra, "rounds": 2.0}
            found.append(Row(volume, "7%", scheme, values, "fresh", seed))
    monkeypatch.setattr(judgement, "PROVISIONED", ("7%",))
    # Means of `shiro-x`: 0.3 and 0.9, with 4 B 0.88 and 0.94; every rule has 1.
    assert judged(judgement.aims_of_drives(found)) == [(True, -0.4), (True, -0.09)]
    table = judgement.drives_table(found, "7%").splitlines()
    assert table[0] == "| separation | a † | b † | mean |", "they were repeated"
    assert table[2] == "| `shiro-x` | 0.300 | 0.900 | 0.600 |"


def test_goals_are_judged_by_those_that_auto_meets() -> None:
    values = {"met": 3, "goals": 4, "hit_ratio": 0.5}
    (goal,) = judgement.aims_of_goals([Row("m", "5%wss", "auto", values, tenants=2)])
    assert (goal.met, goal.found) == (False, 0.75)
    assert "**missed** by 25.0 points" in goal.row()
