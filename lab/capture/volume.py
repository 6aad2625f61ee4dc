"""A volume that logs every request: nbdkit's memory disk behind FUSE and a loop device, with ext4.

For: bringing such a volume up and down, a memory limit for the application on it. Must never know:
applications, formats of traces. Units: bytes, KiB for read-ahead. Needs root, nbdkit, nbdfuse,
losetup and mkfs.ext4; says which is missing, and what the machine does not permit.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = {
    "nbdkit": "nbdkit",
    "nbdfuse": "libnbd-bin",
    "fusermount3": "fuse3",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "zstd": "zstd",
}
DEVICES = ("/dev/fuse", "/dev/loop-control")


class NotPermittedError(Exception):
    """A volume cannot be captured here; the text says what is missing."""


def check() -> None:
    """Say what this machine lacks. Errors: `NotPermittedError`."""
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise NotPermittedError(f"{program}: not installed, expected from package {package}")
    for device in DEVICES:
        if not os.access(device, os.R_OK | os.W_OK):
            raise NotPermittedError(
                f"{device}: not permitted, expected to be readable and writable"
            )
    if os.geteuid() != 0:
        raise NotPermittedError(
            "found a user without root's rights, expected root (mount, losetup)"
        )


def output_of(*command: str) -> str:
    """Run a command; return what it prints. Errors: `NotPermittedError` with its own words."""
    found = subprocess.run(command, check=False, text=True, capture_output=True)
    if found.returncode:
        raise NotPermittedError(f"{command[0]}: {found.stderr.strip()}")
    return found.stdout.strip()


class MemoryLimit:
    """A control group below ours whose memory is limited, by version 1 or 2; or none."""

    def __init__(self, limit_bytes: int) -> None:
        self.path: Path | None = None
        self.kind = "none"
        if not limit_bytes:
            return
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, own = line.split(":", 2)
            if controllers == "memory":
                self._make("/sys/fs/cgroup/memory", own, "memory.limit_in_bytes", limit_bytes)
            elif not controllers:
                self._make("/sys/fs/cgroup", own, "memory.max", limit_bytes)
        if self.path is None:
            print("warning: no control group for memory; the page cache is not limited")

    def _make(self, root: str, own: str, knob: str, limit_bytes: int) -> None:
        if self.path is not None:
            return
        path = Path(f"{root}{own.rstrip('/')}/capture-{os.getpid()}")
        try:
            path.mkdir()
            (path / knob).write_text(str(limit_bytes))
        except OSError:
            if path.is_dir():
                path.rmdir()
            return
        self.path, self.kind = path, knob

    def join(self) -> None:
        """Put this process into the group."""
        if self.path is not None:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> None:
        """End what is left in the group and remove it."""
        for _ in range(50):
            if self.path is None:
                return
            try:
                for process in (self.path / "cgroup.procs").read_text().split():
                    os.kill(int(process), signal.SIGKILL)
                self.path.rmdir()
                self.path = None
            except OSError:
                time.sleep(0.2)


class Volume:
    """A mounted volume with a log of its requests."""

    def __init__(self, work: Path, size: int, read_ahead_kb: int) -> None:
        check()
        self.log, self.folder, self.disk = work / "log", work / "mnt", work / "disk"
        self.loop = ""
        self.mounted = False
        self.folder.mkdir()
        self.disk.touch()
        socket = work / "sock"
        memory = ["memory", f"size={size}", f"logfile={self.log}"]
        serve = ["nbdkit", "-f", "-U", str(socket), "--filter=log", *memory]
        self.server = subprocess.Popen(serve, env=dict(os.environ, TZ="UTC"))
        self.fuse: subprocess.Popen[bytes] | None = None
        try:
            until("nbdkit", socket.exists)
            address = f"nbd+unix:///?socket={socket}"
            self.fuse = subprocess.Popen(["nbdfuse", "-C", "4", str(self.disk), address])
            until("nbdfuse", lambda: self.disk.stat().st_size == size)
            self.loop = output_of("losetup", "-f", "--show", "--direct-io=on", str(self.disk))
            block = Path("/sys/block") / Path(self.loop).name
            self.statistics = str(block / "stat")
            (block / "queue/read_ahead_kb").write_text(str(read_ahead_kb))
            at_once = "lazy_itable_init=0,lazy_journal_init=0"
            output_of("mkfs.ext4", "-q", "-m", "0", "-E", at_once, self.loop)
            self.mount()
        except BaseException:
            self.close()
            raise

    def mount(self) -> None:
        """Mount the file system."""
        output_of("mount", "-o", "discard,relatime", self.loop, str(self.folder))
        self.mounted = True

    def unmount(self) -> None:
        """Unmount the file system: what was cached of it is gone."""
        for _ in range(50):
            if subprocess.run(["umount", str(self.folder)], check=False).returncode == 0:
                self.mounted = False
                return
            time.sleep(0.2)
        raise RuntimeError(f"{self.folder}: cannot be unmounted, something still uses it")

    def close(self) -> None:
        """Take everything down."""
        try:
            if self.mounted:
                self.unmount()
            if self.loop:
                output_of("losetup", "-d", self.loop)
            if self.fuse is not None:
                self.end_fuse(self.fuse)
        finally:
            self.server.terminate()
            self.server.wait(10)

    def end_fuse(self, fuse: subprocess.Popen[bytes]) -> None:
        """Unmount the disk's file: the loop device lets go of it only after a while."""
        for _ in range(150):
            leave = ["fusermount3", "-u", str(self.disk)]
            if subprocess.run(leave, check=False, capture_output=True).returncode == 0:
                fuse.wait(30)
                return
            time.sleep(0.2)
        fuse.terminate()
        fuse.wait(30)


def until(what: str, ready: Callable[[], bool], seconds: float = 15) -> None:
    """Wait until something is ready."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise NotPermittedError(f"{what}: not ready after {seconds:.0f} s")
        time.sleep(0.05)


if __name__ == "__main__":
    try:
        check()
    except NotPermittedError as error:
        sys.exit(str(error))
