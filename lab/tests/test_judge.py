"""The judgement of `lab/studies/judge.py`: means, verdicts and tables of hand-made measures.

For: what the page of the judgement rests on. Must never know: traces, machines. Expected numbers
are worked by hand.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "studies"
HITS = """
import judge_policies, judge_verdict
from judge_policies import Means, Measured

def row(volume, seed, scheme, hits, writes):
    return Measured(volume, "fresh", seed, "5%wss", scheme, hits, writes, 1000.0)

OWN = judge_policies.OWN[0]
found = []
for scheme in (*judge_policies.rivals(), *judge_policies.OWN):
    found += [row("a", seed, scheme, 0.1, 1.0) for seed in (1, 2)]
    found.append(row("b", 1, scheme, 0.2, 1.0))
changed = {("a", 1, OWN): (0.3, 0.4), ("a", 2, OWN): (0.5, 0.2), ("b", 1, "lru"): (0.4, 0.8)}
found = [
    one._replace(hits=changed[key][0], writes=changed[key][1])
    if (key := (one.volume, one.seed, one.scheme)) in changed
    else one
    for one in found
]
means = Means(found, "hits")
print(round(means.over(OWN), 6), round(means.over("lru"), 6))
for aim in judge_verdict.of_hits(found):
    print(aim.met, round(aim.found, 6))
"""
DRIVES = """
import judge_drives, judge_tables, judge_verdict
from judge_drives import Drive

def row(volume, seed, scheme, extra):
    return Drive(volume, "fresh", seed, "7%", scheme, extra, 2.0)

asked = (*judge_drives.COMPARED, *judge_drives.ABLATED, judge_drives.BOUND)
found = [row(*key, scheme, 1.0) for key in (("a", 1), ("a", 2), ("b", 1)) for scheme in asked]
changed = {("a", 1): 0.2, ("a", 2): 0.4, ("b", 1): 0.9}
found = [
    one._replace(extra=changed[one.volume, one.seed]) if one.scheme == "shiro-x" else one
    for one in found
]
found = [
    one._replace(extra=0.88 if one.volume == "a" else 0.94)
    if one.scheme == judge_drives.COMPACT
    else one
    for one in found
]
judge_drives.PROVISIONED = ("7%",)
for aim in judge_verdict.of_drives(found):
    print(aim.met, round(aim.found, 6))
print(judge_tables.drives(found, "7%").splitlines()[2])
"""
MIXES = """
import judge_mixes, judge_verdict
from judge_mixes import Mix

found = [Mix("m", 2, "5%wss", scheme, 4.0) for scheme in judge_mixes.SCHEMES]
found = [
    one._replace(slowdown={"auto": 3.0, "dp": 2.5}.get(one.scheme, 4.0)) for one in found
]
# A setting that is off judges nothing, however good it is.
found.append(Mix("m", 2, "5%wss", judge_mixes.ABLATED[0], 1.0))
(aim,) = judge_verdict.of_mixes(found)
print(aim.met, round(aim.found, 6))
(goal,) = judge_verdict.of_goals([Mix("m", 2, "5%wss", "auto", 0.0, 3, 4)])
print(goal.met, goal.found, goal.row())
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # Ours: mean of a is 0.4, of b 0.2; `lru`: 0.1 and 0.4. Writes: 0.3 and 1 beside 1 and 0.8.
        (HITS, "0.3 0.25\nTrue 0.2\nFalse -0.5\nFalse 0.722222\n"),
        # Means of `shiro-x`: 0.3 and 0.9, with 4 B 0.88 and 0.94; every rule has 1.
        (DRIVES, "True -0.4\nTrue -0.09\n| `shiro-x` | 0.300 | 0.900 | 0.600 |\n"),
        (MIXES, "False 0.2\nFalse 0.75"),
    ],
)
def test_verdicts_are_those_worked_by_hand(program: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(expected), done.stdout
