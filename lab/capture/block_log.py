"""From a log of nbdkit to a trace: `device,opcode,offset,length,timestamp` without a header.

For: parsing the log, writing one phase of it, counting. Must never know: volumes, applications.
Units: bytes; microseconds since the start of the phase. Opcodes: R read, W write, T trim or
write-zeroes, F flush (its offset and length are 0).
"""

from __future__ import annotations

import array
import datetime
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

CODES = {"Read": "R", "Write": "W", "Trim": "T", "Zero": "T", "Flush": "F"}
BLOCK_BYTES = 4096


def longs() -> array.array[int]:
    """Return an empty array of 64-bit numbers."""
    return array.array("q")


@dataclass
class Log:
    """Requests by column, in the order of the log."""

    codes: bytearray = field(default_factory=bytearray)
    offsets: array.array[int] = field(default_factory=longs)
    lengths: array.array[int] = field(default_factory=longs)
    times_us: array.array[int] = field(default_factory=longs)


def read(path: Path) -> Log:
    """Read a log; its times are of UTC."""
    log, day, base_us = Log(), "", 0
    with path.open(errors="replace") as lines:
        for line in lines:
            # DATE TIME connection=N OP id=N [offset=0x.. count=0x.. ...] ...
            words = line.split(" ")
            if len(words) < 5 or words[3] not in CODES:
                continue
            if words[0] != day:
                day = words[0]
                start = datetime.datetime.strptime(f"{day} +0000", "%Y-%m-%d %z")
                base_us = int(start.timestamp()) * 10**6
            hour, minute, second = words[1].split(":")
            clock_us = round((int(hour) * 3600 + int(minute) * 60 + float(second)) * 1e6)
            log.times_us.append(base_us + clock_us)
            log.codes.append(ord(CODES[words[3]]))
            flush = words[3] == "Flush"
            log.offsets.append(0 if flush else int(words[5].removeprefix("offset="), 16))
            log.lengths.append(0 if flush else int(words[6].removeprefix("count="), 16))
    return log


def write(path: Path, log: Log, device: int, since_us: int, until_us: int) -> dict[str, float]:
    """Write the requests of one phase in order of time and compress them; return their counts."""
    chosen = [at for at, time in enumerate(log.times_us) if since_us <= time < until_us]
    chosen.sort(key=log.times_us.__getitem__)
    counts = dict.fromkeys("RWTF", 0)
    moved = dict.fromkeys("RWTF", 0)
    seen: set[int] = set()
    with path.open("w", buffering=1 << 20) as file:
        for at in chosen:
            code, offset, length = chr(log.codes[at]), log.offsets[at], log.lengths[at]
            counts[code] += 1
            moved[code] += length
            if code in "RW":
                end = (offset + length + BLOCK_BYTES - 1) // BLOCK_BYTES
                seen.update(range(offset // BLOCK_BYTES, end))
            file.write(f"{device},{code},{offset},{length},{log.times_us[at] - since_us}\n")
    compress(path)
    last_us = log.times_us[chosen[-1]] if chosen else since_us
    return {
        "requests": len(chosen),
        "reads": counts["R"],
        "writes": counts["W"],
        "trims": counts["T"],
        "flushes": counts["F"],
        "read_bytes": moved["R"],
        "written_bytes": moved["W"],
        "trimmed_bytes": moved["T"],
        "distinct_4k_blocks": len(seen),
        "seconds": round((last_us - since_us) / 1e6, 1),
    }


def compress(path: Path) -> None:
    """Compress a file with zstd and remove it."""
    command = ["nice", "-n", "10", "zstd", "-19", "-q", "-f", "--rm", str(path), "-o"]
    subprocess.run([*command, f"{path}.zst"], check=True)
