#!/usr/bin/env python3
"""Instructions of the live server per request of a client, which no load of the machine changes.

For: `benches/live_instructions.py [--requests N] [--server PATH] [--folder DIR]`, where PATH is a
build of `cachewrightd`. The server runs under callgrind, with the engine `threads`, because
valgrind does not know io_uring; the kernel's instructions do not count. Only for x86-64: valgrind
hides the kernel's clock (vDSO) from programs, but not where they ask `prctl`, which is refused.
Prints a table. Must never know: the server's code. Units: instructions of user mode, per request
of 4 KiB.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from live import ROOT, Bench

WORKLOADS = (
    ("read hits, depth 1", ("--rw=randread", "--iodepth=1")),
    ("read hits, depth 32", ("--rw=randread", "--iodepth=32")),
    ("writes, depth 1", ("--rw=randwrite", "--iodepth=1")),
    ("writes, depth 32", ("--rw=randwrite", "--iodepth=32")),
)
# A filter of system calls: `prctl(PR_GET_AUXV)` is refused with EINVAL, others are allowed.
PRCTL, GET_AUXV, SET_SECCOMP, NO_NEW_PRIVILEGES = 157, 0x41555856, 22, 38
FILTER = (
    (0x20, 0, 0, 0),  # load the number of the call
    (0x15, 0, 3, PRCTL),
    (0x20, 0, 0, 16),  # load the low half of its first argument
    (0x15, 0, 1, GET_AUXV),
    (0x06, 0, 0, 0x00050000 | 22),  # refuse: EINVAL
    (0x06, 0, 0, 0x7FFF0000),  # allow
)
TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


def refuse_auxv() -> None:
    """Refuse `prctl(PR_GET_AUXV)` to this process and to those that it starts."""
    code = b"".join(struct.pack("=HBBI", *word) for word in FILTER)
    memory = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(FILTER), ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SET_SECCOMP, 2, program, 0, 0):
        sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")


class CountedBench(Bench):
    """A server under callgrind, which counts while it is told to."""

    def connect(self) -> None:
        """Wait until the server takes clients: under callgrind that is long after its start."""
        while True:
            with socket.socket(socket.AF_UNIX) as client:
                if client.connect_ex(str(self.folder / "s.sock")) == 0:
                    return
            time.sleep(0.05)

    def count(self, pid: int, state: str) -> None:
        """Let callgrind begin to count, or end."""
        env = {**os.environ, "TMPDIR": str(self.folder)}  # As the server has it.
        words = ["callgrind_control", f"--instr={state}", str(pid)]
        subprocess.run(words, check=True, env=env, stdout=subprocess.DEVNULL)

    def counted(self, arguments: tuple[str, ...], requests: int) -> float:
        """Count the instructions of one request, as a mean over many."""
        for old in self.folder.glob("counts*"):
            old.unlink()
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"]
        valgrind += [f"--callgrind-out-file={self.folder / 'counts'}"]
        server = self.start("ours", valgrind)
        if server is None:
            sys.exit("found no server; expected one")
        try:
            self.connect()
            self.fill()
            # `number_ios` would end with the volume, however many were asked for.
            self.fio("ours", (*arguments, f"--io_size={requests // 10 * 4}k"))
            self.count(server.pid, "on")
            self.fio("ours", (*arguments, f"--io_size={requests * 4}k"))
            self.count(server.pid, "off")
        finally:
            server.terminate()
            server.wait()
        texts = [path.read_text() for path in self.folder.glob("counts*")]
        return sum(int(total) for text in texts for total in TOTAL.findall(text)[-1:]) / requests


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--mib", type=int, default=32)
    parser.add_argument("--server", type=Path, default=ROOT / "target/release/cachewrightd")
    parser.add_argument("--folder", type=Path, help="where the files go; a new one if left out")
    options = parser.parse_args()
    refuse_auxv()
    missing = [tool for tool in ("fio", "valgrind") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"found no {', '.join(missing)}; expected them to be installed")
    print("| workload | instructions per request |\n|---|--:|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = CountedBench(Path(folder), options.mib, 1, options.server.resolve(), "threads")
        for name, arguments in WORKLOADS:
            print(f"| {name} | {bench.counted(arguments, options.requests):,.0f} |", flush=True)


if __name__ == "__main__":
    main()
