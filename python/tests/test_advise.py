"""Advice from what a live server recorded, and from recorded traces.

For: `cachewright advise` with a server in a process of its own. Must never know: how a case is
replayed. Numbers are compared with those of `compare` and `plan`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import Command
from test_serve import MIB, STACK, Server, opened

import cachewright
from cachewright import RunError, SpecError, traces, words
from cachewright.live import advising, recordings, watching

BLOCK = 4096
READ, WRITE = 0, 1
SECOND = "\n[[tenant]]\nname = 'more'\nbacking = 'more.img'\ngoal_hit_ratio = 0.5\n"


class Recorded:
    """A server that records in a folder, and clients of its two volumes."""

    def __init__(self, folder: Path, command: Command, more: str = "") -> None:
        """Format the devices and start the server, with more keys of `serve`."""
        for name, mib in (("cache.img", 32), ("data.img", 8), ("more.img", 8)):
            with (folder / name).open("wb") as file:
                file.truncate(mib * MIB)
        self.path = folder / "stack.toml"
        keys = f'[serve]\nmonitor = "0"\nrecord = "kept"\n{more}'
        text = STACK.replace("[serve]", keys).replace("[cache]", '[cache]\npartition = "static"')
        self.path.write_text(text.replace('"4MiB"', '"1MiB"') + SECOND)
        assert command("live", "format", self.path).status == 0
        self.begin()

    def begin(self, *options: str) -> None:
        """Start the server, and connect to it."""
        self.server = Server(self.path, *options)
        line = next(one for one in self.server.lines if one.startswith("monitor: "))
        self.url = line.removeprefix("monitor: ")
        folder = self.path.parent
        self.clients = [opened(folder / "live.sock", name) for name in (b"data", b"more")]

    def load(self, seed: int, requests: int) -> list[tuple[int, int, int]]:
        """Send requests for some blocks, some of them often, to both volumes; return them."""
        rng, sent = random.Random(seed), []
        for _ in range(requests):
            place, block = rng.randrange(2), min(rng.randrange(1, 400), rng.randrange(1, 400))
            kind = rng.choice([READ, READ, WRITE])
            self.ask(self.clients[place], kind, block * BLOCK)
            sent.append((place, kind, block * BLOCK))
        return sent

    def ask(self, client: socket.socket, kind: int, offset: int) -> None:
        data = bytes(BLOCK) if kind == WRITE else b""
        client.sendall(struct.pack(">IHHQQI", 0x25609513, 0, kind, 7, offset, BLOCK) + data)
        answer = client.recv(16 + (BLOCK if kind == READ else 0), socket.MSG_WAITALL)
        assert answer[:8] == struct.pack(">II", 0x67446698, 0)

    def kill(self) -> None:
        """End the server by a signal that it cannot catch."""
        self.server.process.kill()
        self.server.process.communicate()
        for client in self.clients:
            client.close()

    def stop(self) -> None:
        """Leave, and stop the server."""
        for client in self.clients:
            client.close()
        self.server.stop(signal.SIGTERM)


@pytest.fixture
def recorded(tmp_path: Path, command: Command) -> Iterator[Recorded]:
    """Give a server that records."""
    found = Recorded(tmp_path, command)
    yield found
    found.stop()


def test_advice_has_the_numbers_of_compare_and_plan_on_the_recording(recorded: Recorded) -> None:
    recorded.load(1, 1500)
    found = advising.advise(recorded.url, policies=["lru", "sieve"], partitions=["shared", "equal"])
    (kept,) = found.recordings
    settings = {
        f"tenant.{name}.{key}": value
        for name in ("data", "more")
        for key, value in (("trace", kept), ("volume", name))
    }
    sizes = ["128 blocks", "256 blocks", "512 blocks"]
    vary = {"policy": ["lru", "sieve"], "partition": ["static", "shared", "equal"]}
    expected = cachewright.compare(recorded.path, {**vary, "capacity": sizes}, settings=settings)
    ratios = {
        (case.settings["cache.policy"], case.settings["cache.partition"], case.capacity_blocks): (
            [tenant.hit_ratio for tenant in case.tenants]
        )
        for case in expected.answer.cases
    }
    assert len(found.cases) == len(ratios) == 18
    for case in found.cases:
        key = (case.policy, case.partition, case.capacity_bytes // BLOCK)
        assert [tenant.hit_ratio for tenant in case.tenants] == ratios[key]
    assert found.present in found.cases
    whys = {**settings, "replay.causes": "sampled"}
    alone = cachewright.compare(recorded.path, {}, settings=whys).answer.cases[0]
    assert [(one.name, one.causes) for one in found.causes] == [
        (one.name, one.causes) for one in alone.tenants
    ]
    (line,) = (line for line in found.advice if line.startswith("data: of "))
    first = alone.tenants[0].causes
    assert first is not None
    assert f"{words.percent(first.first_use / alone.tenants[0].misses)} first use" in line
    assert found.requests == expected.answer.workload.requests
    plan = cachewright.plan(recorded.path, ["static"], settings=settings)
    need = plan.tenants[1]
    (goal,) = found.goals
    assert (goal.name, goal.goal_hit_ratio) == ("more", 0.5)
    assert need.alone_blocks is not None
    assert goal.needed_bytes == need.alone_blocks * BLOCK
    assert goal.more_bytes == (need.alone_blocks - 128) * BLOCK
    assert any("more than its quota" in line for line in found.advice) == (goal.more_bytes > 0)


def test_a_server_counts_what_a_replay_of_its_first_recording_does(recorded: Recorded) -> None:
    recorded.load(2, 800)
    before = watching.status(recorded.url)
    found = advising.advise(recorded.url, policies=["lru"], partitions=["static"])
    served = [
        (one.blocks.read_hits + one.blocks.write_hits) / (one.blocks.reads + one.blocks.writes)
        for one in before.tenants
    ]
    assert [one.hit_ratio for one in found.present.tenants] == pytest.approx(served, abs=1e-12)


def test_the_command_shows_a_table_and_what_to_change(recorded: Recorded, command: Command) -> None:
    recorded.load(3, 600)
    shown = command("advise", recorded.url, "--capacity", "2MiB")
    assert shown.status == 0, shown.err
    assert "now: lru, static" in shown.out
    assert "more: " in shown.out
    assert "of the goal" in shown.out
    document = json.loads(command("advise", recorded.url, "--json", "--policy", "fifo").out)
    assert {case["policy"] for case in document["cases"]} == {"lru", "fifo"}
    assert document["present"]["capacity_bytes"] == MIB
    assert command("advise", recorded.url, "--csv").out.startswith("policy,partition,")


def test_recordings_are_joined_in_the_order_of_time(recorded: Recorded) -> None:
    counts = []
    for seed in range(3):
        recorded.load(seed, 50)
        counts.append(recordings.finish(recorded.url, watching.status(recorded.url)).recordings)
    found = recordings.found(recorded.path.parent / "kept")
    assert len(found) == 3
    part = recorded.path.parent / "joined.parquet"
    joined = recordings.joined(found, 3_600_000_000_000, part)
    assert len(joined.recordings) == 3
    assert sorted(joined.volumes) == ["data", "more"]
    times = traces.open_trace(joined.path).read(1000)[0]
    assert counts[-1] is not None
    assert len(times) == counts[-1].requests == 3 * 52
    assert (times[1:] > times[:-1]).all()
    (alone,) = recordings.joined(found[-1:], 1, part).recordings
    assert alone == found[-1].path


def test_what_was_recorded_is_read_without_a_server(tmp_path: Path, command: Command) -> None:
    server = Recorded(tmp_path, command)
    server.load(5, 200)
    server.stop()
    found = advising.advise(server.path)
    assert len(found.recordings) == 1
    assert {tenant.name for tenant in found.present.tenants} == {"data", "more"}


def test_traces_of_a_stack_do_as_well(tmp_path: Path) -> None:
    rows = [f"1,R,{place * 7919 % 300 * BLOCK},{BLOCK},{place}" for place in range(900)]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    stack = tmp_path / "stack.toml"
    stack.write_text('[cache]\ncapacity = "100 blocks"\n[[tenant]]\ntrace = "t.csv"\n')
    found = advising.advise(stack)
    assert (found.recordings, found.requests) == ((), 900)
    assert {case.partition for case in found.cases} == {"shared"}
    (why,) = found.causes
    # The blocks lie in a loop of 300, which neither 100 blocks nor a policy hold.
    assert (why.misses, why.causes.first_use) == (900, 300)
    assert any(line.startswith("tenant1: of 900 misses ") for line in found.advice)
    sizes = advising.advise(stack, policies=["lru"], capacities=["400KiB", "200 blocks"]).cases
    assert [case.capacity_bytes for case in sizes] == [100 * BLOCK, 200 * BLOCK]


def test_what_says_nothing_is_refused(tmp_path: Path) -> None:
    stack = tmp_path / "stack.toml"
    stack.write_text(STACK)
    with pytest.raises(SpecError, match="found nothing that was recorded, expected a server with"):
        advising.advise(stack)
    stack.write_text(STACK.replace("[serve]", '[serve]\nrecord = "kept"'))
    (tmp_path / "kept").mkdir()
    with pytest.raises(SpecError, match="found no finished recording"):
        advising.advise(stack)
    with pytest.raises(RunError, match="found no live server"):
        advising.advise("127.0.0.1:1")


def test_names_of_recordings_are_times(tmp_path: Path) -> None:
    names = ["2025-11-25T21-17-15.123Z.parquet", "1970-01-01T00-00-01.000Z.parquet"]
    others = ["served.parquet", ".2025-11-25T21-17-15.124Z.parquet.7.0.tmp", "2025-13-01.parquet"]
    for name in names + others:
        (tmp_path / name).touch()
    found = recordings.found(tmp_path)
    second = datetime(2025, 11, 25, 21, 17, 15, 123_000, UTC)
    assert [one.begin_ms for one in found] == [1000, int(second.timestamp() * 1000 + 0.5)]
    assert os.fspath(found[0].path) == os.fspath(tmp_path / names[1])


def test_auto_of_a_server_is_replayed_as_the_policy_it_serves_by(tmp_path: Path) -> None:
    rows = [f"1,R,{place * 7919 % 300 * BLOCK},{BLOCK},{place}" for place in range(900)]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    stack = tmp_path / "stack.toml"
    cache = '[cache]\ncapacity = "100 blocks"\npolicy = "auto"\n'
    stack.write_text(f'{cache}[serve]\n[[tenant]]\ntrace = "t.csv"\n')
    served = advising.advise(stack)
    assert served.present.policy == "access-frequency"
    stack.write_text(f'{cache}[[tenant]]\ntrace = "t.csv"\n')
    replayed = advising.advise(stack)
    assert replayed.present.policy == "duel-x"
    assert {"access-frequency", "duel-x", "lru"} <= {case.policy for case in replayed.cases}


IN_TIME = "b: the goal of p99 2ms is "
DEVICES = '[device.cache]\nmodel = "ram"\n[device.backing]\nmodel = "fixed-latency"\n'
LIVE = '[serve]\ndevices = ["cache.img"]\nlisten = ["unix:s.sock"]\n'


@pytest.mark.parametrize(
    ("tables", "note", "met"),
    [
        (LIVE, f"{IN_TIME}not judged", "of 1 goal in hit ratio"),
        (DEVICES, f"{IN_TIME}judged in each cache tried", "of 2 goals"),
    ],
)
def test_goals_in_response_times_are_judged_or_said_not_to_be(
    stack: Path, command: Command, tables: str, note: str, met: str
) -> None:
    text = stack.read_text().replace('"a.csv"\n', '"a.csv"\nbacking = "a"\ngoal_hit_ratio = 0.5\n')
    text += 'backing = "b"\ngoal_p99 = "2ms"\n'
    if tables == DEVICES:
        text = text.replace('backing = "a"\n', "").replace('backing = "b"\n', "")
    stack.write_text(text + tables)
    small = ("--policy", "lru", "--partition", "equal", "--capacity", "256KiB")
    found = command("advise", stack, *small)
    assert found.status == 0, found.err
    assert note in found.err
    assert met in found.out
    assert "all goals in hit ratio: " in found.out
    run = command("run", stack, "--report")
    is_said = tables == LIVE
    assert (note in run.err) == is_said
    assert (note in Path("results/two/report.html").read_text()) == is_said
