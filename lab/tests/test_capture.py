"""The programs in `lab/capture` that need neither root nor the programs they capture.

For: workers, messages without tracebacks, folders, the factorisation's count. Must never know:
volumes, strace. Everything runs in a process of its own: captures fork.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CAPTURE = Path(__file__).resolve().parents[1] / "capture"
WORKERS = """
import random, time
from pathlib import Path
from application import Application, Place

class Two(Application):
    name = "two"

def work(number: int, rng: random.Random) -> None:
    if number == 0:
        raise ValueError("the first worker fails")
    time.sleep(0.3)
    Path("second").write_text("done")

Two(Place(Path("."), Path("."), 1, 10.0)).fork(2, work)
"""
RELATIVE = """
import runpy, sys
from pathlib import Path
main = runpy.run_path(sys.argv[1])
def told(row, stem, work):
    return {"run": {"absolute": work.is_absolute(), "parent": work.parent.name}}
main["CAPTURES"]["told"] = told
main["capture"]("x", {"level": "told"}, Path("out").resolve(), Path("new/work"))
"""
FACTORISES = """
from pathlib import Path
from application import Place
from factorise import Lu

class Ends(Lu):
    calls = 0

    def left(self) -> float:
        self.calls += 1
        return 1.0 if self.calls < 5 else 0.0

own = Ends(Place(Path("data"), Path("."), 1, 1.0), rows=32, block=8, buffers=4, direct=False)
own.prepare()
own.run()
"""


def run(*words: str | Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with the modules of captures."""
    own = {"PYTHONPATH": str(CAPTURE)} | ({} if path is None else {"PATH": path})
    command = [sys.executable, *map(str, words)]
    return subprocess.run(
        command, env=os.environ | own, capture_output=True, text=True, check=False
    )


def phase(name: str, phase: str, seconds: float, **settings: object) -> list[str | Path]:
    place = {"data": "data", "scratch": ".", "seed": 1, "seconds": seconds}
    text = json.dumps({"place": place, "settings": settings})
    return [CAPTURE / "run_application.py", name, phase, text]


def test_a_worker_that_fails_ends_the_run_when_all_have_returned(folder: Path) -> None:
    done = run("-c", WORKERS)
    assert done.returncode == 1
    assert "two: a worker failed" in done.stderr
    assert (folder / "second").read_text() == "done"


def test_a_program_that_is_missing_is_said_in_a_sentence(folder: Path) -> None:
    (folder / "data").mkdir()
    done = run(*phase("kv", "prepare", 1.0), path=str(folder))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "kv: prepare: [Errno 2] No such file or directory: 'db_bench'"
    ]
    wrong = run(*phase("kv", "prepare", 1.0, numb=3))
    assert "kv: prepare: kv: no setting 'numb', expected one of num," in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_factorisation_counts_what_is_done(folder: Path) -> None:
    (folder / "data").mkdir()
    small = {"rows": 32, "block": 8, "buffers": 4, "direct": False}
    assert run(*phase("lu", "prepare", 10.0, **small)).returncode == 0
    assert run(*phase("lu", "run", 0.0, **small)).stdout == "lu: 0 of 4 block columns\n"
    assert run(*phase("lu", "run", 600.0, **small)).stdout == "lu: 4 of 4 block columns\n"
    assert run("-c", FACTORISES).stdout == "lu: 0 of 4 block columns\n", "cut short in the first"


def test_the_scratch_folder_is_made_and_absolute(folder: Path) -> None:
    done = run("-c", RELATIVE, CAPTURE / "__main__.py")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"name": "x", "absolute": True, "parent": "work"}
    assert list((folder / "new" / "work").iterdir()) == []


TABLE = """
import runpy, sys
main = runpy.run_path(sys.argv[1])
table = main["rows"]()
print(*main["named"](table, ["fresh-queue-3*", "lu"]), table["fresh-queue-312"]["seed"])
try:
    main["named"](table, ["fresh-nothing-*"])
except ValueError as error:
    print(str(error)[:50])
"""


def test_rows_of_seeds_are_named_by_patterns_in_the_order_of_the_table() -> None:
    done = run("-c", TABLE, CAPTURE / "__main__.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "lu fresh-queue-311 fresh-queue-312 fresh-queue-313 312",
        "found no row 'fresh-nothing-*', expected one of ol",
    ]


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_a_later_part_begins_at_its_own_time(folder: Path) -> None:
    lines = [f"7,R,{4096 * second},4096,{second * 1_000_000}\n" for second in range(5)]
    Path("whole.csv").write_text("".join(lines))
    subprocess.run(["zstd", "-q", "whole.csv"], check=True)
    done = run(CAPTURE / "cut.py", "whole.csv.zst", "part.csv.zst", "4", "2")
    assert done.stdout == "2 requests\n"
    part = subprocess.run(["zstd", "-dcq", "part.csv.zst"], check=True, capture_output=True)
    assert part.stdout == b"7,R,8192,4096,0\n7,R,12288,4096,1000000\n"
