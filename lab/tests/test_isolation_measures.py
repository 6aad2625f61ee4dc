"""The measures of tenants kept apart, on throughputs written by hand.

For: `cachewright_lab.reproduce.isolation_measures`. Must never know: replays, figures.
"""

from __future__ import annotations

import pytest
from filled import filled

from cachewright.answers import Case
from cachewright_lab.reproduce.isolation import Outcome


def outcome(*steady: float | None) -> Outcome:
    tenants = [{"bytes_mean_over_sd": one} for one in steady]
    return Outcome(filled(Case, {"timing": {"throughput": {"tenants": tenants}}}))


def test_the_sum_follows_one_tenant_and_the_harmonic_mean_does_not() -> None:
    alike, carried = outcome(4.0, 4.0), outcome(400.0, 2.0)
    assert (alike.steadiness, alike.harmonic) == (8.0, 4.0)
    assert carried.steadiness == 402.0
    assert carried.harmonic == pytest.approx(2 / (1 / 400 + 1 / 2))
    assert carried.isolation(alike) == pytest.approx(402 / 8)


def test_who_is_answered_nothing_adds_nothing() -> None:
    silent = outcome(3.0, None)
    assert (silent.steadiness, silent.harmonic) == (3.0, 0.0)
    assert outcome(3.0).isolation(outcome(None)) == 0.0


def test_the_paper_s_own_sizes_use_eight_ninths_of_what_is_allocated_to_its_tenants() -> None:
    # Section V-C: 16, 70, 114 and 40 on channels of 100. Algorithm 1 gives tenants 1 and 2 a
    # channel each; 16, 14 and 40 lie in a pool of one channel.
    sizes = {"t0": 16, "t1": 70, "t2": 114, "t3": 40}
    groups = [
        {"channels": [0], "tenants": ["t1"], "capacity_bytes": 100},
        {"channels": [1], "tenants": ["t2"], "capacity_bytes": 100},
        {"channels": [2], "tenants": ["t0", "t2", "t3"], "capacity_bytes": 100},
        {"channels": [3], "tenants": [], "capacity_bytes": 100},
    ]
    case = filled(
        Case,
        {
            "block_bytes": 1,
            "tenants": [{"name": name, "required_blocks": one} for name, one in sizes.items()],
            "timing": {"channels": {"layout": "on-demand", "groups": groups}},
        },
    )
    outcome = Outcome(case)
    assert (outcome.required, outcome.allocated, outcome.granted) == (240, 300, 270)
    assert outcome.space(240) == pytest.approx(0.8)
    assert outcome.space_granted(240) == pytest.approx(8 / 9)


def test_where_channels_are_whole_or_common_both_spaces_are_one() -> None:
    groups = [{"channels": [0], "tenants": ["t0"], "capacity_bytes": 100}]
    tenants = [{"name": "t0", "required_blocks": 16}]
    for layout, allocated in (("flashblox", 100), ("striped", 40)):
        channels = {"layout": layout, "groups": groups}
        told = {"block_bytes": 1, "capacity_blocks": 40, "tenants": tenants}
        found = Outcome(filled(Case, {**told, "timing": {"channels": channels}}))
        assert (found.allocated, found.granted) == (allocated, allocated)
