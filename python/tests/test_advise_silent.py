"""Advice from recordings in which some tenants were silent, came or went.

For: `cachewright advise` on folders of recordings that are made here, without a server. Must never
know: how a case is replayed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import Command

from cachewright import SpecError, _native, traces
from cachewright.live import advising, recordings

BLOCK, READ, FLUSH = 4096, 0, 3
HOUR_NS = 3_600_000_000_000
FIRST = "2025-11-25T21-17-15.000Z.parquet"
SECOND = "2025-11-25T21-18-15.000Z.parquet"


def recorded(folder: Path, name: str, volumes: Sequence[str], accesses: Mapping[str, int]) -> None:
    """Write a recording of these volumes with so many reads of each.

    As a server's, it begins and ends with a flush of the first volume.
    """
    folder.mkdir(exist_ok=True)
    places = [place for place, one in enumerate(volumes) for _ in range(accesses.get(one, 0))]
    count = len(places) + 2
    volume = np.array([0, *places, 0], dtype=np.uint32)
    op = np.full(count, READ, dtype=np.uint8)
    op[0] = op[-1] = FLUSH
    is_read = op == READ
    offset = np.where(is_read, np.arange(count) * 7919 % 300 * BLOCK, 0).astype(np.uint64)
    length = np.where(is_read, BLOCK, 0).astype(np.uint64)
    times = np.arange(count, dtype=np.uint64) * np.uint64(1000)
    path = os.fspath(folder / name)
    writer = _native.TraceWriter(path, traces.NATIVE_FORMAT, {"times": "recorded"})
    writer.write(times, offset, length, op, volume, list(volumes))
    writer.finish()


def served(folder: Path, tenants: Mapping[str, str], partition: str = '"static"') -> Path:
    """Write the stack of a server of some tenants, with more keys of each; return its place."""
    path = folder / "stack.toml"
    tables = [
        f"[[tenant]]\nname = '{name}'\nbacking = '{name}.img'\n{more}\n"
        for name, more in tenants.items()
    ]
    path.write_text(
        f'[cache]\ncapacity = "100 blocks"\npartition = {partition}\n'
        '[serve]\ndevices = ["cache.img"]\nlisten = ["unix:live.sock"]\nrecord = "kept"\n'
        + "".join(tables)
    )
    return path


@pytest.mark.parametrize("silent", ["a", "b", "c"])
def test_a_silent_tenant_takes_no_part_and_is_said_so(tmp_path: Path, silent: str) -> None:
    busy = [name for name in ("a", "b", "c") if name != silent]
    recorded(tmp_path / "kept", FIRST, ["a", "b", "c"], dict.fromkeys(busy, 300))
    found = advising.advise(served(tmp_path, dict.fromkeys(("a", "b", "c"), "")))
    assert [tenant.name for tenant in found.present.tenants] == busy
    (note,) = [one for one in found.notes if one.startswith(silent)]
    assert note == (
        f"{silent}: found no reads or writes in the recordings; it takes no part, "
        "and the others have its space"
    )


@pytest.mark.parametrize("partition", ['"static"', '"auto"', '"shared"', '"icache-x"'])
def test_one_tenant_is_left_of_several(tmp_path: Path, partition: str, command: Command) -> None:
    recorded(tmp_path / "kept", FIRST, ["a", "b"], {"b": 400})
    stack = served(tmp_path, {"a": "", "b": ""}, partition)
    found = advising.advise(stack)
    assert [tenant.name for tenant in found.present.tenants] == ["b"]
    shown = command("advise", stack)
    assert shown.status == 0, shown.err
    assert "a: found no reads or writes in the recordings" in shown.out + shown.err


def test_recordings_in_which_all_were_silent_are_refused_with_a_sentence(tmp_path: Path) -> None:
    stack = served(tmp_path, {"a": "", "b": ""})
    recorded(tmp_path / "kept", FIRST, ["a", "b"], {})
    recorded(tmp_path / "kept", SECOND, ["a", "b"], {})
    expected = "found 2 recordings without reads and writes, expected some of a, b"
    with pytest.raises(SpecError, match=expected):
        advising.advise(stack)


def test_recordings_of_other_tenants_are_refused_by_name(tmp_path: Path) -> None:
    stack = served(tmp_path, {"a": "", "b": ""})
    recorded(tmp_path / "kept", FIRST, ["c", "d"], {"d": 10})
    expected = (
        "found 1 recording with reads and writes of d, expected some of the tenants of the stack: "
        "a, b"
    )
    with pytest.raises(SpecError, match=expected):
        advising.advise(stack)


def test_tenants_that_came_and_went_have_what_was_recorded_of_them(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    recorded(kept, FIRST, ["a", "gone"], {"a": 200, "gone": 50})
    recorded(kept, SECOND, ["b", "a"], {"b": 100})
    joined = recordings.joined(recordings.found(kept), HOUR_NS, tmp_path / "joined.parquet")
    assert (joined.volumes, joined.silent) == (("a", "gone", "b"), ())
    found = advising.advise(served(tmp_path, {"b": "", "new": "", "a": ""}))
    assert [tenant.name for tenant in found.present.tenants] == ["b", "a"]
    assert found.accesses == 300
    assert any(one.startswith("new: found no reads or writes") for one in found.notes)
    assert "gone: in the recordings, and no tenant of the stack; left out" in found.notes


def test_a_goal_of_a_silent_tenant_asks_for_no_partitioner(tmp_path: Path) -> None:
    recorded(tmp_path / "kept", FIRST, ["a", "b", "c"], {"a": 200, "b": 200})
    tenants = {"a": "", "b": "", "c": "goal_hit_ratio = 0.5"}
    found = advising.advise(served(tmp_path, tenants, '"soft-qos-x"'))
    assert found.present.partition.startswith("hull")
    assert any(
        "no tenant that takes part has a goal: `hull` in place of" in one for one in found.notes
    )
