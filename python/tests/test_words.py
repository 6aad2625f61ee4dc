"""Numbers as text: what is small, what rounds up to a unit, and the value that a text keeps.

For: `cachewright.words`. Must never know: what numbers mean.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright import _native, words


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e-7, "0.0000001"),
        (1.2345e-5, "0.0000123"),
        (-3.21e-6, "-0.00000321"),
        (0.0001, "0.0001"),
        (999.6, "1,000"),
        (123_456, "123,000"),
    ],
)
def test_significant_digits_stay_however_small_the_number(number: float, text: str) -> None:
    assert words.significant(number) == text
    assert words.value_of(words.significant(number)) == number


def test_a_count_that_rounds_up_to_a_letter_has_it() -> None:
    assert [words.short(one) for one in (999, 999_999, 999_999_999)] == ["999", "1M", "1G"]
    assert [words.short(one) for one in (850_000, 12_300_000)] == ["850k", "12.3M"]


@given(st.integers(min_value=0, max_value=1 << 60))
def test_a_size_at_most_reads_back_as_no_more(size_bytes: int) -> None:
    read = _native.parse_bytes(words.size_at_most(size_bytes))
    assert read <= size_bytes
    assert size_bytes - read <= size_bytes / 1000
