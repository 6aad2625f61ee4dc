"""Traces written by the command line: suffixes, parts, and what `trace info` says of volumes.

For: `cachewright trace` on small traces of every format. Must never know: how formats are read.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import struct
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from conftest import Command

import cachewright

COMPRESSED: dict[str, tuple[bytes, Callable[[bytes], bytes] | None]] = {
    "gz": (b"\x1f\x8b", gzip.decompress),
    "zst": (b"\x28\xb5\x2f\xfd", None),
    "xz": (b"\xfd7zXZ\0", lzma.decompress),
    "bz2": (b"BZh", bz2.decompress),
}


def test_the_suffix_of_the_file_to_write_is_its_format(traces: Path, command: Command) -> None:
    plain = (traces / "a.csv").read_bytes()
    for name, begins in (
        ("t.csv", plain[:30]),
        ("t.parquet", b"PAR1"),
        ("t.oracleGeneral", struct.pack("<I", 0)),
        ("u.oracleGeneral.bin", struct.pack("<I", 0)),
    ):
        answer = command("trace", "convert", "a.csv", name)
        assert answer.status == 0, answer.err
        assert (traces / name).read_bytes().startswith(begins)
    assert (traces / "t.csv").read_bytes() == plain
    oracle = (traces / "t.oracleGeneral").read_bytes()
    assert (traces / "u.oracleGeneral.bin").read_bytes() == oracle
    for suffix, (magic, undo) in COMPRESSED.items():
        for name, content in ((f"t.csv.{suffix}", plain), (f"t.oracleGeneral.{suffix}", oracle)):
            assert command("trace", "convert", "a.csv", name).status == 0
            written = (traces / name).read_bytes()
            assert written.startswith(magic)
            assert len(written) < len(content)
            assert undo is None or undo(written) == content
            bare = name.removesuffix(f".{suffix}")
            heads = [command("trace", "head", one, "-n", "4000").out for one in (name, bare)]
            assert heads[0] == heads[1]


def test_a_named_format_comes_before_the_suffix(traces: Path, command: Command) -> None:
    assert command("trace", "convert", "a.csv", "t.csv", "--to", "parquet").status == 0
    assert (traces / "t.csv").read_bytes().startswith(b"PAR1")
    assert command("trace", "convert", "t.csv", "t", "--to", "csv").status == 0
    assert (traces / "t").read_bytes() == (traces / "a.csv").read_bytes()


def test_every_format_that_is_written_has_a_suffix_in_the_help(
    folder: Path, command: Command
) -> None:
    shown = re.sub("\x1b\\[[0-9;]*m", "", command("trace", "--help").out)
    written = [entry for entry in cachewright.list("formats") if entry.writes]
    assert [entry.name for entry in written] == ["alibaba", "oracle-general", "parquet"]
    for entry in written:
        assert entry.suffixes
        assert [suffix for suffix in entry.suffixes if suffix not in shown] == [], shown


def test_csv_that_is_written_is_what_was_read(folder: Path, command: Command) -> None:
    text = (
        "3,R,35786752,4096,594610\n4,W,20147618816,12288,594972\n3,F,0,0,594973\n"
        "3,T,0,4294967296,594974\n7,R,8192,512,594980\n"
    )
    (folder / "in.csv").write_text(text)
    assert command("trace", "convert", "in.csv", "t.parquet").status == 0
    assert command("trace", "convert", "t.parquet", "out.csv").status == 0
    assert (folder / "out.csv").read_text() == text


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (["--from", "100s"], "a.csv: found no request from 100s on, expected a time up to 4s"),
        (["--from", "3999ms", "--to", "3999001us"], ""),
        (["--from", "100us", "--to", "200us"], "a.csv: found no request in the part selected"),
        (["--from", "2s", "--to", "2s"], "found a part from 2s to 2s"),
        (["--from", "100s", "--volume", "1"], "expected a time up to 4s"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_empty_part_is_refused_and_writes_nothing(
    traces: Path, command: Command, part: list[str], expected: str
) -> None:
    answer = command("trace", "slice", "a.csv", "s.csv", *part)
    if not expected:
        assert (traces / "s.csv").read_text() == (traces / "a.csv").read_text().splitlines(True)[-1]
        return
    assert answer.status == 2
    assert expected in answer.err
    assert answer.err.count("\n") == 1
    assert {path.name for path in traces.iterdir()} == {"a.csv", "b.csv"}


def test_a_trace_that_the_format_cannot_hold_is_not_written(folder: Path, command: Command) -> None:
    (folder / "f.csv").write_text("1,F,0,0,1\n1,T,0,4096,2\n")
    answer = command("trace", "convert", "f.csv", "f.oracleGeneral")
    assert answer.status == 2
    assert "no request that the format can hold (2 left out)" in answer.err
    assert {path.name for path in folder.iterdir()} == {"f.csv"}


# Traces of two volumes: text, their names, requests of the first by name.
VOLUMES: dict[str, tuple[str, list[str]]] = {
    "alibaba": ("3,R,0,4096,10\n4,W,8192,4096,20\n3,W,4096,4096,1000010\n", ["3", "4"]),
    "tencent": (
        "1538323200,0,8,0,3\n1538323200,16,8,1,4\n1538323201,8,8,1,3\n",
        ["3", "4"],
    ),
    "msr": (
        "128166465299039421,web,3,Read,0,4096,9\n128166465299039431,src,1,Write,8192,4096,9\n"
        "128166465309039421,web,3,Write,4096,4096,9\n",
        ["web_3", "src_1"],
    ),
    "systor17": (
        "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.0,0.1,R,0,0,4096\n"
        "1456095145.5,0.1,W,2,8192,4096\n1456095146.0,0.1,W,0,4096,4096\n",
        ["0", "2"],
    ),
    "spc": ("0,0,4096,r,0.0\n1,16,4096,w,0.5\n0,8,4096,w,1.0\n", ["0", "1"]),
    "fiu": (
        "0 1 sh 0 8 R 6 0 0\n500000000 1 sh 16 8 W 6 1 0\n1000000000 1 sh 8 8 W 6 0 1\n",
        ["6,0", "6,1"],
    ),
    "blkparse": (
        "  8,16   5        1     0.000000000 1  Q   R 0 + 8 [java]\n"
        "259,1   2        3     0.500000000 1  Q   W 16 + 8 [x]\n"
        "  8,16   5        2     1.000000000 1  Q   W 8 + 8 [java]\n",
        ["8,16", "259,1"],
    ),
    "fio-iolog": (
        "fio version 3 iolog\n0 /dev/sdb add\n0 f add\n0 /dev/sdb open\n0 f open\n"
        "0 /dev/sdb read 0 4096\n500 f write 8192 4096\n1000 /dev/sdb write 4096 4096\n",
        ["/dev/sdb", "f"],
    ),
    "disksim": ("0 3 0 8 1\n500.0 4 16 8 0\n1e3 3 8 8 0\n", ["3", "4"]),
    "biosnoop": (
        "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0 my app 7 sda R 0 4096 0.1\n"
        "0.5 sh 7 sdb W 16 4096 0.1\n1.0 sh 7 sda W 8 4096 0.1\n",
        ["sda", "sdb"],
    ),
    "ftrace": (
        " a b-7 [000] ..... 0.0: block_rq_issue: 8,0 R 4096 () 0 + 8 [a b]\n"
        " sh-7 [001] ..... 0.5: block_rq_issue: 8,16 W 4096 () 16 + 8 [sh]\n"
        " sh-7 [001] ..... 1.0: block_rq_issue: 8,0 W 4096 () 8 + 8 [sh]\n",
        ["8,0", "8,16"],
    ),
    "etw": (
        "DiskRead, 0, a.exe (1), 1, 0x1, 0x0, 0x1000, 1, 0\n"
        "DiskWrite, 500000, a.exe (1), 1, 0x1, 0x2000, 0x1000, 1, 1\n"
        "DiskWrite, 1000000, a.exe (1), 1, 0x1, 4096, 4096, 1, 0\n",
        ["0", "1"],
    ),
    "iotrace": (
        "device.name,header.timestamp,io.lba,io.len,io.operation\nsda,0,0,8,Read\n"
        "sdb,500000000,16,8,Write\nsda,1000000000,8,8,Write\n",
        ["sda", "sdb"],
    ),
    "k5cloud": (
        "ID,Timestamp,Type,Offset,Length\n7,0,R,0,4096\n9,0.5,W,8192,4096\n7,1,W,4096,4096\n",
        ["7", "9"],
    ),
    "tectonic": (
        "op_time,block_id,io_size,io_offset,user_name,op_name\n"
        "0,a,4096,0,ads,getChunkData.Permanent\n0.5,a,4096,8192,web,putChunk.Permanent\n"
        "1,a,4096,4096,ads,putChunk.Permanent\n",
        ["ads", "web"],
    ),
    "thesios": (
        "filename,application,file_offset,request_io_size_bytes,op_type,start_time\n"
        "f,spanner,0,4096,READ,0.0\nf,bigtable,8192,4096,WRITE,0.5\n"
        "f,spanner,4096,4096,WRITE,1.0\n",
        ["spanner", "bigtable"],
    ),
    "mqsim": ("0 3 0 8 1\n500000000 4 16 8 0\n1000000000 3 8 8 0\n", ["3", "4"]),
    "syscall": ("0,1,5,0,4096,R\n500000,1,6,8192,4096,W\n1000000,1,5,4096,4096,W\n", ["5", "6"]),
    "csv": (
        "time_us,volume,op,offset_bytes,length_bytes\n0,a,R,0,4096\n500000,b,W,8192,4096\n"
        "1000000,a,W,4096,4096\n",
        ["a", "b"],
    ),
    "synth": (
        "[synth]\nseed = 1\n"
        + "".join(
            f'[[tenant]]\nname = "{name}"\ncount = {count}\nsize = "4KiB"\nread_share = 0.0\n'
            'arrival = { kind = "constant", rate = "2/s" }\n'
            'pattern = { kind = "sequential", span = "1MiB" }\n'
            for name, count in (("a", 2), ("b", 1))
        ),
        ["a", "b"],
    ),
}


def volumes_of(folder: Path, name: str) -> list[str]:
    """Write the trace of a format; return the names of its two volumes."""
    if name == "parquet":
        frame = pl.DataFrame(
            {
                "time_ns": [0, 500_000_000, 1_000_000_000],
                "offset_bytes": [0, 8192, 4096],
                "length_bytes": [4096] * 3,
                "op": ["read", "write", "write"],
                "volume": ["web.3", "hm.0", "web.3"],
            }
        )
        cachewright.write_trace(frame, folder / "t", format="parquet")
        return ["web.3", "hm.0"]
    if name == "blktrace":
        events = ((0, 16, 0, 0), (500_000_000, 17, 16, 1), (1_000_000_000, 16, 8, 1))
        content = b""
        for number, (time_ns, minor, sector, write) in enumerate(events):
            action = 1 | 1 << (16 + write)
            content += struct.pack("<IIQQI", 0x65617407, number, time_ns, sector, 4096)
            content += struct.pack("<IIIIHH", action, 77, 8 << 20 | minor, 0, 0, 0)
        (folder / "t").write_bytes(content)
        return ["8,16", "8,17"]
    text, names = VOLUMES[name]
    (folder / "t").write_text(text)
    return names


@pytest.mark.parametrize("name", [*VOLUMES, "blktrace", "parquet"])
def test_info_shows_a_row_per_volume(folder: Path, command: Command, name: str) -> None:
    names = volumes_of(folder, name)
    answer = command("trace", "info", "t", "--format", name)
    assert answer.status == 0, answer.err
    table = answer.out[answer.out.index("\nvolumes\n") :].splitlines()
    rows = {words[0]: words for words in (line.split() for line in table) if words}
    assert [rows[one][1] for one in names] == ["2", "1"]
    document = json.loads(command("trace", "info", "t", "--format", name, "--json").out)
    volumes = {one["name"]: one for one in document["volumes"]}
    assert list(volumes) == names
    for key in ("requests", "writes", "read_bytes", "write_bytes", "distinct_blocks"):
        assert sum(one[key] for one in volumes.values()) == document[key], key
    for key in ("working_set_bytes", "written_working_set_bytes", "rate_per_s"):
        assert sum(one[key] for one in volumes.values()) == pytest.approx(document[key]), key
    first = volumes[names[0]]
    assert first["working_set_bytes"] == 2 * 4096
    assert rows[names[0]][-2:] == ["8KiB", cachewright.words.significant(first["rate_per_s"])]


def test_info_lists_all_volumes_as_json_and_the_busiest_as_rows(
    folder: Path, command: Command
) -> None:
    lines = [f"{v},R,{n * 4096},4096,{v * 100 + n}\n" for v in range(70) for n in range(v + 1)]
    (folder / "many.csv").write_text("".join(lines))
    answer = command("trace", "info", "many.csv", "--format", "alibaba")
    assert answer.status == 0, answer.err
    assert "50 smaller volumes; --json has all" in answer.out
    words = ["trace", "info", "many.csv", "--format", "alibaba", "--json"]
    volumes = json.loads(command(*words).out)["volumes"]
    assert [one["requests"] for one in volumes] == list(range(70, 0, -1))


@pytest.mark.parametrize("verb", ["slice", "convert"])
def test_the_file_to_write_may_be_named_by_out(traces: Path, command: Command, verb: str) -> None:
    for words in (("--out", "one.csv", "a.csv"), ("a.csv", "--out=two.csv"), ("a.csv", "it.csv")):
        answer = command("trace", verb, *words)
        assert answer.status == 0, answer.err
    texts = {(traces / name).read_text() for name in ("one.csv", "two.csv", "it.csv")}
    assert texts == {(traces / "a.csv").read_text()}


def test_head_shows_the_first_requests_as_text_json_and_csv(traces: Path, command: Command) -> None:
    frame = cachewright.read_trace("a.csv", first=2)
    assert json.loads(command("trace", "head", "a.csv", "--first", 2, "--json").out) == [
        {**row, "op": str(row["op"])} for row in frame.to_dicts()
    ]
    text = command("trace", "head", "a.csv", "-n", 2, "--csv").out
    columns = ("time_ns", "op", "offset_bytes", "length_bytes", "volume")
    assert text == frame.select(columns).write_csv()
    assert len(command("trace", "head", "a.csv", "--count", 2).out.splitlines()) == 3


def test_a_time_is_said_in_the_unit_that_it_was_given_in(traces: Path, command: Command) -> None:
    answer = command("trace", "slice", "a.csv", "s.csv", "--from", "100s")
    assert "found no request from 100s on" in answer.err
    answer = command("trace", "slice", "a.csv", "s.csv", "--from", "100s", "--to", "1500ms")
    assert "found a part from 100s to 1500ms" in answer.err
