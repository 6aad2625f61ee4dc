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
