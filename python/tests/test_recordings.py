"""Which files and volumes make a trace: parts of one recording, tenants by volume, objects, units.

For: the command line, stacks and Python alike. Must never know: how files are merged. Hits are
checked by an LRU of these tests' own.
"""

from __future__ import annotations

import json
import struct
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from conftest import Command

import cachewright as cw

BLOCK = 4096
MIXED = "2 volumes in one tenant; --by-volume"


def lru_hits(accesses: Iterable[object], capacity: int) -> int:
    held: OrderedDict[object, None] = OrderedDict()
    hits = 0
    for access in accesses:
        hits += access in held
        held[access] = None
        held.move_to_end(access)
        if len(held) > capacity:
            held.popitem(last=False)
    return hits


def rows(requests: Sequence[tuple[int, str, int]]) -> str:
    """Return reads of single blocks as Alibaba's columns: microseconds, volume, block."""
    return "".join(f"{v},R,{b * BLOCK},{BLOCK},{time}\n" for time, v, b in requests)


def parts(folder: Path) -> list[Path]:
    """Write one recording of 3,000 requests in three files, as three CPUs recorded it."""
    requests = [(5_000 + n * 10, str(n % 2), n * n * 7919 % 97) for n in range(3000)]
    paths = []
    for cpu in range(3):
        path = folder / f"x.blktrace.{cpu}"
        path.write_text(rows(requests[cpu::3]))
        paths.append(path)
    (folder / "whole.csv").write_text(rows(requests))
    return paths


def hits(result: cw.Result) -> int:
    return result.answer.cases[0].total.hits


def test_files_of_one_recording_are_one_trace_everywhere(tmp_path: Path, command: Command) -> None:
    paths = parts(tmp_path)
    whole = tmp_path / "whole.csv"
    expected = cw.run(whole, settings={"capacity": "20 blocks"})
    requests = [line.split(",") for line in whole.read_text().splitlines()]
    assert hits(expected) == lru_hits(((r[0], r[2]) for r in requests), 20)
    found = cw.info(paths)
    assert (found.requests, found.span_ns) == (3000, 2999 * 10_000)
    assert sorted(volume.name for volume in found.volumes) == ["0", "1"]
    pattern = str(tmp_path / "x.blktrace.*")
    stack = {
        "cache": {"capacity": "20 blocks"},
        "tenant": [{"name": "a", "trace": [str(path) for path in paths]}],
    }
    for trace in (paths, cw.Trace(paths), pattern, stack):
        assert hits(cw.run(trace, settings={"capacity": "20 blocks"})) == hits(expected)
    (tmp_path / "s.toml").write_text(
        '[cache]\ncapacity = "20 blocks"\n[[tenant]]\nname = "a"\ntrace = "x.blktrace.*"\n'
    )
    assert hits(cw.run(tmp_path / "s.toml")) == hits(expected)
    assert cw.read_trace(paths).equals(cw.read_trace(whole))
    answer = command("trace", "merge", *paths, "--out", tmp_path / "m.parquet")
    assert answer.status == 0
    assert "x.blktrace.0 to x.blktrace.2 are read as one recording" in answer.err
    assert cw.read_trace(tmp_path / "m.parquet").equals(cw.read_trace(whole))
    answer = command("run", *paths, "--capacity", "20 blocks", "--json")
    assert json.loads(answer.out)["cases"][0]["total"]["hits"] == hits(expected)
    answer = command("trace", "info", *paths, "--json")
    assert json.loads(answer.out)["requests"] == 3000


def test_files_that_differ_in_a_number_are_named_and_joined_when_asked(
    tmp_path: Path, command: Command
) -> None:
    for hour, name in enumerate(("h00.csv", "h01.csv")):
        (tmp_path / name).write_text(rows([(hour * 1000 + n, "1", n % 3) for n in range(6)]))
    paths = [tmp_path / "h00.csv", tmp_path / "h01.csv"]
    answer = command("run", *paths, "--capacity", "9 blocks")
    assert "h00.csv and h01.csv differ only in a number" in answer.err
    assert "2 tenants" in answer.out
    answer = command("run", *paths, "--capacity", "9 blocks", "--join")
    assert "1 tenant, 12 requests" in answer.out
    assert "differ only" not in answer.err
    own, common = tmp_path / "own.parquet", tmp_path / "common.parquet"
    assert command("trace", "merge", *paths, "--out", own).status == 0
    assert cw.info(own).span_ns == 5_000
    words = ["trace", "merge", *paths, "--out", common, "--clock", "common"]
    assert command(*words).status == 0
    assert cw.info(common).span_ns == 1_005_000
    assert sorted(v.name for v in cw.info(common).volumes) == ["h00/1", "h01/1"]
    joined = tmp_path / "joined.parquet"
    assert command("trace", "merge", *paths, "--out", joined, "--join").status == 0
    assert [v.name for v in cw.info(joined).volumes] == ["1"]
    answer = command("trace", "merge", *paths, "--out", joined, "--join", "--start", "h00=1s")
    assert answer.status == 2
    assert "expected --no-join" in answer.err


def test_several_volumes_in_one_tenant_are_said_and_parted_when_asked(
    tmp_path: Path, command: Command
) -> None:
    two = tmp_path / "two.csv"
    requests = [(n, "49"[n % 2], n * n % 13) for n in range(400)]
    two.write_text(rows(requests))
    for words in (["run"], ["compare"], ["mrc"], ["wa"]):
        answer = command(*words, two)
        assert MIXED in answer.err or answer.status != 0, answer.err
        assert words == ["wa"] or answer.status == 0
    answer = command("run", two, "--capacity", "8 blocks", "--by-volume")
    assert "2 tenants" in answer.out
    assert MIXED not in answer.err
    result = cw.run(cw.Trace(two, by_volume=True), settings={"capacity": "8 blocks"})
    assert [tenant.name for tenant in result.answer.tenants] == ["two/4", "two/9"]
    (tmp_path / "s.toml").write_text(
        '[cache]\ncapacity = "8 blocks"\n[[tenant]]\nname = "t"\ntrace = "two.csv"\n'
        "by_volume = true\n"
    )
    found = cw.run(tmp_path / "s.toml")
    assert [tenant.name for tenant in found.answer.tenants] == ["t/4", "t/9"]
    assert hits(found) == hits(result) == lru_hits(((v, b) for _, v, b in requests), 8)


def test_some_volumes_are_picked_by_name(tmp_path: Path, command: Command) -> None:
    three = tmp_path / "three.csv"
    three.write_text(rows([(n, str(n % 3), n) for n in range(9)]))
    assert cw.info(cw.Trace(three, volume="0,2")).requests == 6
    assert len(cw.read_trace(cw.Trace(three, volume="0,2"))) == 6
    stack = {"cache": {"capacity": "4 blocks"}}
    for wanted in ([0, 2], "0,2"):
        tenant = {"name": "a", "trace": str(three), "volume": wanted}
        assert cw.run({**stack, "tenant": [tenant]}).answer.workload.requests == 6
    answer = command("trace", "info", three, "--volume", "0,7")
    assert answer.status == 2
    assert "found `7`, expected a volume of the trace" in answer.err
    answer = command("trace", "head", three, "--volume", "7")
    assert answer.status == 2
    assert "found `7`, expected a volume of the trace" in answer.err


def test_a_device_with_a_comma_in_its_name_is_one_volume(tmp_path: Path) -> None:
    text = "".join(
        f"  8,{minor}    0    {n} 0.00000{n} 1 Q R {8 * n} + 8 [x]\n"
        for n, minor in enumerate((0, 16, 32), 1)
    )
    (tmp_path / "t.txt").write_text(text)
    for volume, requests in (("8,0", 1), ("8,0,8,32", 2)):
        trace = cw.Trace(tmp_path / "t.txt", format="blkparse", volume=volume)
        assert cw.info(trace).requests == requests


def objects(path: Path, ids: Sequence[int], size: int) -> Path:
    records = [struct.pack("<IQIq", n, id, size, -1) for n, id in enumerate(ids)]
    path.write_bytes(b"".join(records))
    return path


@pytest.mark.parametrize("size", [100, 3000, 4096])
def test_objects_are_counted_and_not_their_blocks(
    tmp_path: Path, command: Command, size: int
) -> None:
    ids = [1 + n * n * 31 % 53 for n in range(600)]
    path = objects(tmp_path / "o.oracleGeneral", ids, size)
    expected = lru_hits(ids, 10)
    result = cw.run(path, settings={"capacity": "10 blocks"})
    assert hits(result) == expected
    assert "taken for numbers of objects" in result.answer.tenants[0].notes[0]
    said = cw.Trace(path, options={"address_unit": "object"})
    assert hits(cw.run(said, settings={"capacity": "10 blocks"})) == expected
    found = cw.info(path)
    assert found.counts_objects
    assert found.distinct_blocks == len(set(ids))
    assert found.working_set_bytes == len(set(ids)) * size
    answer = command("trace", "info", path)
    assert f"({len(set(ids))} objects)" in answer.out
    answer = command("run", path, "--capacity", "64KiB")
    assert answer.status == 0
    assert "so that they share blocks" in answer.err


def test_sectors_stay_addresses(tmp_path: Path) -> None:
    ids = [8 * (n * n * 31 % 53) for n in range(600)]
    path = objects(tmp_path / "s.oracleGeneral", ids, 4096)
    result = cw.run(path, settings={"capacity": "10 blocks"})
    assert hits(result) == lru_hits(ids, 10)
    assert result.answer.tenants[0].notes == ()
    assert not cw.info(path).counts_objects
    dense = objects(tmp_path / "d.oracleGeneral", [n % 50 for n in range(600)], 4096)
    told = cw.Trace(dense, options={"address_unit": "512B"})
    assert not cw.info(told).counts_objects


def test_bytes_in_place_of_sectors_are_asked_for(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "tencent.csv"
    path.write_text("".join(f"15383232{n:02},{n * 9 * BLOCK},4096,0,7\n" for n in range(60)))
    answer = command("run", path, "--capacity", "8 blocks")
    assert "`offset_unit=B` and `length_unit=B` say so" in answer.err
    words = ["--option", "offset_unit=B", "--option", "length_unit=B"]
    answer = command("trace", "info", path, *words, "--json")
    found = json.loads(answer.out)
    assert (found["working_set_bytes"], found["notes"]) == (60 * BLOCK, [])


def test_times_that_a_format_cannot_hold_begin_at_zero_and_that_is_said(
    tmp_path: Path, command: Command
) -> None:
    ticks = [128166372003061629 + n * 10_000_000 for n in (1, 0, 5)]
    msr = tmp_path / "msr.csv"
    msr.write_text("".join(f"{time},hm,0,Read,{time % 7 * 4096},4096,9\n" for time in ticks))
    target = tmp_path / "m.oracleGeneral"
    answer = command("trace", "convert", msr, target)
    assert answer.status == 0
    assert "were moved back by 12816637200 s" in answer.err
    written = cw.Trace(target, format="oracle-general")
    assert cw.read_trace(written)["time_ns"].to_list() == [10**9, 0, 5 * 10**9]
    assert cw.write_trace(msr, target, overwrite=True).moved_s == 12816637200
    late = ticks[0] + 2**31 * 10_000_000
    msr.write_text(msr.read_text() + f"{late},hm,0,Read,0,4096,9\n")
    answer = command("trace", "convert", msr, target, "--force")
    assert answer.status == 2
    assert f"found time {late // 10_000_000} s in request 4, expected times from 0 s" in answer.err


def test_a_trace_says_behind_its_name_how_it_is_opened(tmp_path: Path, command: Command) -> None:
    rows = "".join(f"{n * 0.5} 0 {n * 8} 8 1\n" for n in range(9))
    ms = tmp_path / "ms.txt"
    ms.write_text(rows)
    table = tmp_path / "t.csv"
    table.write_text("a;b;c\n0;0;4096\n1;8192;4096\n2;0;4096\n")
    how = "format=csv,columns=time=a,offset=b,length=c,time_unit=s,offset_unit=B,length_unit=B"
    both = (f"{ms}:format=mqsim,time_unit=ms", f"{table}:{how},default_op=read")
    answer = command("run", *both, "--capacity", "16KiB", "--json")
    assert answer.status == 0, answer.err
    tenants = json.loads(answer.out)["tenants"]
    assert [(one["name"], one["format"]) for one in tenants] == [("ms", "mqsim"), ("t", "csv")]
    assert [one["span_ns"] for one in tenants] == [4_000_000, 2_000_000_000]
    info = command("trace", "info", both[1], "--json")
    assert json.loads(info.out)["requests"] == 3
    merged = tmp_path / "m.parquet"
    assert command("trace", "merge", f"{ms}:format=disksim", table, "--out", merged).status == 2
    answer = command("trace", "merge", *both, "--out", merged)
    assert "expected `format` alone" in answer.err
    answer = command("trace", "merge", f"{ms}:format=disksim", "--no-join", "--out", merged)
    assert answer.status == 0, answer.err
    wrong = command("run", f"{ms}:format=msqim", "--capacity", "16KiB")
    assert wrong.status == 2
    assert "nearest is `mqsim`" in wrong.err
    odd = tmp_path / "a:format=csv"
    odd.write_text("3,R,0,4096,1\n")
    assert json.loads(command("trace", "info", odd, "--json").out)["format"] == "alibaba"


@pytest.mark.parametrize("name", ["run", "mrc", "wa"])
def test_a_stack_file_takes_no_options_of_a_trace(
    name: str, tmp_path: Path, command: Command
) -> None:
    (tmp_path / "t.csv").write_text(rows([(0, "1", 0)]))
    stack = tmp_path / "s.toml"
    stack.write_text('[[tenant]]\nname = "t"\ntrace = "t.csv"\n')
    answer = command(name, stack, "--volume", "2")
    assert answer.status == 2
    assert "--volume: found a stack file, which says itself" in answer.err
    answer = command(name, stack, tmp_path / "t.csv")
    assert answer.status == 2
    assert "and 1 more, expected one stack" in answer.err
