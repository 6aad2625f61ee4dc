"""From strace's files to a trace of file accesses, above the page cache.

For: parsing, writing `timestamp_us,pid,file_id,offset,length,op,duration_us` without a header, and
the names of files beside it. Must never know: applications. Operations: R read, W write, S sync
(offset and length are 0). Units: bytes really moved; microseconds since the first record, and that
the call took. The offset of read() and write() is followed per process and descriptor; a file
opened to append begins at its size as known so far. Needs strace 5.3 or later.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from block_log import BLOCK_BYTES, compress
from volume import NotPermittedError

CALLS = (
    "pread64,pwrite64,preadv,preadv2,pwritev,pwritev2,read,write,lseek,openat,close,fsync,fdatasync"
)
LINE = re.compile(
    r"(\d+)\.(\d{6}) (\w+)\((?:(\d+)<([^>]*)>)?(.*)\) += (-?\d+)(?:<([^>]*)>)?.* <([\d.]+)>$"
)


@dataclass(frozen=True, order=True)
class Access:
    """One call."""

    time_us: int
    process: int
    path: str
    offset: int
    length: int
    operation: str
    duration_us: int


def command(output: Path) -> list[str]:
    """Return the command that traces what follows it. Errors: `NotPermittedError`."""
    if shutil.which("strace") is None:
        raise NotPermittedError("strace: not installed, expected from package strace")
    shape = ["-ttt", "-T", "-y", "-s", "0", "-e", f"trace={CALLS}", "-e", "signal=none"]
    return ["strace", "-ff", "--seccomp-bpf", "-q", *shape, "-o", str(output)]


@dataclass
class Process:
    """Where the descriptors of one process stand."""

    number: int
    root: str
    sizes: dict[str, int]
    offsets: dict[int, int] = field(default_factory=dict)

    def access(self, line: str) -> Access | None:
        """Follow one line; return the access it is, if it is one."""
        found = LINE.match(line)
        if found is None:
            return None
        second, micro, call, descriptor, path, rest, result, opened, took = found.groups()
        moved = int(result)
        if moved < 0:
            return None
        if call == "openat":
            self.offsets[moved] = self.sizes.get(opened or "", 0) if "O_APPEND" in rest else 0
            return None
        if path is None or not path.startswith(self.root):
            return None
        begun = int(second) * 10**6 + int(micro)
        duration = round(float(took) * 1e6)
        if call in ("fsync", "fdatasync"):
            return Access(begun, self.number, path, 0, 0, "S", duration)
        offset = self.moved(call, int(descriptor), rest, moved)
        if offset is None:
            return None
        operation = "R" if "read" in call else "W"
        if operation == "W":
            self.sizes[path] = max(self.sizes.get(path, 0), offset + moved)
        return Access(begun, self.number, path, offset, moved, operation, duration)

    def moved(self, call: str, descriptor: int, rest: str, moved: int) -> int | None:
        """Follow a descriptor; return where a call moved bytes, if it did."""
        if call == "close":
            self.offsets.pop(descriptor, None)
            return None
        if call == "lseek":
            self.offsets[descriptor] = moved
            return None
        if moved == 0:
            return None
        if call in ("read", "write"):
            offset = self.offsets.get(descriptor, 0)
            self.offsets[descriptor] = offset + moved
            return offset
        if "v" in call:
            return int(rest.rsplit("]", maxsplit=1)[-1].split(",")[2])
        return int(rest.rsplit(",", 1)[1])


def accesses(prefix: Path, root: Path) -> Iterator[Access]:
    """Yield the accesses to files below a folder from strace's files, one per process."""
    sizes: dict[str, int] = {}
    for file in sorted(prefix.parent.glob(f"{prefix.name}.*")):
        process = Process(int(file.suffix[1:]), f"{root}/", sizes)
        with file.open(errors="replace") as lines:
            for line in lines:
                access = process.access(line)
                if access is not None:
                    yield access


def write(stem: Path, found: list[Access], root: Path) -> dict[str, float]:
    """Write accesses in order of time, compressed, and the files' names; return their counts."""
    found.sort()
    files: dict[str, int] = {}
    counts = dict.fromkeys("RWS", 0)
    moved = dict.fromkeys("RWS", 0)
    seen: set[tuple[int, int]] = set()
    start = found[0].time_us
    with Path(f"{stem}.csv").open("w") as out:
        for one in found:
            number = files.setdefault(one.path, len(files))
            counts[one.operation] += 1
            moved[one.operation] += one.length
            end = (one.offset + one.length + BLOCK_BYTES - 1) // BLOCK_BYTES
            seen.update((number, block) for block in range(one.offset // BLOCK_BYTES, end))
            place = f"{number},{one.offset},{one.length},{one.operation}"
            out.write(f"{one.time_us - start},{one.process},{place},{one.duration_us}\n")
    names = [f"{number},{Path(path).relative_to(root)}\n" for path, number in files.items()]
    Path(f"{stem}.files.csv").write_text("".join(names))
    compress(Path(f"{stem}.csv"))
    compress(Path(f"{stem}.files.csv"))
    return {
        "requests": len(found),
        "reads": counts["R"],
        "writes": counts["W"],
        "syncs": counts["S"],
        "read_bytes": moved["R"],
        "written_bytes": moved["W"],
        "files": len(files),
        "distinct_4k_blocks": len(seen),
        "seconds": round((found[-1].time_us - start) / 1e6, 1),
    }
