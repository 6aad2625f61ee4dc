#!/usr/bin/env python3
"""Loses power under the live server, again and again, and judges all that is read afterwards.

`scripts/live_losses.py [--rounds N] [--each N] [--seed S] [--settings NAME...] [--lie]`. The server
runs on devices that lose what was not synced: its cache's devices and those of two volumes. Several
connections to each volume write, write with FUA, zero, trim, flush and read. Each round has some
lives of the server, which end by a kill that keeps what is volatile, by an end in order, or, at
last, by a loss of power; at any request that a device gets. Starts are killed, too; the stack is
reloaded, a volume is taken out, dirty blocks are written back by the tool. What each sector may
hold is judged by `losses/sectors.py`, after each restart by reading everything.

A world is one setting (`write/policy/block/engine/devices of the cache`) with devices of its own,
for `--each` rounds; its seed is printed and plays it again, but for what processes do at one time.
`--lie`: the devices forget what they were told to sync, and the check must see it. Needs root, FUSE
and the tools named in `TOOLS`; without them it says `skipped`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cachewright import words
from cachewright._native import RunError, SpecError
from cachewright.live import serving
from live_kills import ROOT
from losses.client import FUA, NO_HOLE, Command, Connection, HungError, RequestError
from losses.rig import Devices, RigError, Server
from losses.sectors import SECTOR, Volume

TOOLS = ("nbdkit", "nbdfuse", "umount")
MIB = 1 << 20
VOLUME_BYTES = 4 * MIB
CACHE_BYTES = 10 * MIB
NAMES = ("a", "b")
CONNECTIONS = 2
# Requests that a connection has under way at one time.
DEPTH = 3
# Bytes of a read, where all is read.
STRIDE = 64 << 10
# What comes first in a life, unless power was lost: then it is to read all.
FIRST = ("read", "flush", "flush", "nothing")
# The least and most requests of a life; few in some, so that no later sync hides a missing one.
REQUESTS = ((0, 10), (0, 10), (50, 300), (50, 600))
# Losses of power in a world unless told otherwise.
EACH = 10
# Problems that a world prints in full.
SHOWN = 3
CHOICES = (
    ("write-back", "write-through", "write-around"),
    ("lru", "larc", "s3-fifo", "smq"),
    ("4KiB", "8KiB"),
    ("uring", "threads"),
    ("1", "2"),
)
SETTINGS = tuple("/".join(choice) for choice in itertools.product(*CHOICES))
# Settings that follow one another differ in most of their parts.
STEP = 41
STACK = """
[cache]
capacity = "{capacity}KiB"
policy = "{policy}"
write = "{write}"
block = "{block}"

[serve]
devices = [{devices}]
listen = ["unix:live.sock"]
engine = "{engine}"
segment = "256KiB"
dirty_high = {dirty_high}
"""
TENANT = """
[[tenant]]
name = "{name}"
backing = "{name}.img"
"""


def missing() -> str | None:
    """Name what is needed and not here; nothing if all is."""
    if os.geteuid() != 0:
        return "root"
    if not Path("/dev/fuse").exists():
        return "/dev/fuse"
    for tool in TOOLS:
        if shutil.which(tool) is None:
            return tool
    plugin = ["nbdkit", "--dump-plugin", "python"]
    if subprocess.run(plugin, capture_output=True, check=False).returncode:
        return "nbdkit's plugin for Python"
    return None


@dataclass
class Load:
    """Requests that are sent, and what happens at one of them."""

    requests: int
    # The request before which something happens, and what.
    turn: int = 0
    happens: Callable[[], None] = lambda: None
    sent: int = 0

    def goes_on(self) -> bool:
        """Count a request; whether it is to be sent."""
        if self.sent >= self.requests:
            return False
        self.sent += 1
        if self.sent == self.turn:
            self.happens()
        return True


class World:
    """A server of one setting, its devices, its clients, and what was found."""

    def __init__(self, folder: Path, program: Path, setting: str, seed: int) -> None:
        """Make the devices and format those of the cache."""
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self._folder, self._program = folder, program
        self._random = random.Random(seed)
        write, policy, block, engine, caches = setting.split("/")
        cache = [f"cache{number}" for number in range(int(caches))]
        sizes = dict.fromkeys(cache, CACHE_BYTES // len(cache)) | dict.fromkeys(NAMES, VOLUME_BYTES)
        self._values = {
            "write": write,
            "policy": policy,
            "block": block,
            "engine": engine,
            "devices": ", ".join(f'"{name}.img"' for name in cache),
            "capacity": "2048",
            "dirty_high": "1.0",
        }
        sectors = VOLUME_BYTES // SECTOR
        self.volumes = {name: Volume(name, number, sectors) for number, name in enumerate(NAMES)}
        self._stack = folder / "stack.toml"
        self._write_stack(NAMES)
        self._server: Server | None = None
        self._connections: dict[str, list[Connection]] = {}
        # Whether what is read first is what a loss of power has left.
        self._after_loss = False
        self._is_stopping = False
        self.devices = Devices(folder, sizes, seed)
        try:
            serving.format_devices(self._stack)
        except BaseException:
            self.devices.close()
            raise

    def _write_stack(self, names: tuple[str, ...]) -> None:
        text = STACK.format(**self._values) + "".join(TENANT.format(name=name) for name in names)
        self._stack.write_text(text)

    async def close(self) -> None:
        """End everything."""
        try:
            await self._disconnect()
            if self._server is not None:
                self._server.signal(signal.SIGKILL)
                await self._server.end()
        finally:
            self.devices.close()

    async def round(self) -> None:
        """Go through some lives of the server, of which the last one ends by a loss of power."""
        for _ in range(self._random.choice((0, 0, 1, 1, 2, 3))):
            await self._live(self._random.choice(("kill", "kill", "kill", "stop")))
            if self._random.random() < 0.1:
                self._write_back()
        await self._live("removal" if self._random.random() < 0.1 else "loss")

    async def settle(self) -> None:
        """Read all after the last loss, and end in order."""
        await self._live("stop", requests=0)

    async def _live(self, end: str, requests: int | None = None) -> None:
        """Start the server, send requests, and end it so."""
        server = await self._start()
        await self._connect()
        first = "read" if self._after_loss else self._random.choice(FIRST)
        self._after_loss = False
        if first == "flush":
            await asyncio.gather(*(self._flush(name) for name in NAMES))
        if first != "nothing" or requests == 0:
            await asyncio.gather(*(self._read_all(name) for name in NAMES))
        if end == "removal":
            await self._remove(server)
            return
        if requests is None:
            requests = self._random.randint(*self._random.choice(REQUESTS))
        load = Load(requests)
        await self._load(server, load, end)
        await self._disconnect()
        lost, in_order = end == "loss", False
        if end == "stop":
            lost = self._random.random() < 0.5
            in_order = await self._stop(server, loses=lost)
        else:
            if self.devices.command("disarm") == "armed":
                server.signal(signal.SIGKILL)
            await self._ended(server, -signal.SIGKILL)
        self._gone(lost=lost, in_order=in_order)
        if end != "loss":
            self.counts[f"{end}s"] += 1

    async def _load(self, server: Server, load: Load, end: str) -> None:
        """Send requests until all are answered, or until the server ends as it should."""
        may_end = False
        process = server.process.pid
        if end in ("kill", "loss"):
            may_end = True
            turn = self._random.randint(1, 3 * load.requests + 1)
            fate = "lose" if end == "loss" else "kill"
            self.devices.command("arm", turn, process, fate, "changes")
        chance = self._random.random()
        if chance < 0.25:
            load.turn = self._random.randint(1, load.requests or 1)
            load.happens = lambda: self._reload(server)
        elif chance < 0.6 and end == "stop":
            may_end = True
            load.turn = self._random.randint(1, load.requests or 1)
            load.happens = lambda: self._terminate(server)
        clients = [
            self._send(connection, self.volumes[name], load)
            for name, connections in self._connections.items()
            for connection in connections
            for _ in range(DEPTH)
        ]
        cut = any(await asyncio.gather(*clients))
        if cut and not may_end:
            self.problems.append("a connection ended while the server was to go on")

    async def _send(self, connection: Connection, volume: Volume, load: Load) -> bool:
        """Send one request after the other; whether the connection ended first."""
        while load.goes_on():
            try:
                await self._request(connection, volume)
            except RequestError as error:
                self.problems.append(f"volume {volume.name}: a request was answered with {error}")
            except ConnectionError:
                return True
        return False

    async def _request(self, connection: Connection, volume: Volume) -> None:
        """Send a request at random, and tell the volume of it."""
        rng = self._random
        kinds = ("write", "zero", "trim", "flush", "read")
        (kind,) = rng.choices(kinds, (45, 8, 4, 5, 38))
        if kind == "flush":
            await self._flush(volume.name, connection)
            return
        self.counts["zeroes" if kind == "zero" else f"{kind}s"] += 1
        hot = volume.sectors // 4 if rng.random() < 0.7 else volume.sectors
        if rng.random() < 0.5:
            # Whole pages; the others are torn out of blocks.
            first, count = 8 * rng.randrange(hot // 8 - 16), 8 * rng.choice((1, 1, 2, 3, 16))
        else:
            first, count = rng.randrange(hot - 40), rng.randint(1, rng.choice((2, 8, 40)))
        offset, length = first * SECTOR, count * SECTOR
        if kind == "read":
            sent = volume.send_read()
            data = await connection.request(Command.READ, offset, length)
            volume.judge(sent, first, data)
            return
        fua = rng.random() < 0.08
        flags = FUA if fua else 0
        change = volume.send(kind, first, count, fua=fua)
        if kind == "write":
            command, data = Command.WRITE, volume.data(change)
        else:
            command, data = Command[kind.upper()], b""
            flags |= NO_HOLE if kind == "zero" and rng.random() < 0.5 else 0
        await connection.request(command, offset, length, flags=flags, data=data)
        volume.answer(change)

    async def _flush(self, name: str, connection: Connection | None = None) -> None:
        """Flush a volume."""
        volume = self.volumes[name]
        sent = volume.now()
        self.counts["flushes"] += 1
        await (connection or self._connections[name][0]).request(Command.FLUSH)
        volume.flush(sent)

    async def _read_all(self, name: str) -> None:
        """Read a volume from its start to its end."""
        volume, connection = self.volumes[name], self._connections[name][0]
        for offset in range(0, VOLUME_BYTES, STRIDE):
            sent = volume.send_read()
            try:
                data = await connection.request(Command.READ, offset, STRIDE)
            except RequestError as error:
                self.problems.append(
                    f"volume {name}: the read at {offset} was answered with {error}"
                )
            else:
                volume.judge(sent, offset // SECTOR, data)

    async def _start(self) -> Server:
        """Start the server; some starts are killed or lose power, and another one follows."""
        while self._random.random() < 0.25:
            loses = self._random.random() < 0.5
            server = await self._begin()
            turn, fate = self._random.randint(1, 60), "lose" if loses else "kill"
            self.devices.command("arm", turn, server.process.pid, fate, "all")
            await server.says("cache: ")
            if self.devices.command("disarm") == "armed":
                if await server.says("cache: "):
                    return server
                raise RigError(f"the server does not start; it said:\n{server.last_words()}")
            await self._ended(server, -signal.SIGKILL)
            if loses:
                self._gone(lost=True, in_order=False)
            self.counts["starts that were killed"] += 1
        server = await self._begin()
        if not await server.says("cache: "):
            raise RigError(f"the server does not start; it said:\n{server.last_words()}")
        return server

    async def _begin(self) -> Server:
        log = self._folder / "server.log"
        self._is_stopping = False
        self._server = await Server.start(self._program, self._stack, log)
        return self._server

    async def _ended(self, server: Server, expected: int) -> None:
        """Wait for the end of the server, and look at its exit status."""
        status = await server.end()
        self._server = None
        if status != expected:
            said = server.last_words()
            self.problems.append(f"exit status {status}, expected {expected}; it said:\n{said}")

    async def _stop(self, server: Server, *, loses: bool) -> bool:
        """End the server in order, or kill it on its way; whether it was in order."""
        kills = self._random.random() < 0.2
        if kills:
            turn, fate = self._random.randint(1, 20), "lose" if loses else "kill"
            self.devices.command("arm", turn, server.process.pid, fate, "changes")
        self._terminate(server)
        status = await server.end()
        killed = kills and self.devices.command("disarm") == "fired" and status != 0
        await self._ended(server, -signal.SIGKILL if killed else 0)
        if killed:
            self.counts["stops that were killed"] += 1
        return not killed

    def _terminate(self, server: Server) -> None:
        """Tell the server to end in order, once: told again it ends at once."""
        if not self._is_stopping:
            server.signal(signal.SIGTERM)
        self._is_stopping = True

    def _gone(self, *, lost: bool, in_order: bool) -> None:
        """Note that the server is gone; have power back if it was lost."""
        if lost:
            self.devices.lose_power()
            self._after_loss = True
            self.counts["losses of power"] += 1
        for volume in self.volumes.values():
            volume.restart(lost=lost, in_order=in_order)

    def _reload(self, server: Server) -> None:
        """Change bounds and the size of the cache while the server runs."""
        self._values["capacity"] = str(self._random.choice((512, 1024, 2048, 3072)))
        self._values["dirty_high"] = self._random.choice(("0.2", "0.5", "1.0"))
        self._write_stack(NAMES)
        server.signal(signal.SIGHUP)
        self.counts["reloads"] += 1

    async def _remove(self, server: Server) -> None:
        """Take a volume out; all of it is on its own device when the server says so."""
        name = self._random.choice(NAMES)
        if self._random.random() < 0.5:
            await self._load(server, Load(100), "removal")
        others = tuple(other for other in NAMES if other != name)
        self._write_stack(others)
        server.signal(signal.SIGHUP)
        removed = await server.says(f"export `{name}`: removed")
        volume = self.volumes[name]
        if removed:
            volume.flush(volume.now())
        else:
            self.problems.append(f"volume {name} was not removed; {server.last_words()}")
        await self._disconnect()
        server.signal(signal.SIGKILL)
        await self._ended(server, -signal.SIGKILL)
        self._gone(lost=True, in_order=False)
        if removed:
            self._read_device(name)
        self._write_stack(NAMES)
        self.counts["removals"] += 1

    def _write_back(self) -> None:
        """Write dirty blocks back by the tool; then the devices of the volumes hold all."""
        serving.write_back(self._stack)
        self._gone(lost=True, in_order=False)
        for name in NAMES:
            self._read_device(name)
        self.counts["write-backs by the tool"] += 1

    def _read_device(self, name: str) -> None:
        """Judge what the device of a volume holds without the cache."""
        volume = self.volumes[name]
        volume.judge(volume.send_read(), 0, self.devices.path(name).read_bytes())

    async def _connect(self) -> None:
        for name in NAMES:
            path = self._folder / "live.sock"
            opened = [await Connection.open(path, name) for _ in range(CONNECTIONS)]
            self._connections[name] = opened

    async def _disconnect(self) -> None:
        for connections in self._connections.values():
            for connection in connections:
                await connection.close()
        self._connections.clear()


async def play(world: World, rounds: int, *, lies: bool) -> None:
    """Play the rounds of a world; what ends them early is a problem of it."""
    try:
        if lies:
            world.devices.command("lie")
        for _ in range(rounds):
            await world.round()
        await world.settle()
    except (RigError, HungError, RequestError, SpecError, RunError, OSError) as error:
        world.problems.append(f"{type(error).__name__}: {error}")
    finally:
        await world.close()


def counted(counts: Counter[str]) -> str:
    """Return counts and what they are of."""
    return ", ".join(f"{words.count(count)} {kind}" for kind, count in sorted(counts.items()))


def report(world: World, shown: int) -> tuple[int, int]:
    """Print what was done, and so many of the problems; return those of content, and others."""
    content = [str(problem) for volume in world.volumes.values() for problem in volume.problems]
    print(f"  {counted(world.counts)}")
    for problem in [*content[:shown], *world.problems[:shown]]:
        print(f"  {problem}")
    if content or world.problems:
        print(
            f"  {len(content)} sectors were wrong, {len(world.problems)} other problems", flush=True
        )
    return len(content), len(world.problems)


def play_all(options: argparse.Namespace) -> int:
    """Play worlds until there were enough losses; return the exit status."""
    begin, totals = time.monotonic(), Counter[str]()
    content, others = 0, 0
    for number in itertools.count():
        rounds = min(options.each, options.rounds - number * options.each)
        if rounds <= 0:
            break
        seed = options.seed + number
        chosen: list[str] = options.settings or [SETTINGS[seed * STEP % len(SETTINGS)]]
        setting = chosen[number % len(chosen)]
        again = f"--settings {setting} --seed {seed} --rounds {rounds} --each {rounds}"
        print(f"world {number + 1}: {again}", flush=True)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            world = World(Path(folder), options.server, setting, seed)
            asyncio.run(play(world, rounds, lies=options.lie))
        found = report(world, 1 if options.lie else SHOWN)
        content, others = content + found[0], others + found[1]
        totals.update(world.counts)
    taken, losses = time.monotonic() - begin, totals["losses of power"]
    print(f"{losses} losses of power in {taken:.0f} s, {60 * losses / taken:.0f} a minute")
    print(f"{content} sectors were wrong, {others} other problems")
    print(counted(totals))
    if options.lie:
        print(f"the devices lied, and the check has {'' if content else 'not '}seen it")
        return 0 if content else 1
    return 1 if content or others else 0


def known(setting: str) -> str:
    """Return a setting of a command line. Errors: there is none of this name."""
    if setting in SETTINGS:
        return setting
    expected = "/".join("|".join(choice) for choice in CHOICES)
    raise argparse.ArgumentTypeError(f"found `{setting}`, expected {expected}")


def main() -> int:
    """Read the options; 1 if there was a problem, or with `--lie` if there was none."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=300, help="rounds, each with a loss of power")
    parser.add_argument("--each", type=int, default=EACH, help="rounds of a world")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument(
        "--settings", nargs="+", type=known, metavar="NAME", help="those to take in turn"
    )
    parser.add_argument(
        "--lie", action="store_true", help="let the devices forget; the check must see it"
    )
    parser.add_argument("--server", type=Path, default=ROOT / "target/release/cachewrightd")
    parser.add_argument("--folder", type=Path, help="where the files go; a new one if left out")
    options = parser.parse_args()
    lacking = missing()
    if lacking is not None:
        print(f"skipped: needs {lacking}")
        return 0
    if options.rounds < 1 or options.each < 1:
        sys.exit(
            f"found {options.rounds} rounds, {options.each} of each world, expected at least 1"
        )
    options.server = options.server.resolve()
    if not options.server.exists():
        sys.exit(f"found no {options.server}, expected the server (`make cachewrightd`)")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    return play_all(options)


if __name__ == "__main__":
    sys.exit(main())
