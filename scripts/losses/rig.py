"""A live server on devices that can lose power: nbdkit, nbdfuse for each device, and the server.

Each device is a file that nbdfuse makes of an export of `devices.py`. At a loss of power the files
are unmounted and mounted anew, so that the kernel keeps nothing of what was lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PLUGIN = Path(__file__).with_name("devices.py")
# Seconds after which a process counts as hung.
PATIENCE = 60


class RigError(Exception):
    """The devices or the server did not do what they must; says what."""


def until(done: Callable[[], bool], what: str) -> None:
    """Wait until something is so. Errors: it is not in `PATIENCE` seconds."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise RigError(f"{what}: not in {PATIENCE} s")
        time.sleep(0.002)


@dataclass
class Mount:
    """A device as a file of this size, while nbdfuse runs."""

    path: Path
    size: int
    process: subprocess.Popen[bytes]

    def is_there(self) -> bool:
        """Whether the file is the device."""
        return self.path.stat().st_size == self.size

    def take_away(self) -> bool:
        """Unmount it; false while something has it open."""
        words = ["umount", str(self.path)]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0


class Devices:
    """Devices that lose power at one time, each a file in a folder."""

    def __init__(self, folder: Path, sizes: dict[str, int], seed: int) -> None:
        """Make and mount devices of these bytes, `NAME.img` each."""
        self.folder, self._sizes = folder, sizes
        self._mounts: list[Mount] = []
        control, self._exports = folder / "control", folder / "exports"
        self._log = (folder / "devices.log").open("ab")
        words = [f"device={name}:{size}" for name, size in sizes.items()]
        words = [str(PLUGIN), f"control={control}", f"seed={seed}", *words]
        self._kit = self._start(
            "nbdkit", "-f", "--exit-with-parent", "-U", str(self._exports), "python", *words
        )
        self._control = socket.socket(socket.AF_UNIX)
        until(lambda: self._is_connected(control), "nbdkit")
        self._answers = self._control.makefile("r")
        self.mount()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, stdout=self._log, stderr=self._log)

    def _is_connected(self, control: Path) -> bool:
        if self._kit.poll() is not None:
            raise RigError(f"nbdkit has ended; see {self._log.name}")
        with contextlib.suppress(OSError):
            self._control.connect(str(control))
            return True
        return False

    def path(self, name: str) -> Path:
        """Return the file of a device."""
        return self.folder / f"{name}.img"

    def command(self, *words: str | int) -> str:
        """Tell the devices something; return the answer (see `devices.py`)."""
        self._control.sendall((" ".join(str(word) for word in words) + "\n").encode())
        answer = self._answers.readline().strip()
        if not answer or answer.startswith("error"):
            raise RigError(f"the devices answered `{answer}` to `{words[0]}`")
        return answer

    def mount(self) -> None:
        """Make the devices files."""
        for name, size in self._sizes.items():
            path = self.path(name)
            path.touch()
            url = f"nbd+unix:///{name}?socket={self._exports}"
            self._mounts.append(Mount(path, size, self._start("nbdfuse", str(path), url)))
        for mount in self._mounts:
            until(mount.is_there, "nbdfuse")

    def unmount(self) -> None:
        """Take the files away."""
        for mount in self._mounts:
            # What a killed server had under way may hold it for a moment.
            until(mount.take_away, "umount")
            mount.process.wait()
        self._mounts.clear()

    def lose_power(self) -> None:
        """Lose power now, if it is not lost already, and have it back."""
        self.command("lose")
        self.unmount()
        self.command("on")
        self.mount()

    def close(self) -> None:
        """End all of it."""
        for mount in self._mounts:
            words = ["umount", "-l", str(mount.path)]
            subprocess.run(words, capture_output=True, check=False)
            mount.process.terminate()
            mount.process.wait()
        self._kit.terminate()
        self._kit.wait()
        self._log.close()


class Server:
    """One life of a server, from its start to its end."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        """Take a process that was started; `start` does that."""
        self.process = process
        self._handle = os.pidfd_open(process.pid)
        self._lines: list[str] = []
        self._log = log
        self._changed = asyncio.Event()
        self._reader = asyncio.create_task(self._read())
        self._reader.add_done_callback(lambda _: self._changed.set())

    @classmethod
    async def start(cls, program: Path, stack: Path, log: Path) -> Server:
        """Start a server of a stack; what it says goes to a log, too."""
        pipe, out = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        words = (str(program), str(stack))
        process = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=out)
        return cls(process, log)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        with self._log.open("a") as log:
            while line := await self.process.stdout.readline():
                log.write(line.decode())
                log.flush()
                self._lines.append(line.decode().rstrip())
                self._changed.set()

    async def says(self, start: str) -> bool:
        """Wait for a line that starts so; false if the server ends without one.

        Errors: neither happens in `PATIENCE` seconds.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                while not any(line.startswith(start) for line in self._lines):
                    if self._reader.done():
                        return False
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise self._hangs(f"has not said `{start}`") from None
        return True

    def _hangs(self, what: str) -> RigError:
        folder = Path(f"/proc/{self.process.pid}")
        state = "gone"
        with contextlib.suppress(OSError):
            status = (folder / "status").read_text().splitlines()
            state = next(line for line in status if line.startswith("State:"))
            state += f", {(folder / 'wchan').read_text()}"
        said = self.last_words()
        return RigError(f"the server ({state}) {what} in {PATIENCE} s; it said:\n{said}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process is still there."""
        # `send_signal` would look whether it has ended, and take its exit status from `end`.
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    async def end(self) -> int:
        """Wait for the end; return the exit status, negative for a signal.

        Errors: it has not ended in `PATIENCE` seconds.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.shield(self._reader)
                status = await self.process.wait()
        except TimeoutError:
            raise self._hangs("has not ended") from None
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        return status

    def last_words(self) -> str:
        """Return the last lines that it has said."""
        return "\n".join(f"    {line}" for line in self._lines[-5:])
