"""The life of a block of a served volume, from what the server recorded.

For: `cachewright explain` with a server in a process of its own. Must never know: how a cache
decides.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Command
from test_advise import BLOCK, READ, WRITE, Recorded

from cachewright import SpecError
from cachewright.live import explaining, watching


@pytest.fixture
def recorded(tmp_path: Path, command: Command) -> Iterator[Recorded]:
    """Give a server that records, has written and read block 0 of `data` and then other blocks."""
    found = Recorded(tmp_path, command)
    found.ask(found.clients[0], WRITE, 0)
    found.ask(found.clients[0], READ, 0)
    found.load(3, 600)
    yield found
    found.stop()


def test_a_block_is_explained_from_its_admission_to_its_eviction(
    recorded: Recorded, command: Command
) -> None:
    shown = command("explain", recorded.url, "data@17", "--json")
    assert shown.status == 0, shown.err
    found = json.loads(shown.out)
    assert (found["volume"], found["offset_bytes"], found["block_bytes"]) == ("data", 0, BLOCK)
    assert (found["accesses"], found["hits"], found["is_cached"]) == (2, 1, False)
    first, hit, left = found["events"]
    assert first["event"] == "admitted by a write"
    assert first["why"] == "missed: not used before in the recordings"
    assert hit["event"] == "read hit"
    assert left["event"] == "evicted and written back"
    assert left["why"].startswith("for what data has ")
    assert first["time_ns"] < hit["time_ns"] < left["time_ns"] <= found["span_ns"]
    text = command("explain", recorded.path, "data@4095")
    assert text.status == 0, text.err
    assert "evicted and written back" in text.out
    assert "1 hit of 2 reads and writes" in text.out
    rows = csv.DictReader(io.StringIO(command("explain", recorded.path, "data@0", "--csv").out))
    assert [row["event"] for row in rows] == [one["event"] for one in found["events"]]


def test_hits_of_all_blocks_are_those_of_the_server(recorded: Recorded) -> None:
    status = watching.status(recorded.url)
    server = next(one for one in status.tenants if one.name == "more").blocks
    folder = recorded.path.parent / "kept"
    explaining.explain(recorded.url, "more@0")
    files = sorted(folder.glob("*.parquet"))
    lives = [
        explaining.explain(recorded.path, f"more@{block * BLOCK}", recorded=files)
        for block in range(400)
    ]
    assert sum(one.accesses for one in lives) == server.reads + server.writes
    assert sum(one.hits for one in lives) == server.read_hits + server.write_hits


def test_requests_of_volumes_that_the_stack_has_no_more_are_left_out_and_counted(
    recorded: Recorded, command: Command
) -> None:
    whole = explaining.explain(recorded.url, "data@0")
    head, *tenants = recorded.path.read_text().split("[[tenant]]")
    alone = recorded.path.with_name("alone.toml")
    alone.write_text(head + "".join(f"[[tenant]]{one}" for one in tenants if '"data"' in one))
    kept = sorted(str(path) for path in (recorded.path.parent / "kept").glob("*.parquet"))
    options = [word for path in kept for word in ("--recording", path)]
    found = json.loads(command("explain", alone, "data@0", *options, "--json").out)
    assert (whole.requests_left_out, found["accesses"]) == (0, whole.accesses)
    assert found["requests"] + found["requests_left_out"] == whole.requests
    assert found["requests_left_out"] > 0
    text = command("explain", alone, "data@0", *options).out
    assert f"{found['requests_left_out']} requests of volumes that the stack does not have" in text


def test_what_cannot_be_explained_is_refused(recorded: Recorded, command: Command) -> None:
    for block, expected in [
        ("data", "found `data`, expected VOLUME@OFFSET"),
        ("none@0", "found the volume `none`, expected the name of a `[[tenant]]` of"),
    ]:
        refused = command("explain", recorded.url, block)
        assert refused.status == 2
        assert expected in refused.err
    refused = command("explain", recorded.path, "data@0", "--recording", "none.parquet")
    assert refused.status == 2
    assert "none.parquet" in refused.err
    stack = recorded.path.parent / "other.toml"
    stack.write_text(
        recorded.path.read_text().replace('record = "kept"', "").replace('monitor = "0"', "")
    )
    with pytest.raises(SpecError, match="found nothing that was recorded"):
        explaining.explain(stack, "data@0")
