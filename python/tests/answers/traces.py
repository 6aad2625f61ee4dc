"""Small traces: some with a pattern and a fixed seed, and one in every format.

For: the folder in which the program is asked. Must never know: what is asked. Offsets and lengths
are bytes, times of the first group are microseconds in the columns of Alibaba's traces.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import cachewright

KIB = 1024
OPS = ("read", "write", "trim")

TEXTS = {
    "alibaba": (
        "3,R,35786752,4096,594610\n4,W,20147618816,12288,594972\n3,F,0,0,594973\n"
        "3,T,0,4294967296,594974\n7,R,8192,512,594980\n"
    ),
    "tencent": (
        "1538323200,4247200,128,1,1058\n1538323200,138968800,8,0,1063\n"
        "1538323199,49413280,16,0,1063\n1538323201,8,1,1,7\n1538323202,16,1,0,7\n"
    ),
    "msr": (
        "128166465299039421,web,3,Read,32256,8192,112509\n"
        "128166465299119535,web,3,Read,182082715136,4096,32396\n"
        "128166465299134409,src,1,Write,182082719232,4096,17521\n"
        "128166465299134410,src,1,Write,0,512,1\n128166465299134411,web,3,Read,512,512,9\n"
    ),
    "systor17": (
        "Timestamp,Response,IOType,LUN,Offset,Size\n"
        "1456095145.133076000,0.000806000,R,0,899056122368,131072\n"
        "1456095145.126285000,,W,2,4256049987072,122880\n1456095145.2,0.5,W,2,0,512\n"
        "1456095145.3,0.000000001,R,0,512,512\n1456095146,1,R,0,1024,512\n"
    ),
    "spc": (
        "0,303567,3584,w,0.000000\n1,55590,3072,W,0.000000\n0,303035740,3584,r,0.026214\n"
        "19,1,512,R,0.5\n19,2,512,w,1.75\n"
    ),
    "fiu": (
        "467651 2522 kjournald 644661632 8 W 6 0 98b9cb7e1dd888f9dac2bf08af1c3cb2\n"
        "520943 2522 my program 688749776 8 R 6 1 c0ac18a3def2e055d9913d0431241ccc\n"
        "520944 1 sh 8 8 W 6 0 0\n520945 1 sh 16 8 W 6 0 1\n520946 1 sh 24 8 R 6 0 2\n"
    ),
    "blkparse": (
        "  8,16   5        1     0.000000000 18615  A   R 1444645666 + 256 <- (8,17) 32\n"
        "  8,16   5        2     0.000001850 18615  Q   R 1444645666 + 256 [java]\n"
        "259,1   2        3     1.000000517 17022  Q WFS 8 + 16 [x]\n"
        "259,1   2        6     1.000000700 17022  Q  DS 2048 + 4194304 [fstrim]\n"
        "8,16   2        7     2.000000800 17022  Q   R 64 + 8 [x]\n"
    ),
    "fio-iolog": (
        "fio version 3 iolog\n0 /dev/sdb add\n1 /dev/sdb open\n2 /dev/sdb write 64757760 4096\n"
        "5 /dev/sdb read 77474201600 4096\n6 /dev/sdb sync 0 0\n7 f trim 0 4096\n"
        "9 f read 4096 4096\n"
    ),
    "mqsim": (
        "938513000 4 264719034 16 0\n938828000 3 197570570 16 0\n938944000 4 8 8 1\n"
        "938944001 4 16 8 1\n938944002 0 0 1 1\n"
    ),
    "disksim": (
        "13.191135 0 264719034 8 0\n"
        "14.691135 1 8 8 1\n"
        "15.000000 0 24 1 9\n"
        "16.5 0 32 1 80000000\n"
        "17.25 2 64 8 1\n"
    ),
    "biosnoop": (
        "TIME(s)     COMM           PID    DISK      T SECTOR     BYTES  LAT(ms)\n"
        "0.000004    supervise      1950   xvda1     W 130925600   4096      0.74\n"
        "0.000178    tmux: server   1951   xvda1     WS 13092432   4096   0.10   0.61\n"
        "0.001469    jbd2/vda1-8    422    vda       R 4565264    331776    5.11\n"
        "0.002       kworker/3:1H   7      vda       FF -1         0         0.02\n"
        "0.004       sh             7      vda       R 8          512       0.5\n"
    ),
    "ftrace": (
        "# tracer: nop\n"
        "    fio-1234  [003] ..... 1000.000001: block_rq_issue: 259,0 WS 4096 () 20480000"
        "0 + 8 [fio]\n"
        "   <idle>-0   [003] d.h.. 1000.000101: block_rq_complete: 259,0 WS () 204800000 "
        "+ 8 [0]\n"
        "  my app-77   [000] d..1. 1000.5: block_rq_issue: 8,16 RA 4096 () 16 + 8 none,0,"
        "0 [my]\n"
        "       x-7    [000] .... 1000.6: block_rq_issue: 8,16 FF 0 () 0 + 0 [x]\n"
        "dd 7 [001] 1000.7: 1 block:block_rq_issue: 8,0 W 512 () 2048 + 1 [dd]\n"
        "dd 7 [001] 1000.8: block:block_rq_issue: 8,0 R 4096 () 64 + 8 [dd]\n"
    ),
    "etw": (
        "BeginHeader\n"
        "DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, "
        "ElapsedTime, DiskNum\n"
        "EndHeader\n"
        "DiskRead, 1508, sql.exe (1688), 1340, 0xfffffa8011434010, 0x1d02000000, 0x10000,"
        " 5071, 2\n"
        "CSwitch, 1509, Idle (   0), 0, 8\n"
        "DiskWrite, 2508.5, sql.exe (1688), 1340, 0xfffffa8011434010, 0x200, 8192, 1, 0\n"
        "DiskFlush, 2600, System (   4), 64, 0xfffffa8011434010, 12, 0, 0x060043\n"
        "DiskRead, 2601, sh (9), 4, 0x1, 0x400, 512, 1, 0\n"
        "DiskRead, 2602, sh (9), 4, 0x1, 0, 512, 1, 0\n"
    ),
    "iotrace": (
        "device.name,header.sid,header.timestamp,io.flush,io.lba,io.len,io.operation\n"
        "sda,1,50,false,193227744,8,Write\n"
        "sdb,2,60,true,0,0,Write\n"
        "sda,3,61,false,16,8,Read\n"
        "sda,4,70,,,,\n"
        "sda,5,71,false,2048,4096,Discard\n"
        "sda,6,72,false,8,1,Read\n"
    ),
    "k5cloud": (
        "ID,Timestamp,Type,Offset,Length\n"
        "12,0.000000,W,59049095168,4096\n"
        "7,0.000125,R,0,512\n"
        "12,3.5,R,59049095168,8192\n"
        "12,4,W,8192,512\n"
        "7,5.5,R,512,1024\n"
    ),
    "biotracer": (
        "4043872\t\t96\t\t49152\t\t5\t\t1398396860.168065791\t\t"
        "1398396860.168307510\t\t1398396860.16"
        "8322874\t\t1398396860.171732249\n"
        "40438720 16 8192 4 1398396860.2 1398396860.2 1398396860.3 1398396860.4\n"
        "8 1 512 4 1398396861 1398396861 1398396861 1398396861\n"
        "8 1 512 5 1398396862 1398396862 1398396862 1398396862\n"
        "16 1 512 4 1398396863 1398396863 1398396863 1398396863\n"
    ),
    "tectonic": (
        "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_nam"
        "e,rs_shard_id,op_count,host_name\n"
        "1702511878,12ce23-9e05,40,8388608,0,42350833,348786,getChunkData.NotInitialized,"
        "4,1,51\n"
        "1702511883,33964c-8bba,40,1953176,1007643,20053641,348786,putChunk.Permanent,7,1"
        ",15\n"
        "1702511884,12ce23-9e05,40,1706,1969744,42350833,348786,getChunkData.Permanent,4,"
        "2,26\n"
        "1702511885,12ce23-9e05,40,512,0,42350833,348786,deleteChunk,4,2,26\n"
        "1702511886,12ce23-9e05,40,512,4096,42350833,348786,getChunkData.Permanent,5,1,26"
        "\n"
    ),
    "thesios": (
        "filename,application,file_offset,op_type,cache_hit,request_io_size_bytes,start_t"
        "ime\n"
        "f00d,bigtable,8192,READ,1,4096,1705276800.25\n"
        "beef,spanner,0,WRITE,-1,100,1705276801\n"
        "f00d,bigtable,8192,READ,0,4096,1705276802\n"
        "f00d,bigtable,0,READ,0,1,1705276803\n"
        "beef,spanner,100,WRITE,-1,100,1705276804\n"
    ),
    "mooncake": (
        '{"timestamp": 0, "input_length": 600, "output_length": 52, "hash_ids": [46]}\n'
        '{"timestamp": 27482, "input_length": 9, "hash_ids": []}\n'
        '{"timestamp": 27483, "hash_ids": [5000000]}\n'
        '{"timestamp": 27484, "hash_ids": [46]}\n'
        '{"timestamp": 27484.5, "hash_ids": [3]}\n'
        '{"timestamp": 27485, "hash_ids": [7]}\n'
    ),
    "syscall": (
        "0,16344,5,0,32768,R\n1343,16345,2,15728640000,100,W\n1579,16344,5,0,0,S\n"
        "1580,16344,5,32768,4096,R\n1581,16344,6,0,1,W\n"
    ),
    "arc": "2097152000 64 0 0\n42 1 0 1\n20971520 8 0 2\n7 1 0 3\n8 2 0 4\n",
    "ids": "5000000\n42\n7\n42\n8\n",
    "csv": (
        "time_us,volume,op,offset_bytes,length_bytes\n0.000,a,W,845975552,131072\n"
        "35.081,a,R,84610662400,131072\n35.9,b,T,0,4096\n36,b,F,0,0\n37.5,a,R,512,512\n"
    ),
    "synth": (
        '[synth]\nseed = 7\n[[tenant]]\nname = "a"\ncount = 400\nread_share = 0.5\n'
        'arrival = { kind = "poisson", rate = "2000/s", on = "50ms", off = "20ms" }\n'
        'sizes = [{ size = "4KiB", weight = 3 }, { size = "64KiB", weight = 1 }]\n'
        'pattern = { kind = "zipf", span = "4MiB", alpha = 0.9 }\n'
        '[[tenant]]\nname = "b"\ncount = 300\nstart = "20ms"\nsize = "8KiB"\nread_share = 0.8\n'
        'arrival = { kind = "constant", rate = "3/ms" }\n[tenant.pattern]\nkind = "mix"\npart = [\n'
        '{ weight = 2, pattern = { kind = "loop", span = "1MiB" } },\n'
        '{ weight = 1, pattern = { kind = "hot-cold", span = "8MiB", hot_space = 0.1, '
        "hot_access = 0.9 } },\n"
        '{ weight = 1, pattern = { kind = "sequential", span = "8MiB", run = "256KiB" } }]\n'
    ),
}
"""A trace in every format that is text."""

BINARY = ("blktrace", "vscsi", "oracle-general", "oracle-general-op-ns", "lcs", "raw", "parquet")
"""The other formats."""


def _lines(rows: Iterator[tuple[int, str, int, int, int]]) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def _skewed(seed: int, requests: int, blocks: int, *, volumes: int = 1) -> str:
    """Return reads, writes, trims and flushes, most of them to few of the blocks."""
    rng = random.Random(seed)

    def rows() -> Iterator[tuple[int, str, int, int, int]]:
        for number in range(requests):
            kind = rng.random()
            op = "R" if kind < 0.62 else "W" if kind < 0.97 else "T" if kind < 0.985 else "F"
            block = int(blocks * rng.random() ** 3)
            length = 0 if op == "F" else 4 * KIB * rng.choice((1, 1, 2, 4))
            volume = int(volumes * rng.random())
            yield volume, op, block * 4 * KIB, length, number * 1000 + int(500 * rng.random())

    return _lines(rows())


def _scans(requests: int) -> str:
    """Return large requests one after another: two reads over a region, then a write over it."""
    region = 96

    def rows() -> Iterator[tuple[int, str, int, int, int]]:
        for number in range(requests):
            lap, place = divmod(number, region)
            op = "W" if lap % 3 == 2 else "R"
            yield 1, op, place * 64 * KIB, 64 * KIB, number * 2500

    return _lines(rows())


def _updates(writes: int) -> str:
    """Return writes of one page: three of four go round few pages, the others anywhere."""
    rng, hot, pages = random.Random(5), 15, 500

    def rows() -> Iterator[tuple[int, str, int, int, int]]:
        for at in range(pages + writes):
            place = at - pages
            anywhere = hot + rng.randrange(pages - hot)
            page = at if place < 0 else (place - place // 4) % hot if place % 4 else anywhere
            yield 1, "W", page * 4 * KIB, 4 * KIB, at * 100

    return _lines(rows())


def _files(count: int) -> str:
    """Return files that are written whole and trimmed when ten more have come."""

    def rows() -> Iterator[tuple[int, str, int, int, int]]:
        for number in range(count):
            yield 1, "W", number * 64 * KIB, 64 * KIB, number * 100
            if number >= 10:
                yield 1, "T", (number - 10) * 64 * KIB, 64 * KIB, number * 100 + 50

    return _lines(rows())


def _record(name: str, n: int) -> bytes:
    """Return a request in a format of records."""
    time, place = 5_633_898 + n, n * 10_000_000_000
    match name:
        case "blktrace":
            words = (0x6561_7407, n, 1000 + n, n * 20_000_000, 4096, 1 | 1 << (16 + n % 2), 77)
            return struct.pack("<IIQQIIIII4x", *words, 8 << 20 | 16, 0)
        case "vscsi":
            command, sector = (0x28, 0x2A)[n % 2], n * 20_000_000
            return struct.pack("<IIIHHQQ", n, 4096, 1, command, 256, sector, time * 1_000_000)
        case "oracle-general":
            return struct.pack("<IQIq", time, place, 4096, -1)
        case "oracle-general-op-ns":
            return struct.pack("<IQIBHq", time, place, 4096, 1 + n % 2, 3, -1)
        case "lcs":
            return struct.pack("<IQQIIq", time, place, 4096, 7 << 8 | 1 + n % 3, 600, -1)
    return struct.pack("<Q", (5_000_000, 42, 7, 42, 8, 9)[n])


def _binary(name: str) -> bytes:
    """Return a file of six requests."""
    mark = struct.pack("<Q", 0x1234_5678_9ABC_DEF0)
    head = mark + b"\x03" + bytes(8175) + mark if name == "lcs" else b""
    return head + b"".join(_record(name, n) for n in range(6))


def write(folder: Path) -> None:
    """Write every trace into a folder."""
    texts = {
        "a.csv": _skewed(1, 3000, 500),
        "b.csv": _skewed(2, 2500, 900),
        "volumes.csv": _skewed(3, 2000, 300, volumes=3),
        "scans.csv": _scans(700),
        "updates.csv": _updates(4000),
        "files.csv": _files(400),
        "load.csv": "1,W,0,2097152,0\n",
        "bad.csv": _skewed(4, 400, 200) + "1,R,4096\n1,X,0,4096,1\n1,W,0,8192,500000\n",
        "late.csv": "".join(sorted(_skewed(5, 600, 200).splitlines(keepends=True))),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    formats = folder / "formats"
    formats.mkdir()
    for name, text in TEXTS.items():
        (formats / name).write_text(text)
    for name in BINARY[:-1]:
        (formats / name).write_bytes(_binary(name))
    frame = pl.DataFrame(
        {
            "time_ns": [n * 1000 for n in range(6)],
            "offset_bytes": [n * 4_000_000_000 // 512 * 512 for n in range(6)],
            "length_bytes": [4096] * 6,
            "op": [OPS[n % 3] for n in range(6)],
            "volume": ["ab"[n % 2] for n in range(6)],
        }
    )
    cachewright.write_trace(frame, formats / "parquet", format="parquet")
