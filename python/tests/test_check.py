"""The command `check`: it refuses what a run and a start of a server refuse, before either.

For: operators who ask whether a stack is right. Must never know: which keys exist.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Command
from test_serve import MIB, STACK

WRONG_RUNS = [
    ("cache.capacity=0B", "expected at least one block"),
    ("cache.capacity=1KiB", "expected at least one block"),
    ("cache.block=128MiB", "expected at least one block"),
    ("cache.policy=rc-rnn", "needs trained models"),
    ("cache.partition=soft-qos", "`goal_hit_ratio`"),
    ('tenant.a.options={ columns = "time=1,op=2,offset=3,length=4" }', "`"),
    ("tenant.a.format=csv", "time"),
    ("tenant.a.volume=77", "77"),
    ("replay.windows=4000000000", "`replay.windows`"),
]


@pytest.mark.parametrize(("setting", "said"), WRONG_RUNS)
def test_what_a_run_refuses_before_it_reads_is_refused(
    stack: Path, command: Command, setting: str, said: str
) -> None:
    assert command("check", stack).status == 0
    run = command("run", stack, "--set", setting)
    checked = command("check", stack, "--set", setting)
    assert run.status == checked.status == 2, (run.err, checked.err)
    assert said in checked.err
    assert checked.err == run.err


def test_a_trace_whose_first_line_is_none_is_refused(stack: Path, command: Command) -> None:
    (stack.parent / "a.csv").write_text("what is no trace\n")
    run, checked = command("run", stack), command("check", stack)
    assert run.status == checked.status != 0
    assert checked.err == run.err


def test_a_stack_of_neither_traces_nor_devices_is_refused(stack: Path, command: Command) -> None:
    stack.write_text(re.sub("trace = .*", "", stack.read_text()))
    run, checked = command("run", stack), command("check", stack)
    assert (run.status, checked.status) == (2, 2)
    assert checked.err == run.err


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """Give a stack of a server whose devices are there and not formatted."""
    for name, mib in (("cache.img", 32), ("data.img", 8)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(mib * MIB)
    path = tmp_path / "served.toml"
    path.write_text(STACK)
    return path


WRONG_STARTS = [
    ("cache.capacity=0B", "expected at least one block"),
    ("cache.capacity=1KiB", "expected at least one block"),
    ("cache.block=8MiB", "expected at least one block"),
    ("cache.capacity=31MiB", "which the devices hold beside what the log needs"),
    ("cache.capacity=10%wss", "the working set is not known"),
    ("cache.block=2KiB", "expected at least 4KiB in a live server"),
    ("cache.policy=belady", "a policy that does not need the future"),
    ("serve.listen=[]", "found no `serve.listen`"),
    ("serve.segment=64MiB", "expected at least"),
    ('serve.monitor="0.0.0.0:9464"', "a loopback address and a port"),
    ('serve.devices=["data.img"]', "which are the same"),
    ('tenant.data.backing="."', "expected a file or block device"),
]


@pytest.mark.parametrize(("setting", "said"), WRONG_STARTS)
def test_what_a_start_refuses_is_refused(
    served: Path, command: Command, setting: str, said: str
) -> None:
    assert command("check", served).status == 0
    blank = command("check", served, "--set", setting)
    assert command("live", "format", served).status == 0
    checked = command("check", served, "--set", setting)
    started = command("serve", served, "--set", setting)
    assert blank.status == checked.status == started.status == 2
    if "devices" in setting or "backing" in setting:
        assert said in checked.err
    else:
        assert started.err == checked.err
    assert said in blank.err


def test_keys_that_cannot_be_read_are_refused_where_tls_wants_them(
    served: Path, command: Command
) -> None:
    tls = ('serve.tls="required"', 'serve.tls_certificate="no.pem"', 'serve.tls_key="no.pem"')
    settings = [word for pair in tls for word in ("--set", pair)]
    checked, started = command("check", served, *settings), command("serve", served, *settings)
    assert checked.status == started.status == 2
    assert "cannot be read" in checked.err
    assert started.err == checked.err


def test_devices_that_were_formatted_otherwise_are_refused(served: Path, command: Command) -> None:
    assert command("live", "format", served).status == 0
    assert command("check", served).status == 0
    checked = command("check", served, "--set", "serve.segment=512KiB")
    assert checked.status == 2
    assert "with which the devices were formatted" in checked.err


def test_a_volume_of_any_length_passes_and_one_of_none_is_refused(
    served: Path, command: Command
) -> None:
    for length, status in ((MIB + 100, 0), (0, 2)):
        with (served.parent / "data.img").open("wb") as file:
            file.truncate(length)
        assert command("check", served).status == status


def test_devices_that_are_not_there_yet_are_left_to_the_start(
    served: Path, command: Command
) -> None:
    (served.parent / "cache.img").unlink()
    (served.parent / "data.img").unlink()
    assert command("check", served).status == 0


def test_the_largest_cache_that_a_format_names_is_one_that_starts(
    served: Path, command: Command
) -> None:
    made = command("live", "format", served)
    largest = re.search(r"largest cache +(\S+)", made.out)
    assert largest is not None, made.out
    setting = f"cache.capacity={largest[1]}"
    checked = command("check", served, "--set", setting)
    assert checked.status == 0, checked.err
    assert command("live", "check", served, "--set", setting).status == 0


def test_devices_that_are_not_there_are_named(stack: Path, command: Command) -> None:
    text = stack.read_text().replace('"a.csv"\n', '"a.csv"\nbacking = "a.img"\n')
    text += 'backing = "b.img"\n[serve]\ndevices = ["cache.img"]\nlisten = ["unix:s.sock"]\n'
    stack.write_text(text)
    Path("b.img").write_bytes(bytes(4096))
    answer = command("check", stack)
    assert answer.status == 0, answer.err
    for name, missing in (("cache.img", True), ("a.img", True), ("b.img", False)):
        assert (f"{name}: found no such file or device" in answer.err) == missing
    assert "no device was opened: `cachewright live check " in answer.err
