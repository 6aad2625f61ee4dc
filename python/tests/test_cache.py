"""A live cache: answers worked by hand, columns, several tenants, refusals.

For: `cachewright.Cache`. Must never know: how a policy decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cachewright
from cachewright import Cache, Verdict
from cachewright.examples import FifoCache, LruCache
from cachewright.live.cache import Columns

BLOCK = 4096


def test_answers_name_what_became_of_every_block() -> None:
    cache = Cache(2)
    first = cache.write(0, 6144)
    assert (first.hit, first.admitted, first.fetched) == (False, [0, 1], [1])
    second = cache.read(2 * BLOCK, 1)
    assert (second.admitted, second.evicted) == ([2], [("cache", 0)])
    assert second.written_back == [("cache", 0)]
    third = cache.read(BLOCK, BLOCK)
    assert (third.hit, third.hits) == (True, [1])
    assert repr(third) == "Answer(hits=[1])"
    trimmed = cache.trim(0, 1 << 50)
    assert sorted(trimmed.discarded) == [1, 2]
    assert (cache.dirty_blocks, cache.contains(1)) == (0, False)
    counters = cache.counters()
    assert (counters.accesses, counters.hits, counters.evictions) == (4, 1, 1)
    assert (counters.writebacks, counters.invalidations) == (1, 2)
    assert counters.hit_ratio == 0.25
    cache.audit()


def test_write_modes_differ() -> None:
    through = Cache(4, write="write-through").write(0, BLOCK)
    assert (through.admitted, through.written_through) == ([0], [0])
    around = Cache(4, write="write-around").write(0, BLOCK)
    assert (around.admitted, around.bypassed) == ([], [0])
    read_only = Cache(4, write="read-only")
    read_only.read(0, BLOCK)
    written = read_only.write(0, BLOCK)
    assert (written.bypassed, written.discarded) == ([0], [0])


def test_tenants_share_a_cache_or_have_parts_of_their_own() -> None:
    shared = Cache(2, tenants=["a", "b"])
    shared.read(0, BLOCK, tenant="a")
    shared.read(0, BLOCK, tenant="b")
    assert shared.read(BLOCK, BLOCK, tenant="b").evicted == [("a", 0)]
    parts = Cache({"a": "4KiB", "b": 1})
    parts.read(0, BLOCK, tenant="a")
    parts.write(0, BLOCK, tenant="b")
    assert parts.read(BLOCK, BLOCK, tenant="b").written_back == [("b", 0)]
    assert parts.contains(0, tenant="a")
    assert parts.counters("b").capacity_blocks == 1
    left = parts.resize({"a": 0, "b": "2 blocks"})
    assert (left.evicted, left.written_back) == ([("a", 0)], [])
    assert parts.counters("b").capacity_blocks == 2
    assert parts.tenants == ["a", "b"]


def _requests(policy: Any) -> tuple[Cache, Columns, dict[str, Any]]:
    rng = np.random.default_rng(3)
    requests = {
        "offset_bytes": rng.integers(0, 300, 3000, dtype=np.uint64) * 2048,
        "length_bytes": rng.integers(1, 20_000, 3000, dtype=np.uint64),
        "op": rng.choice(["read", "write", "trim", "flush"], 3000, p=[0.6, 0.3, 0.05, 0.05]),
        "tenant": rng.choice(["a", "b"], 3000),
    }
    requests["length_bytes"][requests["op"] == "flush"] = 0
    cache = Cache({"a": 32, "b": 48}, policy)
    return cache, cache.replay(requests), requests


@pytest.mark.parametrize("policy", ["lru", "arc", "rc-x", LruCache])
def test_columns_are_the_answers_of_single_requests(policy: Any) -> None:
    cache, columns, requests = _requests(policy)
    one_by_one = Cache({"a": 32, "b": 48}, policy)
    verbs = {"read": one_by_one.read, "write": one_by_one.write, "trim": one_by_one.trim}
    rows = zip(*(requests[name].tolist() for name in requests), strict=True)
    for place, (offset, length, op, tenant) in enumerate(rows):
        if op == "flush":
            assert not any(column[place] for column in columns)
            continue
        answer = verbs[op](offset, length, tenant)
        expected = [len(getattr(answer, name)) for name in Columns._fields]
        assert [int(column[place]) for column in columns] == expected
    for tenant in ("a", "b"):
        assert cache.counters(tenant) == one_by_one.counters(tenant)


@pytest.mark.parametrize(("policy", "name"), [(LruCache, "lru"), (FifoCache, "fifo")])
def test_a_python_policy_decides_as_the_built_in_one(policy: Any, name: str) -> None:
    (_, found, _), (_, expected, _) = _requests(policy), _requests(name)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


def test_a_frame_gives_the_counts_of_a_replay(traces: Path) -> None:
    cache = Cache(64, "arc")
    columns = cache.replay(cachewright.read_trace("a.csv"))
    case = cachewright.simulate("a.csv", "arc", "64 blocks").cases.row(0, named=True)
    counters = cache.counters()
    assert (counters.accesses, counters.hits) == (case["accesses"], case["hits"])
    assert (counters.evictions, counters.writebacks) == (case["evictions"], case["writebacks"])
    assert int(columns.hits.sum()) == counters.hits


class Wrong(LruCache):
    """Breaks a rule at its third access."""

    seen = 0

    def access(self, block: int, write: bool) -> Verdict:
        self.seen += 1
        return Verdict.HIT if self.seen == 3 else super().access(block, write)


def test_a_broken_rule_ends_a_live_cache() -> None:
    cache = Cache(8, Wrong)
    cache.read(0, 2 * BLOCK)
    for _ in range(2):
        with pytest.raises(cachewright.PolicyError, match=r"access 3 \(block 2\): returned a hit"):
            cache.read(2 * BLOCK, BLOCK)
    with pytest.raises(cachewright.PolicyError, match="access 3"):
        Cache(8, Wrong).replay(
            {"offset_bytes": np.arange(9) * BLOCK, "length_bytes": np.ones(9, int)}
        )


def test_a_policy_that_uses_its_own_cache_is_refused() -> None:
    class Loop(LruCache):
        def access(self, block: int, write: bool) -> Verdict:
            cache.read(0, BLOCK)
            return Verdict.BYPASS

    cache = Cache(8, Loop)
    with pytest.raises(cachewright.PolicyError, match="RunError: this cache is in use"):
        cache.read(0, BLOCK)


def test_an_interrupt_inside_a_policy_stays_an_interrupt() -> None:
    class Stopped(LruCache):
        def access(self, block: int, write: bool) -> Verdict:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cache(8, Stopped).read(0, BLOCK)


ARRAYS = {"offset_bytes": np.arange(3, dtype=np.uint64), "length_bytes": np.full(3, 8)}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Cache("10%wss"), "a live cache knows no working set"),
        (lambda: Cache("64MB2"), "`capacity`: found `64MB2`, expected a size"),
        (lambda: Cache(-1), "`capacity`: found `-1 blocks`"),
        (lambda: Cache(1 << 40), "expected at most 4294967278 blocks"),
        (lambda: Cache(8, "lruu"), "nearest is `lru`"),
        (lambda: Cache(8, {"name": "s3-fifo", "small_share": 3}), "small_share"),
        (lambda: Cache(8, "belady"), "`belady` needs the future, found none"),
        (lambda: Cache(8, "rc-rnn"), "needs trained models, found none"),
        (lambda: Cache(8, "python:none"), "expected `python:FILE.py:CLASS`"),
        (lambda: Cache(8, block="5KiB"), "`block`: found `5KiB`, expected a power of two"),
        (lambda: Cache(8, write="back"), "`write`: found `back`, expected write-back"),
        (lambda: Cache(8, tenants=["a", "a"]), "expected each name once"),
        (lambda: Cache({"a": 8}, tenants=["a", "b"]), "`capacity`: found a, expected a, b"),
        (lambda: Cache({}), "`capacity`|`tenants`"),
        (lambda: Cache(8).read(-1, 4), "`offset`: found -1"),
        (lambda: Cache(8).read(0, 0), "`length`: found `0`, expected at least one byte"),
        (lambda: Cache(8).read(0, 1 << 60), "`length`: found .* expected at most"),
        (lambda: Cache(8).read(0, 1 << 70), "`length`: found .* expected a whole number"),
        (lambda: Cache(8).read(0, 1, tenant="x"), "`tenant`: found `x`, expected one of cache"),
        (lambda: Cache(8, tenants=["a", "b"]).read(0, 1), "found none, expected one of a, b"),
        (lambda: Cache(8).resize({"a": 3}), "`capacity`: found a, expected cache"),
        (lambda: Cache(8, tenants=["a", "b"]).resize({"a": 3, "b": 4}), "expected 1"),
        (lambda: Cache({"a": 3, "b": 4}).resize(9), "expected 2"),
        (lambda: Cache(8).replay({"offset_bytes": np.arange(3)}), "expected also `length_bytes`"),
        (lambda: Cache(8).replay({**ARRAYS, "op": ["read", "x", "read"]}), "`op`: found `x`"),
        (lambda: Cache(8).replay({**ARRAYS, "op": [0, 1, 9]}), "`op`: found 9, expected less"),
        (lambda: Cache(8).replay({**ARRAYS, "op": [0, 1]}), "expected 2 as in `op`"),
        (lambda: Cache(8).replay({**ARRAYS, "offset_bytes": [0.5, 1, 2]}), "found float64"),
        (lambda: Cache(8).replay({**ARRAYS, "offset_bytes": [-1, 1, 2]}), "whole numbers from 0"),
        (lambda: Cache(8).replay({**ARRAYS, "length_bytes": [1, 1, 0]}), "request 2: `length`"),
    ],
)
def test_what_cannot_be_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(cachewright.SpecError, match=said):
        wrong()


def test_nothing_is_decided_before_all_requests_are_checked() -> None:
    cache = Cache(8)
    with pytest.raises(cachewright.SpecError, match="request 2"):
        cache.replay({"offset_bytes": np.arange(3), "length_bytes": np.array([1, 1, 0])})
    assert cache.counters().accesses == 0
