"""Features, responses by cache size and labels, from Python.

For: the shapes and names that trainers build on. Must never know: how replays work, which tests in
Rust cover.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import FIXED_DEVICES

import cachewright

STACK = f"""
[cache]
capacity = "4 blocks"
{FIXED_DEVICES}[replay]
interval = "30ms"
[[tenant]]
name = "walks"
trace = "walks.csv"
"""


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """Two walks over three blocks, a read per 10 ms."""
    lines = [f"1,R,{at % 3 * 4096},4096,{at * 10_000}\n" for at in range(6)]
    (tmp_path / "walks.csv").write_text("".join(lines))
    path = tmp_path / "stack.toml"
    path.write_text(STACK)
    return path


def test_segments_by_hand(stack: Path) -> None:
    found = cachewright.segments(stack, granules=2, steps=3)
    assert (found.interval_ns, found.step_ns, found.capacity_blocks) == (30_000_000, 10_000_000, 4)
    [tenant] = found.tenants
    assert tenant.name == "walks"
    assert tenant.features.dtype == np.float32
    np.testing.assert_array_equal(tenant.features, [[1, 0, 4096, 1]] * 6)
    assert tenant.response_ns.dtype == np.float64
    np.testing.assert_array_equal(tenant.response_ns[:2], np.full((2, 6), 5e6))
    np.testing.assert_array_equal(tenant.response_ns[2], [5e6] * 3 + [1e5] * 3)
    np.testing.assert_array_equal(tenant.hits, [[0] * 6, [0] * 6, [0, 0, 0, 1, 1, 1]])
    np.testing.assert_array_equal(tenant.requests, [1] * 6)
    np.testing.assert_array_equal(tenant.accesses, [1] * 6)
    assert tenant.reuse.shape == (2, 10)
    assert not tenant.reuse.any()
    np.testing.assert_array_equal(tenant.latency_ns(), [[5e6] * 3, [5e6, 5e6, 1e5]])
    np.testing.assert_array_equal(tenant.labels(), [[0.5, 0.5], [1.0, 1.0]])


def test_what_cannot_be_is_refused(stack: Path) -> None:
    with pytest.raises(cachewright.SpecError, match=r"`replay.loop`: found `closed`"):
        cachewright.segments(stack, settings={"replay.loop": "closed"})
    with pytest.raises(cachewright.SpecError, match=r"`granules`: found `0`"):
        cachewright.segments(stack, granules=0)
