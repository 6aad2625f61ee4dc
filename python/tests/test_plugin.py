"""Policies written in Python: equal to those in Rust, checked, and explained.

For: `cachewright.policies` and its examples. Must never know: how Rust policies work.
"""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import cachewright
from cachewright.examples import Fifo, Lru


def slow_fifo(ids: list[int], capacity: int) -> list[bool]:
    """Return hits of a FIFO cache kept as a queue."""
    queue: deque[int] = deque()
    resident: set[int] = set()
    hits = []
    for block in ids:
        hits.append(block in resident)
        if block in resident or capacity == 0:
            continue
        if len(queue) == capacity:
            resident.remove(queue.popleft())
        queue.append(block)
        resident.add(block)
    return hits


@given(st.integers(0, 400), st.integers(1, 600), st.integers(0, 2**32), st.integers(1, 500))
def test_the_fast_fifo_is_exact(capacity: int, blocks: int, seed: int, batch: int) -> None:
    rng = random.Random(seed)
    ids = [int(blocks * rng.random() ** 2) for _ in range(3000)]
    policy = Fifo(capacity)
    found: list[bool] = []
    for start in range(0, len(ids), batch):
        part = np.array(ids[start : start + batch], dtype=np.uint32)
        found += policy.access_batch(part, np.zeros(len(part), dtype=np.bool_)).tolist()
    assert found == slow_fifo(ids, capacity)


@pytest.mark.parametrize("capacity", ["20 blocks", "512KiB", "50%wss"])
@pytest.mark.parametrize(("policy", "name"), [(Fifo, "fifo"), (Lru, "lru")])
def test_examples_equal_rust(stack: Path, policy: Any, name: str, capacity: str) -> None:
    run = cachewright.simulate_python(policy, stack, capacity, batch=1000)
    rust = cachewright.run(stack, settings={"policy": name, "capacity": capacity})
    case = rust.cases.row(0, named=True)
    assert run.capacity_blocks == case["capacity_blocks"]
    assert (run.accesses, run.hits) == (case["accesses"], case["hits"])
    assert (run.read_accesses, run.read_hits) == (case["read_accesses"], case["read_hits"])
    assert run.hit_ratio == pytest.approx(case["hit_ratio"])
    tenants = {row["tenant"]: (row["accesses"], row["hits"]) for row in rust.tenants.to_dicts()}
    assert run.tenants == tenants


def test_one_trace_without_a_stack(traces: Path) -> None:
    run = cachewright.simulate_python(Fifo, "a.csv", 100, block="8KiB")
    rust = cachewright.simulate("a.csv", "fifo", "100 blocks", cache={"block": "8KiB"})
    assert run.hits == rust.cases["hits"][0]


class Wrong:
    """Answers with something else than booleans."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def access_batch(self, ids: NDArray[np.uint32], writes: NDArray[np.bool_]) -> Any:
        return self.answer


class Odd:
    """Answers with a number."""

    def access(self, block: int, write: bool) -> Any:
        return 1


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (lambda _: object(), "expected an object with one of them"),
        (lambda _: Odd(), "returned 1, expected True or False"),
        (lambda _: Wrong(None), "returned None"),
        (lambda _: Wrong(np.zeros(3, dtype=np.bool_)), "shape"),
        (lambda _: Wrong(np.zeros(1000)), "float64"),
    ],
)
def test_a_policy_that_breaks_the_rules_is_refused(traces: Path, policy: Any, said: str) -> None:
    with pytest.raises(cachewright.PolicyError, match=said):
        cachewright.simulate_python(policy, "a.csv", 100, batch=1000)


def test_a_policy_s_own_error_passes_through(traces: Path) -> None:
    def broken(_: int) -> Lru:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cachewright.simulate_python(broken, "a.csv")
    with pytest.raises(cachewright.RunError, match="cancelled"):
        cachewright.simulate_python(Lru, "a.csv", progress=lambda *_: False)
