"""Loops that have a given curve, by hand and by an exact LRU stack.

For: `cachewright_lab.deciles`. Must never know: any volume.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cachewright_lab.deciles import Volume, description, loops, read


def test_two_loops_by_hand() -> None:
    # Every other access draws each loop. One block comes round after two accesses, between which
    # LRU sees it and one other: size 2. Nine blocks come round after 18 accesses: with the first,
    # 10.
    assert loops([2, 10], 0.0).slots == (1, 9)
    assert loops([2, 10], 0.0).longest == 18


def test_an_exact_stack_hits_at_the_sizes() -> None:
    sizes, first = [20.0, 60.0, 61.0, 200.0], 0.1
    found = loops(sizes, first)
    draw, at = random.Random(1), [0] * 5
    stack: list[tuple[int, int]] = []
    distances, accesses = [], 40_000
    for _ in range(accesses):
        part = 4 if draw.random() < first else draw.randrange(4)
        slot = at[part] % found.slots[part] if part < 4 else at[part]
        at[part] += 1
        key = (part, slot)
        if key in stack:
            depth = stack.index(key)
            distances.append(depth + 1)
            del stack[depth]
        stack.insert(0, key)
        del stack[400:]
    for place, size in enumerate(sizes, 1):
        # Draws vary: a fifth more size on both sides.
        hits = [sum(one <= part * size for one in distances) / accesses for part in (0.8, 1.2)]
        assert hits[0] < place * 0.225 + 0.02
        assert hits[1] > place * 0.225 - 0.05, (place, hits)


def test_a_description_has_a_part_per_tenth_and_one_for_first_accesses(tmp_path: Path) -> None:
    head = ",".join(["workload", *(f"hr_{tenth}0" for tenth in range(1, 11))])
    sizes = ",".join(str(10.0 * tenth) for tenth in range(1, 11))
    path = tmp_path / "rd.csv"
    path.write_text(f"{head},write_ratio,cold_miss_rate\nw01,{sizes},0.25,0.1\n")
    volume = read(path, "w01")
    assert volume == Volume("w01", tuple(10.0 * tenth for tenth in range(1, 11)), 0.25, 0.1)
    text = description(volume, 200, 500.0)
    assert text.count("[[tenant.pattern.part]]") == 11
    assert 'rate = "500/s"' in text
    assert "read_share = 0.750" in text
    with pytest.raises(ValueError, match="found no volume `w02`"):
        read(path, "w02")
