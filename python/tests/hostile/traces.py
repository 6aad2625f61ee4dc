"""Bad traces: of every format, damaged, out of range, packed wrongly, or not a trace at all."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from collections.abc import Iterator

from hostile.case import Case, text

GOOD = {
    "alibaba": "1,R,4096,4096,1000\n",
    "tencent": "1538323200,12910952,128,0,1063\n",
    "msr": "128166372003061629,usr,0,Read,7014609920,24576,41286\n",
    "systor17": "Timestamp,Response,IOType,LUN,Offset,Size\n1456000000.1,0.01,R,1,4096,4096\n",
    "spc": "0,20941264,8192,W,0.551706\n",
    "fiu": "89966423915 4892 syslogd 904265560 8 W 6 0 531e779f71bbcc3\n",
    "blkparse": "  8,0    1        1     0.000000000   377  D   R 1000 + 8 [a]\n",
    "mqsim": "0 0 1000 8 1\n",
    "syscall": "1000,1,2,4096,4096,R\n",
    "disksim": "13.191135 0 264719034 8 0\n",
    "biosnoop": "0.000178 tmux: server 1951 xvda1 WS 13092432 4096 0.10 0.61\n",
    "ftrace": " fio-7 [003] ..... 1000.000001: block_rq_issue: 259,0 WS 4096 () 2048 + 8 [fio]\n",
    "etw": "DiskRead, 1508, sql.exe (1688), 1340, 0xfffffa80, 0x1d020000, 0x10000, 5071, 2\n",
    "iotrace": '{"header":{"timestamp":"50"},"io":{"lba":"8","len":8,"operation":"Read"}}\n',
    "k5cloud": "12,0.5,W,59049095168,4096\n",
    "biotracer": "8 1 512 4 1398396861 1398396861 1398396861 1398396861\n",
    "tectonic": "7 0 4096 1632.5 2 1 9 0 1 77\n",
    "mooncake": '{"timestamp": 5, "hash_ids": [46, 47]}\n',
}
# Per format: a line that is wrong in one field.
BAD_LINES = {
    "alibaba": {
        "too few fields": "1,R,4096,4096\n",
        "too many fields": "1,R,4096,4096,1000,7\n",
        "unknown operation": "1,X,4096,4096,1000\n",
        "negative offset": "1,R,-4096,4096,1000\n",
        "offset is no number": "1,R,abc,4096,1000\n",
        "offset beyond 2^63": "1,R,9223372036854775808,4096,1000\n",
        "offset beyond 2^64": "1,R,99999999999999999999,4096,1000\n",
        "end beyond 2^63": "1,R,9223372036854775807,4096,1000\n",
        "length of 4 EiB": "1,R,4096,4611686018427387904,1000\n",
        "length of 1 TiB": "1,R,4096,1099511627776,1000\n",
        "length is no number": "1,R,4096,4k,1000\n",
        "time is no number": "1,R,4096,4096,now\n",
        "time overflows": "1,R,4096,4096,99999999999999999\n",
        "empty field": "1,R,,4096,1000\n",
        "a control character": "1,\x01,4096,4096,1000\n",
    },
    "tencent": {
        "unknown operation": "1538323200,12910952,128,7,1063\n",
        "sector overflows": "1538323200,18446744073709551615,128,0,1063\n",
        "size overflows": "1538323200,0,18446744073709551615,0,1063\n",
    },
    "msr": {
        "unknown operation": "128166372003061629,usr,0,Reed,7014609920,24576,41286\n",
        "disk is no number": "128166372003061629,usr,a,Read,7014609920,24576,41286\n",
        "too few fields": "128166372003061629,usr,0,Read,7014609920\n",
    },
    "systor17": {
        "time is no number": "noon,0.01,R,1,4096,4096\n",
        "negative size": "1456000000.1,0.01,R,1,4096,-1\n",
        "infinite time": "inf,0.01,R,1,4096,4096\n",
    },
    "spc": {
        "unknown operation": "0,20941264,8192,Q,0.551706\n",
        "time is not finite": "0,20941264,8192,W,nan\n",
        "sector overflows": "0,99999999999999999999,8192,W,0.5\n",
    },
    "fiu": {
        "unknown operation": "89966423915 4892 syslogd 904265560 8 Z 6 0 531e779f71bbcc3\n",
        "too few fields": "89966423915 4892 syslogd\n",
    },
    "mqsim": {
        "unknown type": "0 0 1000 8 3\n",
        "sector is no number": "0 0 x 8 1\n",
    },
    "disksim": {
        "flags are no number": "13.2 0 264719034 8 read\n",
        "a time before zero": "-13.2 0 264719034 8 0\n",
        "blocks overflow": "13.2 0 18446744073709551615 8 0\n",
    },
    "biosnoop": {
        "no latency": "0.000178 tmux: server 1951 xvda1 WS 13092432 4096\n",
        "unknown letters": "0.000178 tmux: server 1951 xvda1 QQ 13092432 4096 0.10\n",
        "process is no number": "0.000178 tmux: server x xvda1 W 13092432 4096 0.10\n",
    },
    "ftrace": {
        "no sectors": " fio-7 [003] ..... 1000.1: block_rq_issue: 259,0 WS 4096 () 2048 [fio]\n",
        "a device without minor": " x-7 [003] 1000.1: block_rq_issue: 259 WS 4096 () 8 + 8 [x]\n",
    },
    "etw": {
        "offset is no number": "DiskRead, 1508, s (1), 1340, 0xf, 0xg, 0x10000, 5071, 2\n",
        "size beyond 2^64": "DiskRead, 1508, s (1), 1340, 0xf, 0, 0x1ffffffffffffffff, 5071, 2\n",
        "cut off": "DiskWrite, 1508, s (1), 1340\n",
    },
    "iotrace": {
        "no JSON": '{"header":{"timestamp":"50"},"io":{"lba":"8","len":8\n',
        "unknown operation": '{"header":{"timestamp":"5"},"io":{"len":8,"operation":"Erase"}}\n',
        "sector is no number": '{"header":{},"io":{"lba":"x","len":8,"operation":"Read"}}\n',
    },
    "k5cloud": {
        "unknown operation": "12,0.5,T,59049095168,4096\n",
        "no length": "12,0.5,W,59049095168,0\n",
        "volume is no number": "vm12,0.5,W,59049095168,4096\n",
    },
    "biotracer": {
        "bytes are not the sectors": "8 1 4096 4 1398396861 1398396861 1398396861 1398396861\n",
        "a time is missing": "8 1 512 4 1398396861 1398396861 1398396861\n",
    },
    "tectonic": {
        "a count of 0": "7 0 4096 1632.5 2 1 9 0 0 77\n",
        "unknown operation": "7 0 4096 1632.5 - 1 9 0 1 77\n",
        "beyond the block's span": "7 67108864 4096 1632.5 2 1 9 0 1 77\n",
    },
    "mooncake": {
        "a hash is a word": '{"timestamp": 5, "hash_ids": ["a"]}\n',
        "a hash beyond 2^64": '{"timestamp": 5, "hash_ids": [18446744073709551616]}\n',
        "no hashes": '{"timestamp": 5}\n',
        "cut off": '{"timestamp": 5, "hash_ids": [46, 4\n',
    },
    "syscall": {
        "unknown operation": "1000,1,2,4096,4096,Q\n",
        "offset is no number": "1000,1,2,zero,4096,R\n",
    },
}
VERBS = {"info": ("trace", "info", "{}"), "mrc": ("mrc", "{}"), "wa": ("wa", "{}")}


def cases() -> Iterator[Case]:
    """Give every bad trace."""
    for name, lines in BAD_LINES.items():
        for what, line in lines.items():
            content = text(GOOD[name] * 2 + line)
            command = ("trace", "info", "{}", "--format", name)
            yield Case(
                f"{name}: {what}", {f"{name}.csv": content}, command, (f"{name}.csv", "line")
            )
    yield from _lengths()
    yield from _csv()
    yield from _binary()
    yield from _packed()
    yield from _none()


def _lengths() -> Iterator[Case]:
    """Give a record so long that its blocks would fill the machine, to every reader of traces."""
    line = text(GOOD["alibaba"] + "1,W,0,4611686018427387904,1001\n")
    for verb, command in VERBS.items():
        yield Case(f"4 EiB in {verb}", {"long.csv": line}, command, ("long.csv", "line 2"))
    yield Case(
        "4 EiB in characterize", {"l.csv": line}, ("characterize", "{}"), ("l.csv", "line 2")
    )
    stack = text('[cache]\ncapacity = "1MiB"\n[[tenant]]\nname = "t"\ntrace = "l.csv"\n')
    files = {"s.toml": stack, "l.csv": line}
    yield Case("4 EiB in run", files, ("run", "{}"), ("l.csv", "line 2"))


def _csv() -> Iterator[Case]:
    head = "time_us,op,offset_bytes,length_bytes\n"
    bad = {
        "no offset column": "time_us,op,length_bytes\n1,R,4096\n",
        "a short line": head + "1,R,0\n",
        "an open quotation": head + '1,R,"0,4096\n',
        "an unknown operation": head + "1,paint,0,4096\n",
    }
    for what, content in bad.items():
        command = ("trace", "info", "{}", "--format", "csv")
        word = "columns" if what == "no offset column" else "c.csv"
        yield Case(f"csv: {what}", {"c.csv": text(content)}, command, (word,))
    options = {
        "an unknown option": "colour=red",
        "a column that is not there": "offset=where",
        "an option without value": "offset",
    }
    for what, option in options.items():
        command = ("trace", "info", "{}", "--format", "csv", "--option", option)
        files = {"c.csv": text(head + "1,R,0,4096\n")}
        yield Case(f"csv: {what}", files, command, (option.split("=")[0],))


def _binary() -> Iterator[Case]:
    bad = {
        "blktrace: wrong magic": ("blktrace", b"\x00" * 48),
        "blktrace: cut": ("blktrace", struct.pack("<I", 0x65617407) + b"\x00" * 10),
        "blktrace: of another version": ("blktrace", struct.pack("<I", 0x65617409) + b"\x00" * 44),
        "vscsi: cut": ("vscsi", b"\x01\x02\x03"),
        "vscsi: zeroes": ("vscsi", b"\x00" * 33),
        "oracle-general: cut": ("oracle-general", b"\x01" * 25),
        "oracle-general-op-ns: cut": ("oracle-general-op-ns", b"\x01" * 28),
        "parquet: magic alone": ("parquet", b"PAR1"),
        "parquet: no footer": ("parquet", b"PAR1" + b"\x00" * 100),
        "parquet: footer beyond the file": ("parquet", b"PAR1" + b"\xff\xff\xff\x7fPAR1"),
        "parquet: footer of noise": ("parquet", b"PAR1" + b"\xa5" * 40 + b"\x28\x00\x00\x00PAR1"),
        "synth: not TOML": ("synth", b"[synth\n"),
    }
    for what, (name, content) in bad.items():
        command = ("trace", "info", "{}", "--format", name)
        yield Case(what, {"b.bin": content}, command, ("b.bin",))
    noise = bytes((at * 131 + at // 7) % 251 for at in range(4096))
    yield Case("noise", {"noise.bin": noise}, ("trace", "info", "{}"), ("noise.bin",))
    yield Case("zeroes", {"zero.bin": bytes(4096)}, ("trace", "info", "{}"), ("zero.bin",))
    line = b"1" * (1 << 20)
    yield Case("a line of a mebibyte", {"l.csv": line}, ("trace", "info", "{}"), ("l.csv",))


def _packed() -> Iterator[Case]:
    plain = text(GOOD["alibaba"] * 1000)
    packed = {"gz": gzip.compress(plain), "xz": lzma.compress(plain), "bz2": bz2.compress(plain)}
    for suffix, content in packed.items():
        name = f"a.csv.{suffix}"
        command = ("trace", "info", "{}")
        yield Case(f"{suffix}: cut", {name: content[: len(content) // 2]}, command, (name,))
        damaged = bytearray(content)
        damaged[len(damaged) // 2] ^= 0xFF
        damaged[-3] ^= 0x55
        yield Case(f"{suffix}: damaged", {name: bytes(damaged)}, command, (name,))
        yield Case(f"{suffix}: head alone", {name: content[:10]}, command, (name,))
    zst = b"\x28\xb5\x2f\xfd" + b"\x00" * 20
    yield Case("zst: damaged", {"a.csv.zst": zst}, ("trace", "info", "{}"), ("a.csv.zst",))
    inner = gzip.compress(b"PAR1" + b"\x00" * 1000)
    yield Case("gzip of no Parquet", {"p.gz": inner}, ("trace", "info", "{}"), ("p.gz",))


def _none() -> Iterator[Case]:
    command = ("trace", "info", "{}")
    yield Case("no such trace", {}, ("trace", "info", "absent.csv"), ("absent.csv",))
    yield Case("an empty trace", {"e.csv": b""}, command, ("e.csv",))
    yield Case("a folder as trace", {}, ("trace", "info", "d"), ("d",), folders=("d",))
    good = {"g.csv": text(GOOD["alibaba"] * 3)}
    for what, words, expected in (
        ("an unknown format", ("--format", "alibabba"), "alibaba"),
        ("an unknown volume", ("--volume", "nine"), "nine"),
        ("a block that is no power of two", ("--block", "3KiB"), "3KiB"),
        ("a block without unit", ("--block", "4"), "block"),
        ("a block of an exbibyte", ("--block", "1EiB"), "block"),
    ):
        yield Case(what, good, (*command, *words), (expected,))
    for what, words, expected in (
        ("a target that is its source", ("convert", "{}", "g.csv"), "g.csv"),
        ("an unknown target format", ("convert", "{}", "x.out", "--to", "cvs"), "cvs"),
        ("a slice after the end", ("slice", "{}", "s.parquet", "--from", "1h"), "from 1h"),
        (
            "a slice that ends first",
            ("slice", "{}", "s.parquet", "--from", "2s", "--to", "1s"),
            "from 2s to 1s",
        ),
    ):
        yield Case(what, good, ("trace", *words), (expected,))
    yield Case(
        "a synthetic trace of nothing",
        {"s.toml": b"[synth]\n"},
        ("trace", "synth", "{}", "o.parquet"),
        ("s.toml",),
    )
