"""Traces as the shell hands them over, without times, with times that run backwards.

For: `trace info` and `run`. Must never know: how records are read.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

from conftest import Command

LINES = "3,R,0,4096,500000\n3,R,4096,4096,1499000\n3,R,8192,4096,1000000\n"
INFO = [sys.executable, "-m", "cachewright", "trace", "info", "--json"]


def facts(words: list[str], given: bytes = b"") -> dict[str, object]:
    done = subprocess.run(words, capture_output=True, check=False, input=given)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    plain, packed = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    plain.write_text(LINES)
    packed.write_bytes(gzip.compress(LINES.encode()))
    expected = facts([*INFO, str(plain)])
    shell = f"{' '.join(INFO)} <(gunzip -c {packed})"
    found = [
        facts([*INFO, "-"], packed.read_bytes()),
        facts(["bash", "-c", shell]),
    ]
    for one in found:
        assert {**one, "path": ""} == {**expected, "path": ""}


def test_a_named_pipe_is_read_and_an_idle_one_is_refused(tmp_path: Path, command: Command) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    answer = command("trace", "info", pipe)
    assert answer.status == 2
    assert "found a pipe that nothing writes to" in answer.err
    # Bytes stay in a pipe that is open for reading when its writer has left.
    held = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    pipe.write_text(LINES)
    assert facts([*INFO, str(pipe)])["requests"] == 3
    os.close(held)


def test_times_that_run_backwards_are_said(tmp_path: Path, command: Command) -> None:
    (tmp_path / "t.csv").write_text(LINES)
    (tmp_path / "s.toml").write_text(
        '[cache]\ncapacity = "4 blocks"\n[[tenant]]\nname = "a"\ntrace = "t.csv"\n'
    )
    note = "times run backwards: 1 request earlier than one before"
    answer = command("trace", "info", tmp_path / "t.csv")
    assert answer.status == 0
    assert note in answer.out + answer.err
    assert "999ms" in answer.out.replace(" ", "")
    answer = command("run", tmp_path / "s.toml")
    assert answer.status == 0
    assert f"a: {note}" in answer.out + answer.err


def test_no_rate_is_invented(tmp_path: Path, command: Command) -> None:
    trace, converted = tmp_path / "p.lis", tmp_path / "p.parquet"
    trace.write_text("64 8 0 0\n0 8 0 1\n64 8 0 2\n")
    (tmp_path / "s.toml").write_text(
        '[cache]\ncapacity = "4 blocks"\n[[tenant]]\nname = "a"\ntrace = "p.lis"\n'
    )
    assert command("trace", "convert", trace, converted).status == 0
    for path in (trace, converted):
        answer = command("trace", "info", path)
        assert answer.status == 0
        assert "no times" in answer.out
        assert "requests/s" not in answer.out
    answer = command("run", tmp_path / "s.toml")
    assert answer.status == 0
    assert "a: the trace has no times" in answer.out + answer.err


def test_a_record_beyond_the_bound_is_named(tmp_path: Path, command: Command) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(LINES + "3,W,0,4611686018427387904,1500000\n")
    answer = command("trace", "info", trace)
    assert answer.status == 2
    expected = "line 4, column 4: found `4611686018427387904`, expected at most 1GiB"
    assert expected in answer.err
    answer = command("trace", "info", trace, "--option", "max_request=2KiB")
    assert "line 1, column 4: found `4096`, expected at most 2KiB" in answer.err
    answer = command("mrc", trace, "--on-bad-record", "skip")
    assert answer.status == 0
