"""Devices that lose what was not synced when power fails: a plugin of nbdkit.

`nbdkit python devices.py control=SOCKET seed=N device=NAME:BYTES ...` serves each device as an
export of its name. Reads return what was written last. A flush makes durable what was written
before it began; all else is volatile. At a loss of power each volatile write is kept, lost or torn
by sectors, in one of several patterns, and every request fails until power is back.

A line sent to the unix socket `control` is a command, answered by a line:

- `arm COUNT PROCESS lose|kill all|changes`: at the request of this number from now (all of them, or
  writes and flushes alone), SIGKILL goes to the process; with `lose` power is lost, too.
- `disarm`: what was armed happens no more. Answers `armed` or `fired`.
- `lose`: power is lost now. `on`: it is back. `lie`: flushes are answered and do nothing.
- `counts`: volatile writes, and requests of each kind so far.

Sizes are bytes, multiples of the sector of 512.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import nbdkit

API_VERSION = 2
SECTOR = 512
# Seconds that a flush takes at most: what is written meanwhile stays volatile.
SLOWEST_FLUSH = 0.002


@dataclass
class Volatile:
    """A write that no flush has made durable; `number` is its turn among all of its device."""

    number: int
    offset: int
    data: bytes


class Device:
    """What is read from a device, what is durable of it, and the writes between the two."""

    def __init__(self, size: int) -> None:
        """Make one that holds zeroes."""
        self.size = size
        self._content, self._durable = bytearray(size), bytearray(size)
        self._volatile: list[Volatile] = []
        self._written = 0

    def read(self, offset: int, length: int) -> bytes:
        """Return what was written last."""
        return bytes(self._content[offset : offset + length])

    def write(self, offset: int, data: bytes) -> None:
        """Take a write, which is volatile."""
        self._content[offset : offset + len(data)] = data
        self._written += 1
        self._volatile.append(Volatile(self._written, offset, data))

    def written(self) -> int:
        """Return the number of the last write: a flush that begins now is about these."""
        return self._written

    def make_durable(self, last: int) -> None:
        """Make writes up to this number durable."""
        for write in self._volatile:
            if write.number <= last:
                self._keep(write.offset, write.data)
        self._volatile = [write for write in self._volatile if write.number > last]

    def volatile(self) -> int:
        """Return how many writes are volatile."""
        return len(self._volatile)

    def lose(self, rng: random.Random) -> None:
        """Keep, lose or tear the volatile writes."""
        pattern = rng.choice(PATTERNS)
        chance, cut = rng.choice((0.1, 0.5, 0.9)), rng.randint(0, len(self._volatile))
        for place, write in enumerate(self._volatile):
            fate = pattern
            if pattern == "each write":
                fate = rng.choice(("all kept", "all lost", "each sector"))
            elif pattern in ("the first", "the last"):
                # The one at the cut is torn.
                kept = place < cut if pattern == "the first" else place > cut
                fate = "each sector" if place == cut else "all kept" if kept else "all lost"
            if fate == "all kept":
                self._keep(write.offset, write.data)
            elif fate == "each sector":
                for at in range(0, len(write.data), SECTOR):
                    if rng.random() < chance:
                        self._keep(write.offset + at, write.data[at : at + SECTOR])
        self._volatile = []
        self._content = bytearray(self._durable)

    def _keep(self, offset: int, data: bytes) -> None:
        self._durable[offset : offset + len(data)] = data


# What a loss of power does to the volatile writes of a device; each of them as often as it stands.
PATTERNS = (
    "all lost",
    "all lost",
    "all kept",
    "each write",
    "each write",
    "each sector",
    "the first",
    "the last",
)


@dataclass
class Trigger:
    """A kill, and perhaps a loss of power, that waits for a request."""

    requests: int
    process: int
    loses: bool
    counts_reads: bool


def refuse(why: str) -> NoReturn:
    """Fail a request."""
    nbdkit.set_error(errno.EIO)
    raise OSError(errno.EIO, why)


class Power:
    """All devices, which have power or not, and lose it at one time."""

    def __init__(self) -> None:
        """Make none yet, with power."""
        self.lock = threading.Lock()
        self.devices: dict[str, Device] = {}
        self.random = random.Random(0)
        self._is_on, self._lies = True, False
        self._trigger: Trigger | None = None
        self._counts: Counter[str] = Counter()

    def arrive(self, kind: str, device: Device, offset: int = 0, data: bytes = b"") -> None:
        """Count a request, and pull the trigger if it is its turn. Errors: power is off."""
        self._counts[kind] += 1
        trigger = self._trigger
        if trigger is not None and self._is_on and (trigger.counts_reads or kind != "read"):
            trigger.requests -= 1
            if trigger.requests <= 0:
                self._trigger = None
                with contextlib.suppress(ProcessLookupError):
                    os.kill(trigger.process, signal.SIGKILL)
                reached = self.random.random() < 0.5
                if trigger.loses:
                    if reached and data:
                        device.write(offset, data)
                    self.lose()
                elif not reached:
                    refuse("its process was killed")
        self.check()

    def check(self) -> None:
        """Errors: power is off."""
        if not self._is_on:
            refuse("no power")

    def lose(self) -> None:
        """Lose power."""
        self._is_on = False
        for device in self.devices.values():
            device.lose(self.random)

    def flush(self, device: Device) -> None:
        """Make durable what was written before; other requests go on meanwhile."""
        with self.lock:
            self.arrive("flush", device)
            last, pause = device.written(), self.random.random() * SLOWEST_FLUSH
        time.sleep(pause)
        with self.lock:
            self.check()
            if not self._lies:
                device.make_durable(last)

    def command(self, words: Sequence[str]) -> str:
        """Carry out a command; return the answer."""
        match words:
            case ["arm", count, process, fate, kinds]:
                loses, all_kinds = fate == "lose", kinds == "all"
                self._trigger = Trigger(int(count), int(process), loses, all_kinds)
            case ["disarm"]:
                armed, self._trigger = self._trigger, None
                return "fired" if armed is None else "armed"
            case ["lose"]:
                self.lose()
            case ["on"]:
                self._is_on = True
            case ["lie"]:
                self._lies = True
            case ["counts"]:
                volatile = sum(device.volatile() for device in self.devices.values())
                counts = [f"{kind} {count}" for kind, count in sorted(self._counts.items())]
                return ", ".join([f"volatile {volatile}", *counts])
            case _:
                return f"error: found `{' '.join(words)}`, expected a command"
        return "done"


POWER = Power()
CONTROL: list[Path] = []


def config(key: str, value: str) -> None:
    """Take a setting of nbdkit's command line."""
    match key:
        case "control":
            CONTROL.append(Path(value))
        case "seed":
            POWER.random = random.Random(int(value))
        case "device":
            name, size = value.split(":")
            POWER.devices[name] = Device(int(size))
        case _:
            raise ValueError(f"found `{key}`, expected control, seed or device")


def config_complete() -> None:
    """Errors: no device, or no socket for commands."""
    if not CONTROL or not POWER.devices:
        raise ValueError("expected control=SOCKET and device=NAME:BYTES")


def after_fork() -> None:
    """Listen for commands."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(CONTROL[0]))
    listener.listen()
    threading.Thread(target=obey, args=(listener,), daemon=True).start()


def obey(listener: socket.socket) -> None:
    """Carry out the commands of all that connect, one after the other."""
    while True:
        peer, _ = listener.accept()
        with peer, peer.makefile("r") as lines:
            for line in lines:
                with POWER.lock:
                    answer = POWER.command(line.split())
                peer.sendall(f"{answer}\n".encode())


def thread_model() -> int:
    """Let requests go on beside a flush."""
    return int(nbdkit.THREAD_MODEL_PARALLEL)


def list_exports(readonly: int, is_tls: int) -> list[tuple[str, str]]:
    """Return the names of all devices."""
    return [(name, "") for name in POWER.devices]


def open(readonly: int) -> Device:
    """Return the device that a client asks for."""
    return POWER.devices[nbdkit.export_name()]


def get_size(device: Device) -> int:
    """Return its bytes."""
    return device.size


def can_multi_conn(device: Device) -> bool:
    """Return that a flush is about the writes of all connections."""
    return True


def can_fua(device: Device) -> int:
    """Return that nbdkit flushes behind a write with FUA."""
    return int(nbdkit.FUA_EMULATE)


def pread(device: Device, buffer: bytearray, offset: int, flags: int) -> None:
    """Read."""
    with POWER.lock:
        POWER.arrive("read", device)
        buffer[:] = device.read(offset, len(buffer))


def pwrite(device: Device, buffer: bytearray, offset: int, flags: int) -> None:
    """Write."""
    data = bytes(buffer)
    with POWER.lock:
        POWER.arrive("write", device, offset, data)
        device.write(offset, data)


def zero(device: Device, count: int, offset: int, flags: int) -> None:
    """Write zeroes."""
    with POWER.lock:
        POWER.arrive("zero", device, offset, bytes(count))
        device.write(offset, bytes(count))


def flush(device: Device, flags: int) -> None:
    """Make durable what was written before."""
    POWER.flush(device)
