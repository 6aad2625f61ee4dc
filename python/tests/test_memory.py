"""The memory of commands on one trace grows with its distinct blocks, and not with its requests.

For: `mrc`, `compare`, `wa` and `characterize`. Must never know: time. Each command runs in a
process of its own on a short and on a long trace of the same blocks. What the long one takes more
would exceed the bound if columns of its accesses were held in memory.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Accesses of a request; of 1 MiB in blocks of 4 KiB.
ACCESSES = 256
SHORT, LONG = 50_000, 130_000
# Half of the 5 bytes of each further access.
BOUND_KIB = 5 * ACCESSES * (LONG - SHORT) // 2 >> 10
SPEC = """[synth]
seed = 1
[[tenant]]
name = "v"
count = {requests}
arrival = {{ kind = "constant", rate = "1000/s" }}
read_share = 0.5
size = "1MiB"
pattern = {{ kind = "loop", span = "64MiB" }}
"""
RUN = """
import resource
import sys

from cachewright import cli

status = cli.status_of(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(status)
"""
COMMANDS = {
    "mrc": ["mrc", "SPEC", "--policy", "lru", "--threads", "1", "--sizes", "16MiB"],
    "compare": ["compare", "SPEC", "--policy", "fifo", "--capacity", "16MiB", "--threads", "1"],
    "wa": ["wa", "SPEC", "--separation", "none", "--superblock", "64KiB", "--threads", "1"],
    "characterize": ["characterize", "SPEC", "--every", "10s"],
}


def _peak_kib(words: list[str], folder: Path, requests: int, text: str = SPEC) -> int:
    spec = folder / f"{requests}.synth"
    spec.write_text(text.format(requests=requests))
    named = [str(spec) if word == "SPEC" else word for word in words]
    found = subprocess.run(
        [sys.executable, "-c", RUN, *named, "-q"],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return int(found.stdout.split("peak ")[-1])


# Requests of one block: times and where requests begin are columns as long as those of accesses.
SINGLE_SHORT, SINGLE_LONG = 5_000_000, 12_000_000
SINGLE = SPEC.replace("1MiB", "4KiB").replace("1000/s", "50000/s")
# Half of the 8 bytes of each further time.
SINGLE_BOUND_KIB = 8 * (SINGLE_LONG - SINGLE_SHORT) // 2 >> 10


@pytest.mark.skipif(sys.platform != "linux", reason="columns lie in scratch files on Linux")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_longer_trace_of_the_same_blocks_takes_no_more_memory(name: str, tmp_path: Path) -> None:
    short, long = (_peak_kib(COMMANDS[name], tmp_path, count) for count in (SHORT, LONG))
    assert long - short < BOUND_KIB, f"{short} KiB, then {long} KiB"


@pytest.mark.skipif(sys.platform != "linux", reason="columns lie in scratch files on Linux")
def test_more_requests_of_one_block_take_no_more_memory_however_many_intervals_end(
    tmp_path: Path,
) -> None:
    words = [*COMMANDS["compare"], "--set", "replay.interval=10ms"]
    short, long = (
        _peak_kib(words, tmp_path, count, SINGLE) for count in (SINGLE_SHORT, SINGLE_LONG)
    )
    assert long - short < SINGLE_BOUND_KIB, f"{short} KiB, then {long} KiB"
