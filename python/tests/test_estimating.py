"""Advice from the sampled curves of a live server that records nothing.

For: `cachewright advise` with a server in a process of its own. Must never know: how curves are
sampled. Estimates are compared with replays of the same requests.
"""

from __future__ import annotations

import json
import random
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Command
from test_serve import MIB, Server

import cachewright
from cachewright import SpecError
from cachewright.answers import AdviseAnswer, CurvePoint, SampledCurve
from cachewright.live import advising, sampled_curves

BLOCK = 4096
RUN = 16
VOLUME = 256 * MIB
CAPACITY = 64 * MIB
# What docs/serve-reference.md says of estimates.
ERROR = 0.02
STACK = """
[cache]
capacity = "64MiB"
policy = "lru"
partition = "PARTITION"

[serve]
devices = ["cache.img"]
listen = ["unix:live.sock"]
monitor = "0"
curves = true
segment = "256KiB"

[[tenant]]
name = "data"
backing = "data.img"

[[tenant]]
name = "more"
backing = "more.img"
goal_hit_ratio = 0.45
"""


class Sampled:
    """A server that samples curves, and what it decided in a file beside it."""

    def __init__(self, folder: Path, command: Command, partition: str) -> None:
        """Format the devices, start the server and send requests."""
        for name, size in (("cache.img", 192 * MIB), ("data.img", VOLUME), ("more.img", VOLUME)):
            with (folder / name).open("wb") as file:
                file.truncate(size)
        self.path, self.kept = folder / "stack.toml", folder / "served.parquet"
        self.path.write_text(STACK.replace("PARTITION", partition))
        assert command("live", "format", self.path).status == 0
        self.server = Server(self.path, "--record", str(self.kept))
        line = next(one for one in self.server.lines if one.startswith("monitor: "))
        self.url = line.removeprefix("monitor: ")
        self.clients = [opened(folder / "live.sock", name) for name in (b"data", b"more")]

    def load(self, requests: int) -> None:
        """Read runs of blocks, some of them often: the second tenant three of four times."""
        rng = random.Random(11)
        for _ in range(requests):
            place = int(rng.randrange(4) > 0)
            share = rng.random() ** (3 if place else 2)
            run = int(share * (VOLUME // BLOCK // RUN))
            words = struct.pack(">IHHQQI", 0x25609513, 0, 0, 7, run * RUN * BLOCK, RUN * BLOCK)
            self.clients[place].sendall(words)
            answer = self.clients[place].recv(16 + RUN * BLOCK, socket.MSG_WAITALL)
            assert answer[:8] == struct.pack(">II", 0x67446698, 0)

    def stop(self) -> None:
        """Leave, and stop the server, which ends the file."""
        for client in self.clients:
            client.close()
        self.server.stop(signal.SIGTERM)

    def replayed(self, **settings: str) -> list[float]:
        """Return the hit ratios of a replay of what was decided."""
        places = {
            f"tenant.{name}.{key}": value
            for name in ("data", "more")
            for key, value in (("trace", str(self.kept)), ("volume", name))
        }
        found = {key.replace("__", "."): value for key, value in settings.items()}
        (case,) = cachewright.run(self.path, settings={**places, **found}).answer.cases
        return [one.hit_ratio for one in case.tenants]


def opened(path: Path, name: bytes) -> socket.socket:
    """Connect to an export and end the negotiation."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    client.recv(18, socket.MSG_WAITALL)  # Two magics and flags.
    client.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, len(name)) + name)
    client.recv(10, socket.MSG_WAITALL)
    return client


@pytest.fixture
def divided(tmp_path: Path, command: Command) -> Iterator[Sampled]:
    """Give a server whose tenants have quotas."""
    found = Sampled(tmp_path, command, "static")
    found.load(9000)
    yield found
    if found.server.process.poll() is None:
        found.stop()


def ratios(found: AdviseAnswer, capacity: int) -> list[float]:
    """Return the hit ratios of the case of a size."""
    (case,) = [one for one in found.cases if one.capacity_bytes == capacity]
    return [tenant.hit_ratio for tenant in case.tenants]


def test_estimates_of_sizes_and_quotas_are_near_a_replay(divided: Sampled) -> None:
    found = advising.advise(divided.url)
    divided.stop()
    assert (found.source, found.recordings, found.requests) == ("curves", (), 0)
    assert found.accesses == 9000 * RUN
    assert any("estimates from sampled curves" in note for note in found.notes)
    for capacity in (CAPACITY // 2, CAPACITY, 2 * CAPACITY):
        exact = divided.replayed(cache__capacity=f"{capacity // MIB}MiB")
        assert ratios(found, capacity) == pytest.approx(exact, abs=ERROR)
    (goal,) = found.goals
    assert (goal.name, goal.goal_hit_ratio) == ("more", 0.45)
    assert goal.needed_bytes is not None
    assert goal.safe_bytes is not None
    assert goal.more_bytes == goal.needed_bytes - CAPACITY // 2
    assert goal.needed_bytes <= goal.safe_bytes
    # A cache twice its size, whose half is what the goal needs.
    needed = divided.replayed(cache__capacity=f"{2 * goal.needed_bytes // BLOCK} blocks")[1]
    assert needed == pytest.approx(0.45, abs=ERROR)
    assert any(line.startswith("more: ") and "than its quota" in line for line in found.advice)
    assert any(line.startswith("all goals in hit ratio: ") for line in found.advice)


def test_a_shared_cache_is_estimated_as_one(tmp_path: Path, command: Command) -> None:
    sampled = Sampled(tmp_path, command, "shared")
    sampled.load(9000)
    found = advising.advise(sampled.url, capacities=["32MiB", "128MiB"])
    sampled.stop()
    for capacity in (CAPACITY // 2, CAPACITY, 2 * CAPACITY):
        exact = sampled.replayed(cache__capacity=f"{capacity // MIB}MiB")
        assert ratios(found, capacity) == pytest.approx(exact, abs=ERROR)
    (goal,) = found.goals
    assert goal.more_bytes is None
    assert any(line.endswith("to itself") for line in found.advice)
    assert any(line.startswith("all goals in hit ratio: ") for line in found.advice)


def test_curves_are_no_ground_to_compare_schemes(divided: Sampled, command: Command) -> None:
    asked = {"policies": ["arc"]}, {"partitions": ["hull"]}, {"last": "1h"}, {"settings": {"a": 1}}
    for options in asked:
        with pytest.raises(SpecError, match="found a server that records nothing"):
            advising.advise(divided.url, **options)
    shown = command("advise", divided.url, "--policy", "lru,arc", "--last", "2h")
    assert (shown.status, shown.err.count("\n")) == (2, 1)
    assert shown.err.startswith("error: --last: found a server that records nothing, expected")
    shown = command("advise", divided.url, "--capacity", "96MiB")
    assert shown.status == 0, shown.err
    assert "of sampled curves" in shown.out
    document = json.loads(command("advise", divided.url, "--json").out)
    assert (document["source"], len(document["cases"])) == ("curves", 3)
    with pytest.raises(SpecError, match="`capacity`: found 1KiB, expected a block or more"):
        advising.advise(divided.url, capacities=["1KiB"])


def curve(accesses: int, *points: tuple[int, float, float]) -> SampledCurve:
    """Return a curve by sizes in blocks, miss ratios and their high ends."""
    found = tuple(
        CurvePoint(bytes=size * BLOCK, miss_ratio=ratio, low=ratio, high=high)
        for size, ratio, high in points
    )
    return SampledCurve(
        policy="lru", seconds=60.0, accesses=accesses, trusted_bytes=10 * BLOCK, points=found
    )


def test_sizes_between_two_points_lie_on_a_line() -> None:
    line = curve(100, (0, 1.0, 1.0), (100, 0.5, 0.6), (200, 0.1, 0.3))
    assert sampled_curves.miss_ratio(line, 50 * BLOCK) == pytest.approx(0.75)
    assert sampled_curves.miss_ratio(line, 1000 * BLOCK) == 0.1
    assert sampled_curves.best_hit_ratio(line) == 0.9
    need = sampled_curves.needed(line, 0.7, BLOCK)
    assert need == sampled_curves.Needed(150 * BLOCK, 200 * BLOCK)
    assert sampled_curves.needed(line, 0.8, BLOCK) == sampled_curves.Needed(175 * BLOCK, None)
    assert sampled_curves.needed(line, 0.95, BLOCK) is None
    assert sampled_curves.needed(line, 0.001, BLOCK) == sampled_curves.Needed(
        10 * BLOCK, 10 * BLOCK
    ), "the least size that the sample can tell"


def test_tenants_share_a_cache_by_their_rates_of_misses() -> None:
    # Scans: all accesses miss, so that a tenant holds as much as it accesses.
    scan = (0, 1.0, 1.0), (1000, 1.0, 1.0)
    held = sampled_curves.shared([curve(100, *scan), curve(300, *scan)], 400 * BLOCK)
    assert held == pytest.approx([100 * BLOCK, 300 * BLOCK])
    # One fits in less than its part, whatever its rate.
    small = curve(1000, (0, 1.0, 1.0), (10, 0.0, 0.0))
    held = sampled_curves.shared([small, curve(100, *scan)], 400 * BLOCK)
    assert held == pytest.approx([10 * BLOCK, 390 * BLOCK], rel=1e-3)
    assert sampled_curves.shared([small, curve(1, *scan)], 4000 * BLOCK) == [
        10 * BLOCK,
        1000 * BLOCK,
    ]


def test_the_least_number_is_found() -> None:
    assert sampled_curves.least(lambda blocks: blocks >= 37, 1000) == 37
    assert sampled_curves.least(lambda blocks: blocks >= 0, 1000) == 0
    assert sampled_curves.least(lambda blocks: False, 1000) is None
