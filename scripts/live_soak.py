#!/usr/bin/env python3
"""A live server under random load and random changes, for long; its content and memory checked.

For: `make live-soak`, or `scripts/live_soak.py [--rounds N] [--seed S] [--server PATH] [--folder
DIR]`. A round is some batches of requests to random exports, and one change: a tenant comes or
goes, a volume grows, caps, bounds, weights, the size of the cache, the policy, the partitioner or
what is on trial change by a reload. What decides is saved beside a recording each second. Now and
then the server is stopped in order, or killed and started again. All that is read is compared with
what was written: after a kill each block holds its last flushed content or later content. Prints a
row for each life of the server, and fails if content is wrong, a check of the devices finds
something, what is saved differs from what decides, or memory grows. Must never know: how the server
works. Units: bytes, blocks.
"""

from __future__ import annotations

import argparse
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from cachewright import words
from cachewright.cli import output
from cachewright.live import serving, watching
from cachewright.tables import Column, Table, rank

ROOT = Path(__file__).resolve().parent.parent
BLOCK = 4096
MIB = 1 << 20
READ, WRITE, FLUSH, TRIM, ZERO = 0, 1, 3, 4, 6
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698
BATCHES = 40
DEPTH = 16
# How much more memory the later half of the server's lives may take at its peak.
GROWTH = 1.3
NAMES = ("a", "b", "c", "d")
STACK = """
[cache]
capacity = "{capacity}MiB"
policy = "{policy}"
partition = "{partition}"

[replay]
interval = "500ms"

[serve]
devices = ["one.img", "two.img"]
listen = ["unix:live.sock"]
monitor = "127.0.0.1:0"
segment = "512KiB"
dirty_high = {dirty_high}
memory = "{memory}"
latency_target = "20ms"
record = "kept"
record_span = "1s"
record_files = 4
{trial}
"""
# What a server says when the second cache, which is saved beside recordings, is not as its own.
FAULT = "a fault of the server"
TRIALS = (
    "",
    'trial = "arc"',
    'trial_partition = "hull"',
    'trial = "sieve"\ntrial_partition = "shared"',
)
TENANT = """
[[tenant]]
name = "{name}"
backing = "{name}.img"
weight = {weight}
{cap}
"""


@dataclass
class Volume:
    """What a volume may hold: values of each block since it was last durable, the newest last."""

    blocks: int
    held: dict[int, list[int]] = field(default_factory=dict)

    def write(self, block: int, value: int) -> None:
        """Note what was written, or 0 for zeroes."""
        self.held.setdefault(block, [0]).append(value)

    def flush(self) -> None:
        """Note that all is durable."""
        for values in self.held.values():
            del values[:-1]

    def read(self, block: int, value: int, *, after_kill: bool) -> bool:
        """Whether a value may be read; after a kill it is what counts from then on."""
        values = self.held.get(block, [0])
        if not after_kill:
            return value == values[-1]
        self.held[block] = [value]
        return value in values


class Client:
    """A connection to an export; requests of a batch are under way together."""

    def __init__(self, path: Path, name: str) -> None:
        """Connect, and open the export."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.take(18)
        encoded = name.encode()
        self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, len(encoded)) + encoded)
        (self.bytes,) = struct.unpack(">Q", self.take(10)[:8])

    def take(self, count: int) -> bytes:
        """Receive so many bytes."""
        found = bytearray()
        while len(found) < count:
            # What waits for all bytes may come back with fewer.
            part = self.socket.recv(count - len(found), socket.MSG_WAITALL)
            if not part:
                raise ConnectionError(f"a connection ended: {len(found)} of {count} bytes came")
            found += part
        return bytes(found)

    def batch(self, requests: list[tuple[int, int, int, bytes]]) -> list[bytes]:
        """Send requests (kind, first block, blocks, data); return the data of each."""
        out = []
        for cookie, (kind, block, count, data) in enumerate(requests):
            place, length = block * BLOCK, count * BLOCK
            out.append(struct.pack(">IHHQQI", REQUEST_MAGIC, 0, kind, cookie, place, length) + data)
        self.socket.sendall(b"".join(out))
        found = [b""] * len(requests)
        for _ in requests:
            magic, error, cookie = struct.unpack(">IIQ", self.take(16))
            if magic != REPLY_MAGIC or error:
                raise SystemExit(f"request {requests[cookie][:3]} was answered with error {error}")
            if requests[cookie][0] == READ:
                found[cookie] = self.take(requests[cookie][2] * BLOCK)
        return found


def data_of(value: int, count: int) -> bytes:
    """Return blocks that say which write they are of."""
    return struct.pack("<Q", value) * (count * BLOCK // 8)


class Soak:
    """The server, its clients, and what volumes may hold."""

    def __init__(self, folder: Path, server: Path, seed: int) -> None:
        """Make files and format the devices."""
        self.folder, self.server = folder, server
        self.random = random.Random(seed)
        self.stack = folder / "stack.toml"
        self.values = {
            "capacity": 12,
            "policy": "s3-fifo",
            "partition": "static",
            "trial": "",
            "dirty_high": 0.6,
            "memory": "1MiB",
        }
        self.weights = dict.fromkeys(NAMES, 1)
        self.caps = dict.fromkeys(NAMES, "")
        self.served = set(NAMES[:3])
        self.volumes = {name: Volume(2 * MIB * 8 // BLOCK) for name in NAMES}
        for name in NAMES:
            self.resize(f"{name}.img", self.volumes[name].blocks * BLOCK)
        for name in ("one.img", "two.img"):
            self.resize(name, 40 * MIB)
        self.write_stack()
        serving.format_devices(self.stack)
        self.clients: dict[str, Client] = {}
        self.tag = 0
        self.rows: list[dict[str, int]] = []
        self.after_kill = False
        self.start()

    def resize(self, name: str, size: int) -> None:
        """Make a file of this size, or grow one."""
        with (self.folder / name).open("ab") as file:
            file.truncate(size)

    def write_stack(self) -> None:
        """Write the stack file as things are wanted."""
        text = STACK.format(**self.values)
        for name in NAMES:
            if name in self.served:
                cap, weight = self.caps[name], self.weights[name]
                text += TENANT.format(name=name, weight=weight, cap=cap)
        self.stack.write_text(text)

    def start(self) -> None:
        """Start the server and connect."""
        self.log = (self.folder / "server.log").open("a")
        begin = self.log.tell()
        command = [str(self.server), str(self.stack)]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        lines: list[str] = []
        while not any(line.startswith("cache: ") for line in lines):
            if self.process.poll() is not None:
                raise SystemExit(f"the server has ended; see {self.log.name}")
            time.sleep(0.01)
            with Path(self.log.name).open() as said:
                said.seek(begin)
                lines = said.readlines()
        monitor = next(line for line in lines if line.startswith("monitor: "))
        self.monitor = monitor.removeprefix("monitor: ").strip()
        self.clients = {name: self.connect(name) for name in sorted(self.served)}
        self.rows.append({"requests": 0, "reloads": 0, "peak": 0})

    def connect(self, name: str) -> Client:
        """Open a tenant's export."""
        client = Client(self.folder / "live.sock", name)
        self.volumes[name].blocks = client.bytes // BLOCK
        return client

    def memory(self) -> int:
        """Return bytes of memory of the server."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) << 10

    def stop(self, *, kill: bool) -> None:
        """End the server in order, or kill it, and check the devices."""
        self.rows[-1]["killed"] = int(kill)
        self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        status = self.process.wait()
        self.log.close()
        if status not in (0, -signal.SIGKILL):
            raise SystemExit(f"the server ended with status {status}; see {self.log.name}")
        if FAULT in Path(self.log.name).read_text():
            raise SystemExit(f"what is saved differs from what decides; see {self.log.name}")
        if not serving.check_devices(self.stack).sound:
            raise SystemExit(f"the devices are damaged; see `cachewright live check {self.stack}`")

    def last_words(self) -> str:
        """Return whether the server has ended, and the end of what it said."""
        self.log.flush()
        lines = Path(self.log.name).read_text().splitlines()[-5:]
        status = self.process.poll()
        state = "goes on" if status is None else f"has ended with status {status}"
        return "\n".join([f"the server {state}; at last it said:", *lines])

    def load(self) -> None:
        """Send one batch to one export, and check what is read."""
        name = self.random.choice(sorted(self.clients))
        client, volume = self.clients[name], self.volumes[name]
        # Requests of a batch are about different blocks: their order is not known.
        hot = volume.blocks // 4 if self.random.random() < 0.7 else volume.blocks
        starts = self.random.sample(range(0, hot - 8, 8), min(DEPTH, hot // 8 - 1))
        requests = []
        for block in starts:
            kind = self.random.choice((READ, READ, READ, WRITE, WRITE, TRIM, ZERO))
            count = self.random.randint(1, 8)
            data = b""
            if kind == WRITE:
                self.tag += 1
                data = data_of(self.tag, count)
                for place in range(block, block + count):
                    volume.write(place, self.tag)
            elif kind == ZERO:
                for place in range(block, block + count):
                    volume.write(place, 0)
            elif kind == TRIM:
                # What it reads as afterwards is not promised: it is written at once.
                self.tag += 1
                client.batch([(TRIM, block, count, b"")])
                kind, data = WRITE, data_of(self.tag, count)
                for place in range(block, block + count):
                    volume.held.setdefault(place, [0]).extend([*self.ever(volume, place), self.tag])
            requests.append((kind, block, count, data))
        self.rows[-1]["requests"] += len(requests)
        for (kind, block, count, _), data in zip(requests, client.batch(requests), strict=True):
            if kind == READ:
                self.check(name, block, count, data, after_kill=False)
        if self.random.random() < 0.2:
            client.batch([(FLUSH, 0, 0, b"")])
            volume.flush()

    def ever(self, volume: Volume, block: int) -> list[int]:
        """Return what a block may hold after a trim: any of its values, or zeroes."""
        return [0, *volume.held.get(block, [0])]

    def check(self, name: str, block: int, count: int, data: bytes, *, after_kill: bool) -> None:
        """Compare what was read with what may be there."""
        for place in range(count):
            part = data[place * BLOCK : (place + 1) * BLOCK]
            (value,) = struct.unpack("<Q", part[:8])
            whole = part == data_of(value, 1)
            volume = self.volumes[name]
            if not whole or not volume.read(block + place, value, after_kill=after_kill):
                allowed = volume.held.get(block + place, [0])
                raise SystemExit(
                    f"export {name}, block {block + place}: found {value}, expected {allowed}"
                )

    def read_all(self, *, after_kill: bool) -> None:
        """Read and check all volumes."""
        for name, client in self.clients.items():
            blocks = self.volumes[name].blocks
            for block in range(0, blocks, 64):
                count = min(64, blocks - block)
                (data,) = client.batch([(READ, block, count, b"")])
                self.check(name, block, count, data, after_kill=after_kill)

    def reload(self) -> None:
        """Let the server take the stack over."""
        self.write_stack()
        watching.reload(self.monitor)
        self.rows[-1]["reloads"] += 1

    def change(self) -> None:
        """Change one thing."""
        kind = self.random.randrange(6)
        name = self.random.choice(NAMES)
        if kind == 0 and name in self.served and len(self.served) > 1:
            self.remove(name)
        elif kind <= 1 and name not in self.served:
            self.served.add(name)
            self.reload()
            self.clients[name] = self.connect(name)
        elif kind == 2 and name in self.served:
            self.resize(f"{name}.img", min(self.volumes[name].blocks + 64, 8192) * BLOCK)
            self.reload()
            self.clients[name] = self.connect(name)
        elif kind == 3:
            self.caps[name] = self.random.choice(("", "max_iops = 5000", 'max_bandwidth = "8MiB"'))
            self.reload()
        else:
            self.weights[name] = self.random.randint(1, 4)
            self.values["capacity"] = self.random.randint(6, 16)
            self.values["partition"] = self.random.choice(("static", "hull", "equal"))
            self.values["policy"] = self.random.choice(("s3-fifo", "lru", "arc"))
            self.values["trial"] = self.random.choice(TRIALS)
            self.values["dirty_high"] = self.random.choice((0.3, 0.6, 1.0))
            self.values["memory"] = self.random.choice(("0MiB", "1MiB", "3MiB"))
            self.reload()
        status = watching.status(self.monitor)
        cached = sum(one.cached_bytes for one in status.tenants)
        if status.dirty_bytes > cached or cached > max(status.capacity_bytes, 16 * MIB):
            raise SystemExit(f"{cached} bytes are cached, {status.dirty_bytes} of them dirty")
        self.rows[-1]["peak"] = max(self.rows[-1]["peak"], self.memory())

    def remove(self, name: str) -> None:
        """Take a tenant out, wait until it has gone, and look at its device."""
        self.clients[name].batch([(FLUSH, 0, 0, b"")])
        self.volumes[name].flush()
        self.served.remove(name)
        del self.clients[name]
        self.reload()
        while any(one.name == name for one in watching.status(self.monitor).tenants):
            self.load()
        content = (self.folder / f"{name}.img").read_bytes()
        count = self.volumes[name].blocks
        self.check(name, 0, count, content[: count * BLOCK], after_kill=False)

    def run(self, rounds: int) -> None:
        """Go through the rounds."""
        for number in range(rounds):
            for _ in range(BATCHES):
                self.load()
            self.change()
            if number % 25 == 24:
                kill = self.random.random() < 0.7
                if not kill:
                    self.read_all(after_kill=False)
                self.stop(kill=kill)
                self.start()
                self.read_all(after_kill=kill)
        self.read_all(after_kill=False)
        self.stop(kill=False)


def main() -> int:
    """Run it; 1 if memory grows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", type=Path, default=ROOT / "target/release/cachewrightd")
    parser.add_argument("--folder", type=Path, help="where the files go; a new one if left out")
    arguments = parser.parse_args()
    if not arguments.server.exists():
        sys.exit(f"found no {arguments.server}, expected the server (`make cachewrightd`)")
    if arguments.folder:
        arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        soak = Soak(Path(folder), arguments.server.resolve(), arguments.seed)
        try:
            soak.run(arguments.rounds)
        except ConnectionError as error:
            raise SystemExit(f"{error}; {soak.last_words()}") from error
        finally:
            soak.process.kill()
    return report(soak.rows)


def report(rows: list[dict[str, int]]) -> int:
    """Print a row for each life; 1 if memory grows."""
    columns: list[Column[dict[str, int]]] = [
        rank(rows)._replace(heading="life"),
        Column("requests", lambda row: row["requests"], words.count),
        Column("reloads", lambda row: row["reloads"], words.count),
        Column("peak memory", lambda row: row["peak"], words.size),
        Column("end", lambda row: "killed" if row.get("killed") else "in order", numeric=True),
    ]
    output.show(Table("", columns, rows))
    peaks = [row["peak"] for row in rows if row["peak"]]
    half = (len(peaks) + 1) // 2
    grown = max(peaks[half:], default=0) / max(peaks[:half], default=1)
    print(f"the later lives took {grown:.2f} times the memory of the earlier; content was right")
    return 0 if grown <= GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
